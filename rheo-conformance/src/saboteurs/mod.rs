//! The saboteurs: stores that each break one law, to show that the suite
//! catches them. A case that no saboteur can make fail proves nothing.

mod claiming;
mod groups;
mod log;
mod notebook;
mod sabotaged;
mod settling;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rheo_core::backend::Backend;
use serde::Serialize;

use crate::{Law, report};
use sabotaged::Sabotage;
pub use sabotaged::Sabotaged;

macro_rules! saboteurs {
    ($($doc:literal $name:ident breaks $law:ident by $sabotage:expr, caught by [$($case:literal)*];)+) => {
        /// Someone who breaks one law of a store, and nothing else.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Saboteur {
            $(#[doc = $doc] $name,)+
        }

        impl Saboteur {
            /// All of them, by the parts of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What the store does.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$name => $doc,)+
                }
            }

            /// The law that it breaks.
            #[must_use]
            pub const fn law(self) -> Law {
                match self {
                    $(Self::$name => Law::$law,)+
                }
            }

            /// Exactly the cases that fail, in the registry's order.
            #[must_use]
            pub const fn caught_by(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($case),*],)+
                }
            }

            fn sabotage(self) -> Box<dyn Sabotage> {
                match self {
                    $(Self::$name => Box::new($sabotage),)+
                }
            }
        }
    };
}

saboteurs! {
    "Timestamps are cut to milliseconds."
    TimestampsCut breaks S8 by log::TimestampsCut, caught by [
        "event.its_time_is_exact_to_the_microsecond"
        "event.its_time_is_never_in_the_future"
        "group.it_can_begin_at_an_instant"
        "replay.from_an_instant_in_each_partition"
        "query.by_time"
    ];
    "A whole float becomes an integer."
    WholeFloatsBecomeIntegers breaks S9 by log::WholeFloatsBecomeIntegers, caught by [
        "event.numbers_come_back_as_they_went_in"
    ];
    "A given id is no idempotency key."
    IdsIgnored breaks S7 by log::IdsIgnored, caught by [
        "id.a_repeated_one_returns_the_stored_event"
        "id.32_racing_appends_store_one_event"
        "id.racing_batches_store_each_event_once"
        "id.a_batch_can_repeat_its_own"
        "id.a_batch_can_mix_stored_and_new"
        "id.it_is_a_key_within_its_partition"
        "id.given_and_generated_ones_stand_together"
        "outages.an_append_with_an_id_is_safe_to_repeat"
    ];
    "A batch over several partitions is stored last to first."
    BatchReversed breaks S4 by log::BatchReversed, caught by [
        "append.a_batch_is_contiguous_in_each_partition"
    ];
    "An event becomes readable after a later one."
    CommitsLate breaks S5 by log::CommitsLate::default(), caught by [
        "append.a_reader_sees_no_late_arrival"
    ];
    "An acked event is no longer read."
    AckedEventsVanish breaks S11 by log::AckedEventsVanish::default(), caught by [
        "event.consumption_never_changes_it"
        "event.replay_and_reset_never_change_it"
        "replay.it_copies_nothing"
        "reset.the_log_stays_as_it_is"
    ];
    "Names that differ in case alone are taken for one."
    NamesFolded breaks S12 by log::NamesFolded, caught by [
        "names.streams_are_compared_byte_for_byte"
        "names.groups_are_compared_byte_for_byte"
        "page.a_cursor_of_another_stream_is_invalid"
        "inspect.streams_are_listed_sorted"
        "inspect.groups_are_listed_sorted"
    ];
    "On a stream that is gone, the group is said to be missing."
    GroupBeforeStream breaks S2 by groups::GroupBeforeStream, caught by [
        "stream.a_missing_one_is_told_before_its_group"
    ];
    "A start at an instant leaves out the event of that instant."
    StartsAfterInstant breaks G1 by log::StartsAfterInstant, caught by [
        "group.it_can_begin_at_an_instant"
        "group.an_instant_is_found_in_each_partition"
        "replay.from_an_instant_in_each_partition"
        "reset.it_starts_where_it_is_told"
        "drop.a_replay_is_all_or_nothing"
    ];
    "Leases of a deleted group can still be settled."
    LeasesOutliveGroup breaks G2 by settling::LeasesOutliveGroup::default(), caught by [
        "group.leases_of_a_deleted_one_are_stale"
    ];
    "A fetch claims as many events as asked for from each partition."
    LimitPerPartition breaks C1 by claiming::LimitPerPartition, caught by [
        "claim.limit_counts_over_all_partitions"
        "inspect.a_drained_stream_has_no_lag"
    ];
    "All short leases of a consumer have the same fence."
    ReusesLeaseIds breaks C2 by claiming::ReusesLeaseIds, caught by [
        "group.leases_of_a_deleted_one_are_stale"
        "claim.each_claim_has_a_lease_id_of_its_own"
        "fence.the_name_of_the_consumer_does_not_help"
        "model.unordered"
        "model.ordered"
    ];
    "A fetch for a short lease that finds nothing gets what another consumer holds."
    TwoLeasesOnOneEvent breaks C3 by claiming::TwoLeasesOnOneEvent::default(), caught by [
        "claim.a_leased_event_is_nobody_elses"
        "claim.racing_claims_share_no_event"
        "claim.an_expired_lease_has_one_heir"
        "expiry.a_lease_expires_on_its_microsecond"
        "order.a_run_goes_to_one_consumer"
        "order.a_retry_waits_for_the_rest_of_its_run"
        "order.racing_consumers_keep_it_through_retries"
        "settle.a_renewed_lease_lasts_from_now"
        "clock.a_manual_clock_alone_rules"
        "consuming.a_long_handler_runs_once"
        "subscribing.leases_are_renewed_while_held"
    ];
    "The first partition is always served first."
    PartitionStarved breaks C4 by claiming::PartitionStarved, caught by [
        "claim.a_busy_partition_starves_no_other"
        "claim.a_failing_partition_starves_no_other"
    ];
    "An expired lease is claimable one microsecond late."
    ExpiryIsLate breaks C5 by claiming::ExpiryIsLate, caught by [
        "claim.each_claim_has_a_lease_id_of_its_own"
        "claim.attempt_is_one_higher_each_time"
        "claim.an_expired_lease_has_one_heir"
        "claim.redeliveries_of_every_kind_are_in_order"
        "expiry.a_lease_expires_on_its_microsecond"
        "expiry.an_expired_lease_is_found_among_pending_ones"
        "expiry.a_consumer_that_vanished_costs_its_lease_time"
        "expiry.a_consumer_restarted_under_its_name_gets_its_events_back"
        "expiry.counts_return_to_zero_when_leases_expire"
        "poison.expiry_alone_ends_in_a_dead_letter"
        "poison.the_fetch_that_finds_it_buries_it"
        "poison.every_mix_of_endings_is_handed_out_n_times"
        "poison.one_attempt_means_one"
        "poison.a_release_is_no_attempt"
        "poison.a_crowd_blocks_nothing"
        "poison.an_ordered_group_goes_on"
        "order.expired_leases_come_again_in_order"
        "fence.a_lease_taken_over_changes_nothing"
        "frontier.a_restart_goes_on_at_the_hole"
        "frontier.a_dead_letter_is_no_hole"
        "replay.attempts_go_on_above_the_most"
        "drop.fetches_lose_nothing"
        "clock.a_manual_clock_alone_rules"
        "inspect.leased_returns_to_0_when_leases_expire"
        "consuming.a_failed_renewal_cancels_its_handler"
        "model.unordered"
        "model.ordered"
    ];
    "An event is handed out once more than its group allows."
    OneAttemptTooMany breaks C6 by claiming::OneAttemptTooMany, caught by [
        "poison.expiry_alone_ends_in_a_dead_letter"
        "poison.the_fetch_that_finds_it_buries_it"
        "poison.every_mix_of_endings_is_handed_out_n_times"
        "poison.one_attempt_means_one"
        "poison.the_default_is_five_attempts"
        "poison.a_release_is_no_attempt"
        "poison.a_crowd_blocks_nothing"
        "poison.an_ordered_group_goes_on"
        "settle.the_last_retry_is_a_dead_letter"
        "settle.odd_reasons_never_fail"
        "frontier.a_dead_letter_is_no_hole"
        "reset.it_keeps_the_groups_rules"
        "inspect.looking_settles_nothing"
        "consuming.an_error_is_a_retry_with_its_text"
        "consuming.a_panic_is_a_retry_with_its_text"
        "consuming.a_timeout_is_a_retry"
        "consuming.an_expiry_uses_up_an_attempt"
        "consuming.a_panic_leaves_others_untouched"
        "model.unordered"
        "model.ordered"
    ];
    "An ordered group of several partitions is served as any other."
    OrderIgnored breaks C7 by claiming::OrderIgnored::default(), caught by [
        "order.partitions_do_not_wait_for_each_other"
        "order.racing_consumers_keep_it_through_retries"
        "model.ordered"
    ];
    "An ack ends the current lease, whatever token it shows."
    AckWithoutToken breaks L1 by settling::AckWithoutToken::default(), caught by [
        "group.leases_of_a_deleted_one_are_stale"
        "claim.an_expired_lease_has_one_heir"
        "fence.a_lease_taken_over_changes_nothing"
        "fence.the_name_of_the_consumer_does_not_help"
        "fence.a_wrong_receipt_is_a_mismatch"
        "fence.a_wrong_lease_id_is_stale"
        "fence.a_lease_is_of_its_group_alone"
        "fence.a_settle_and_a_claim_never_both_win"
        "failing.an_ended_lease_is_told_by_every_operation"
        "model.unordered"
        "model.ordered"
    ];
    "A settle succeeds with any receipt."
    ReceiptsNotChecked breaks L1 by settling::ReceiptsNotChecked, caught by [
        "fence.a_wrong_receipt_is_a_mismatch"
        "failing.an_ended_lease_is_told_by_every_operation"
        "model.unordered"
        "model.ordered"
    ];
    "A lease ends when it expires, though nobody else has claimed the event."
    ExpiryEndsLeases breaks L2 by settling::ExpiryEndsLeases::default(), caught by [
        "poison.the_last_attempt_can_still_succeed_late"
        "settle.an_expired_lease_can_still_be_settled"
        "inspect.looking_settles_nothing"
        "model.unordered"
        "model.ordered"
    ];
    "A second settle of the same lease succeeds."
    SecondSettleSucceeds breaks L3 by settling::SecondSettleSucceeds::default(), caught by [
        "settle.a_second_settle_is_stale"
        "settle.each_of_many_gets_its_own_answer"
        "settle.leases_of_many_groups_go_together"
        "settle.the_same_lease_twice_counts_once"
        "settle.a_lease_settles_in_another_process"
        "fence.the_name_of_the_consumer_does_not_help"
        "fence.of_racing_settles_one_wins"
        "guarantee.batches_of_10000_are_one_call"
        "failing.an_ended_lease_is_told_by_every_operation"
        "failing.messages_show_no_payload"
        "failing.messages_show_no_fencing_token"
        "model.unordered"
        "model.ordered"
    ];
    "A released claim counts as an attempt."
    ReleaseCounts breaks L4 by settling::ReleaseCounts, caught by [
        "claim.redeliveries_come_before_new_events"
        "claim.redeliveries_of_every_kind_are_in_order"
        "poison.a_release_is_no_attempt"
        "order.a_retry_waits_for_the_rest_of_its_run"
        "order.a_run_stops_before_an_event_that_waits"
        "settle.a_release_does_not_count_the_attempt"
        "settle.an_expired_lease_can_still_be_settled"
        "settle.each_of_many_gets_its_own_answer"
        "settle.the_same_lease_twice_counts_once"
        "fence.the_name_of_the_consumer_does_not_help"
        "draining.running_handlers_finish_and_the_rest_is_released"
        "draining.a_dropped_consumer_ends_in_the_background"
        "running.a_retry_releases_the_rest_of_the_run"
        "running.a_panic_releases_the_rest_of_the_run"
        "subscribing.an_event_dropped_unsettled_is_released"
        "subscribing.a_drain_ends_the_stream"
        "subscribing.dropped_it_hands_back_what_is_buffered"
        "subscribing.in_order_the_next_comes_after_the_settle"
        "model.unordered"
        "model.ordered"
    ];
    "A retry is delayed by one second at most."
    DelaysCut breaks L4 by settling::DelaysCut, caught by [
        "order.a_delayed_retry_holds_up_what_follows"
        "settle.a_delayed_retry_comes_on_its_microsecond"
    ];
    "A rejected event is acked."
    DeadLettersLost breaks L4 by settling::DeadLettersLost, caught by [
        "settle.a_rejected_event_is_a_dead_letter"
        "settle.an_expired_lease_can_still_be_settled"
        "settle.a_second_settle_is_stale"
        "settle.each_of_many_gets_its_own_answer"
        "settle.reasons_are_cut_at_a_character"
        "settle.odd_reasons_never_fail"
        "replay.exactly_the_dead_letters"
        "inspect.every_count_is_told"
        "inspect.partitions_are_told_apart"
        "inspect.a_drained_stream_has_no_lag"
        "inspect.counts_return_to_0_when_leases_end"
        "inspect.dead_letters_tell_what_happened"
        "inspect.dead_letters_come_oldest_first"
        "inspect.dead_letters_come_in_pages"
        "inspect.an_unknown_dead_letter_is_no_cursor"
        "inspect.a_replayed_dead_letter_is_no_cursor"
        "consuming.the_outcome_settles"
        "model.unordered"
        "model.ordered"
    ];
    "A renewal lasts half as long as it says."
    RenewsForHalf breaks L5 by settling::RenewsForHalf, caught by [
        "order.a_renewed_lease_holds_on"
        "settle.an_expired_lease_can_still_be_renewed"
        "settle.a_renewed_lease_lasts_from_now"
        "consuming.a_long_handler_runs_once"
        "model.unordered"
        "model.ordered"
    ];
    "A stale lease has all of its batch refused."
    StaleSpoilsBatch breaks L6 by settling::StaleSpoilsBatch::default(), caught by [
        "settle.each_of_many_gets_its_own_answer"
        "settle.leases_of_many_groups_go_together"
        "guarantee.batches_of_10000_are_one_call"
        "model.unordered"
        "model.ordered"
    ];
    "The frontier passes over holes, short of the last event."
    FrontierPastHole breaks L8 by groups::FrontierPastHole::default(), caught by [
        "frontier.a_hole_keeps_it_before_it"
        "frontier.a_restart_goes_on_at_the_hole"
        "frontier.a_dead_letter_is_no_hole"
        "frontier.a_retry_and_a_release_are_holes"
        "frontier.each_partition_has_its_own"
        "frontier.it_holds_through_any_history"
        "inspect.lag_is_the_sum_over_partitions"
        "model.unordered"
        "model.ordered"
    ];
    "A replay reopens everything from its first event on."
    ReplayReopensTheRest breaks R2 by groups::ReplayReopensTheRest, caught by [
        "order.replayed_events_come_before_the_rest"
        "frontier.a_replay_takes_it_back"
        "replay.exactly_the_matching_events"
        "replay.exactly_these_positions"
        "replay.exactly_the_dead_letters"
        "inspect.a_replayed_dead_letter_is_no_cursor"
        "subscribing.each_event_of_a_chunk_has_its_own_answer"
        "model.unordered"
        "model.ordered"
    ];
    "A replay starts the attempts of short leases anew."
    ReplayForgetsAttempts breaks R3 by groups::ReplayForgetsAttempts::default(), caught by [
        "order.replayed_events_come_before_the_rest"
        "replay.everything_above_a_sequence"
        "replay.dead_letters_and_delays_included"
        "replay.exactly_the_dead_letters"
        "replay.it_revokes_leases"
        "replay.attempts_go_on_above_the_most"
        "replay.what_was_never_handed_out_stays_new"
        "model.unordered"
        "model.ordered"
    ];
    "A replay passes over what is leased."
    ReplayLeavesLeases breaks R3 by groups::ReplayLeavesLeases::default(), caught by [
        "frontier.it_holds_through_any_history"
        "replay.dead_letters_and_delays_included"
        "replay.it_revokes_leases"
        "drop.a_replay_leaves_each_event_in_one_state"
        "consuming.a_lost_lease_cancels_its_handler"
        "subscribing.each_event_of_a_chunk_has_its_own_answer"
        "subscribing.a_lost_lease_is_told"
        "model.unordered"
        "model.ordered"
    ];
    "A reset keeps the attempts."
    ResetKeepsAttempts breaks R5 by groups::ResetKeepsAttempts::default(), caught by [
        "reset.it_forgets_everything"
        "model.unordered"
    ];
    "A reset keeps the dead-letter list."
    ResetKeepsDeadLetters breaks R5 by groups::ResetKeepsDeadLetters::default(), caught by [
        "reset.it_forgets_everything"
        "reset.it_keeps_the_groups_rules"
    ];
    "A replay from a point on appends a copy of its first event."
    ReplayCopies breaks R6 by groups::ReplayCopies, caught by [
        "event.replay_and_reset_never_change_it"
        "frontier.a_replay_takes_it_back"
        "replay.everything_above_a_sequence"
        "replay.dead_letters_and_delays_included"
        "replay.only_in_the_chosen_partitions"
        "replay.from_an_instant_in_each_partition"
        "replay.the_first_event_at_an_instant_decides"
        "replay.it_revokes_leases"
        "replay.attempts_go_on_above_the_most"
        "replay.what_was_never_handed_out_stays_new"
        "replay.it_reaches_below_the_groups_start"
        "replay.it_copies_nothing"
        "replay.other_groups_notice_nothing"
        "race.a_replay_leaves_each_event_in_one_state"
        "drop.a_replay_is_all_or_nothing"
        "drop.a_replay_leaves_each_event_in_one_state"
        "consuming.a_lost_lease_cancels_its_handler"
        "model.unordered"
        "model.ordered"
    ];
    "A descending query takes its limit from the start of the log."
    LimitBeforeOrder breaks Q2 by log::LimitBeforeOrder, caught by [
        "query.its_order_is_sequence_then_partition"
        "query.the_first_of_many_are_found"
        "query.by_sequence"
        "match.random_queries_find_what_the_matcher_says"
        "guarantee.a_range_is_found_in_a_long_log"
    ];
    "An array equals each of its members."
    ArraysEqualMembers breaks Q3 by log::ArraysEqualMembers, caught by [
        "match.null_equals_only_a_present_null"
        "match.arrays_equal_only_the_same_array"
        "match.random_queries_find_what_the_matcher_says"
    ];
    "Null equals a field that is missing."
    NullEqualsMissing breaks Q3 by log::NullEqualsMissing, caught by [
        "match.null_equals_only_a_present_null"
        "match.random_queries_find_what_the_matcher_says"
    ];
    "A query goes through one partition after the other."
    PartitionAfterPartition breaks Q4 by log::PartitionAfterPartition, caught by [
        "query.its_order_is_sequence_then_partition"
        "query.by_partition"
        "match.random_queries_find_what_the_matcher_says"
        "page.pages_make_up_the_answer"
        "page.nothing_is_skipped_while_others_append"
        "page.a_cursor_is_a_word_for_any_client"
        "page.a_stream_yields_the_whole_answer"
    ];
    "A drained group is as far behind as its stream is long, from 10 000 events on."
    LongHistoryIsLag breaks I1 by groups::LongHistoryIsLag, caught by [
        "settle.ten_thousand_at_once"
        "settle.more_than_one_call_takes"
        "frontier.a_drained_stream_has_no_lag"
        "guarantee.batches_of_10000_are_one_call"
    ];
    "Expired leases are counted as leased."
    ExpiredCountAsLeased breaks I1 by groups::ExpiredCountAsLeased, caught by [
        "expiry.counts_return_to_zero_when_leases_expire"
        "poison.the_fetch_that_finds_it_buries_it"
        "inspect.leased_returns_to_0_when_leases_expire"
        "model.unordered"
        "model.ordered"
    ];
    "The dead-letter list goes on after any position, in it or not."
    UnknownLetterAccepted breaks I1 by groups::UnknownLetterAccepted, caught by [
        "inspect.an_unknown_dead_letter_is_no_cursor"
        "inspect.a_replayed_dead_letter_is_no_cursor"
        "failing.each_refusal_has_its_kind"
    ];
}

impl Saboteur {
    /// The store, sabotaged. All clients that are to see one another share it.
    #[must_use]
    pub fn sabotaged(self, store: Arc<dyn Backend>) -> Arc<Sabotaged> {
        Arc::new(Sabotaged::new(store, self.sabotage()))
    }
}

/// A saboteur and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Exposure {
    /// The saboteur's name.
    pub saboteur: String,
    /// What the store did.
    pub description: &'static str,
    /// The law that it broke.
    pub law: Law,
    /// The cases that failed.
    pub caught_by: Vec<&'static str>,
}

impl Exposure {
    /// What became of `saboteur`, on which these cases failed.
    #[must_use]
    pub fn new(saboteur: Saboteur, caught_by: Vec<&'static str>) -> Self {
        Self {
            saboteur: format!("{saboteur:?}"),
            description: saboteur.description(),
            law: saboteur.law(),
            caught_by,
        }
    }
}

/// Writes the list as JSON to `conformance/saboteurs.json` in the target directory.
///
/// # Errors
/// Where the file cannot be written.
pub fn save(exposures: &[Exposure]) -> io::Result<PathBuf> {
    report::save_as("saboteurs", &exposures)
}

//! Replay: laws R1 to R4 and R6.

use std::time::Duration;

use rheo_core::{
    Delivery, ErrorKind, Event, FetchOptions, GroupOptions, ManualClock, NewEvent, Outcome,
    Position, Query, Replay, ReplayOptions, Rheo, Start, Timestamp,
};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{
    ack_all, append_to, attempts, dead, drain, failure, fetch, frontiers, info, sequences,
};

case_table! {
    "replay.everything_above_a_sequence" [R1] needs [Replay] => everything_above_a_sequence;
    "replay.dead_letters_and_delays_included" [R1 R4] needs [Replay]
        => dead_letters_and_delays_included;
    "replay.only_in_the_chosen_partitions" [R1] needs [Replay Partitions]
        => only_in_the_chosen_partitions;
    "replay.from_an_instant_in_each_partition" [R1] needs [Replay Partitions]
        => from_an_instant_in_each_partition;
    "replay.the_first_event_at_an_instant_decides" [R1] needs [Replay]
        => the_first_event_at_an_instant_decides;
    "replay.exactly_the_matching_events" [R2] needs [Replay] => exactly_the_matching_events;
    "replay.more_matches_than_one_page" [R2] needs [Replay] => more_matches_than_one_page;
    "replay.exactly_these_positions" [R2] needs [Replay Partitions] => exactly_these_positions;
    "replay.a_missing_position_is_invalid" [R2] needs [Replay] => a_missing_position_is_invalid;
    "replay.exactly_the_dead_letters" [R2 R4] needs [Replay] => exactly_the_dead_letters;
    "replay.it_revokes_leases" [R3] needs [Replay] => it_revokes_leases;
    "replay.attempts_go_on_above_the_most" [R3] needs [Replay] => attempts_go_on_above_the_most;
    "replay.what_was_never_handed_out_stays_new" [R1 C2] needs [Replay]
        => what_was_never_handed_out_stays_new;
    "replay.it_reaches_below_the_groups_start" [R1] needs [Replay]
        => it_reaches_below_the_groups_start;
    "replay.it_copies_nothing" [R6 S11] needs [Replay] => it_copies_nothing;
    "replay.other_groups_notice_nothing" [R6] needs [Replay] => other_groups_notice_nothing;
}

async fn replay(rheo: &Rheo, selection: Replay) {
    rheo.replay("s", "g", selection, ReplayOptions::default()).await.expect("it is replayed");
}

/// A client whose group has acked so many events of partition 0.
async fn drained(trial: &Trial, count: u64) -> Rheo {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, count).await;
    assert_eq!(drain(&rheo).await.len() as u64, count);
    rheo
}

fn positions(deliveries: &[Delivery]) -> Vec<(u32, u64)> {
    let mut positions: Vec<_> = deliveries
        .iter()
        .map(|delivery| (delivery.event.partition(), delivery.event.sequence()))
        .collect();
    positions.sort_unstable();
    positions
}

/// Every event above the sequence comes again, and the frontier falls back to it.
async fn everything_above_a_sequence(trial: Trial) {
    let rheo = drained(&trial, 6).await;
    replay(&rheo, Replay::AfterSequence(2)).await;
    assert_eq!(frontiers(&rheo).await, [2]);
    let info = info(&rheo).await;
    assert_eq!((info.lag(), info.waiting(), info.leased()), (4, 4, 0));
    let again = drain(&rheo).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![3, 4, 5, 6], vec![2; 4]));
}

/// What is dead and what waits for a delay comes at once; the dead-letter list is empty then.
async fn dead_letters_and_delays_included(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 4).await;
    let held = fetch(&rheo, 4).await;
    rheo.ack(&held[0]).await.unwrap();
    rheo.reject(&held[1], "bad").await.unwrap();
    rheo.retry(&held[2], "later", Duration::from_secs(3600)).await.unwrap();
    replay(&rheo, Replay::AfterSequence(0)).await;
    assert_eq!(dead(&rheo).await, []);
    let again = drain(&rheo).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1, 2, 3, 4], vec![2; 4]));
}

/// Partitions that were not chosen stay as they were.
async fn only_in_the_chosen_partitions(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 2).await;
    }
    drain(&rheo).await;
    let chosen = ReplayOptions::default().partitions([2, 0]);
    rheo.replay("s", "g", Replay::AfterSequence(1), chosen.clone()).await.unwrap();
    assert_eq!(frontiers(&rheo).await, [1, 2, 1]);
    assert_eq!(positions(&drain(&rheo).await), [(0, 2), (2, 2)]);
    rheo.replay("s", "g", Replay::Matching(Query::new()), chosen).await.unwrap();
    assert_eq!(positions(&drain(&rheo).await), [(0, 1), (0, 2), (2, 1), (2, 2)]);
    let wrong = ReplayOptions::default().partitions([3]);
    let refused = rheo.replay("s", "g", Replay::AfterSequence(0), wrong).await;
    assert_eq!(failure(refused), ErrorKind::Invalid);
}

/// In each partition by itself, from the first event at or after the instant.
async fn from_an_instant_in_each_partition(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    append_to(&rheo, 1, 1).await;
    append_to(&rheo, 2, 2).await;
    trial.advance_micros(10_000_001);
    let instant = trial.clock().now();
    append_to(&rheo, 0, 2).await;
    append_to(&rheo, 1, 3).await;
    drain(&rheo).await;
    replay(&rheo, Replay::From(instant + Duration::from_micros(1))).await;
    assert_eq!(frontiers(&rheo).await, [5, 4, 2]);
    replay(&rheo, Replay::From(instant)).await;
    assert_eq!(frontiers(&rheo).await, [3, 1, 2]);
    assert_eq!(positions(&drain(&rheo).await), [(0, 4), (0, 5), (1, 2), (1, 3), (1, 4)]);
    replay(&rheo, Replay::From(Timestamp::MIN)).await;
    assert_eq!(frontiers(&rheo).await, [0, 0, 0]);
}

/// Where clocks differ: everything after the first event at the instant, also with earlier stamps.
async fn the_first_event_at_an_instant_decides(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let start = trial.clock().now();
    for secs in [5, 10, 7, 12] {
        let clock = ManualClock::new(start + Duration::from_secs(secs));
        let writer = trial.builder().await.clock(clock).build().await.unwrap();
        append_to(&writer, 0, 1).await;
    }
    drain(&rheo).await;
    replay(&rheo, Replay::From(start + Duration::from_secs(8))).await;
    assert_eq!(sequences(&drain(&rheo).await), [2, 3, 4]);
}

/// Exactly what the query matches; its limit and order do not count.
async fn exactly_the_matching_events(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let event = |n: u64| {
        let kind = if n.is_multiple_of(3) { "fizz" } else { "plain" };
        NewEvent::new(kind, json!({ "n": n, "even": n.is_multiple_of(2) })).partition(0)
    };
    rheo.append_batch("s", (1..=12).map(event).collect()).await.unwrap();
    drain(&rheo).await;
    let fizz = || Query::new().event_type("fizz");
    for (query, matching) in [
        (fizz().descending().limit(1), vec![3, 6, 9, 12]),
        (fizz().payload("even", true), vec![6, 12]),
        (Query::new().payload("n", 7), vec![7]),
        (fizz().after_sequence(3).until_sequence(9), vec![6, 9]),
        (Query::new().event_type("none"), vec![]),
    ] {
        replay(&rheo, Replay::Matching(query)).await;
        assert_eq!(sequences(&drain(&rheo).await), matching);
    }
}

/// A query that matches more than ten thousand events replays them all.
async fn more_matches_than_one_page(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    for count in [10_000, 500] {
        append_to(&rheo, 0, count).await;
        ack_all(&rheo, &fetch(&rheo, 10_000).await).await;
    }
    replay(&rheo, Replay::Matching(Query::new().after_sequence(100))).await;
    let info = info(&rheo).await;
    assert_eq!((info.waiting(), info.lag()), (10_400, 10_400));
}

/// Exactly these positions, in whatever order and however often they are named.
async fn exactly_these_positions(trial: Trial) {
    let rheo = trial.with_group(2, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    append_to(&rheo, 1, 5).await;
    drain(&rheo).await;
    let at = Position::new;
    let chosen = vec![at(1, 4), at(0, 2), at(1, 1), at(0, 3), at(1, 4)];
    replay(&rheo, Replay::Positions(chosen)).await;
    assert_eq!(frontiers(&rheo).await, [1, 0]);
    assert_eq!(positions(&drain(&rheo).await), [(0, 2), (0, 3), (1, 1), (1, 4)]);
    replay(&rheo, Replay::Positions(vec![])).await;
    assert_eq!(drain(&rheo).await, []);
}

/// With one position that is not in the log nothing is replayed.
async fn a_missing_position_is_invalid(trial: Trial) {
    let rheo = drained(&trial, 3).await;
    for wrong in [Position::new(0, 0), Position::new(0, 4), Position::new(1, 1)] {
        let selection = Replay::Positions(vec![Position::new(0, 1), wrong]);
        let refused = rheo.replay("s", "g", selection, ReplayOptions::default()).await;
        assert_eq!(failure(refused), ErrorKind::Invalid, "{wrong}");
    }
    assert_eq!(frontiers(&rheo).await, [3]);
    assert_eq!(fetch(&rheo, 9).await, []);
}

/// Replaying the dead letters empties their list, and touches nothing else.
async fn exactly_the_dead_letters(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    let held = fetch(&rheo, 4).await;
    rheo.reject(&held[3], "bad").await.unwrap();
    rheo.ack(&held[0]).await.unwrap();
    rheo.reject(&held[1], "bad").await.unwrap();
    replay(&rheo, Replay::DeadLetters).await;
    assert_eq!(dead(&rheo).await, []);
    let counts = info(&rheo).await;
    assert_eq!((counts.dead_letters(), counts.waiting(), counts.leased()), (0, 2, 1));
    let again = fetch(&rheo, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![2, 4, 5], vec![2, 2, 1]));
    rheo.ack(&held[2]).await.unwrap();
}

/// A lease on a replayed event is stale; a lease on another is not.
async fn it_revokes_leases(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let held = fetch(&rheo, 3).await;
    replay(&rheo, Replay::AfterSequence(1)).await;
    for revoked in &held[1..] {
        assert_eq!(failure(rheo.ack(revoked).await), ErrorKind::StaleLease);
        assert_eq!(failure(rheo.reject(revoked, "late").await), ErrorKind::StaleLease);
        let renewed = rheo.renew(revoked, Duration::from_secs(5)).await;
        assert_eq!(failure(renewed), ErrorKind::StaleLease);
    }
    rheo.ack(&held[0]).await.unwrap();
    let again = fetch(&rheo, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![2, 3], vec![2, 2]));
}

/// A replayed event is handed out above `max_attempts` too; a retry or expiry there is the end.
async fn attempts_go_on_above_the_most(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 3).await;
    let held = fetch(&rheo, 3).await;
    let outcomes = [Outcome::retry("first"), Outcome::reject("first"), Outcome::Ack];
    for answer in rheo.settle(held.iter().zip(outcomes)).await {
        answer.unwrap();
    }
    replay(&rheo, Replay::AfterSequence(0)).await;
    let again = fetch(&rheo, 9).await;
    assert_eq!((sequences(&again), attempts(&again)), (vec![1, 2, 3], vec![2; 3]));
    rheo.retry(&again[0], "second", Duration::ZERO).await.unwrap();
    rheo.ack(&again[2]).await.unwrap();
    assert_eq!(dead(&rheo).await, [(1, 2, "second".into())]);
    trial.advance_secs(5);
    assert_eq!(fetch(&rheo, 9).await, []);
    let dead: Vec<_> = dead(&rheo).await.into_iter().map(|(n, attempt, _)| (n, attempt)).collect();
    assert_eq!(dead, [(1, 2), (2, 2)]);
}

/// Events that were never handed out come once, as attempt 1, also after a replay.
async fn what_was_never_handed_out_stays_new(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 4).await;
    ack_all(&rheo, &fetch(&rheo, 2).await).await;
    replay(&rheo, Replay::AfterSequence(0)).await;
    let all = drain(&rheo).await;
    assert_eq!((sequences(&all), attempts(&all)), (vec![1, 2, 3, 4], vec![2, 2, 1, 1]));
}

/// A replay reaches events that lie before the group's start; for the group they are new.
async fn it_reaches_below_the_groups_start(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.unwrap();
    append_to(&rheo, 0, 4).await;
    let options = GroupOptions::default().start(Start::End);
    rheo.create_group("s", "g", options).await.unwrap();
    assert_eq!(fetch(&rheo, 9).await, []);
    replay(&rheo, Replay::AfterSequence(1)).await;
    assert_eq!(frontiers(&rheo).await, [1]);
    let first = drain(&rheo).await;
    assert_eq!((sequences(&first), attempts(&first)), (vec![2, 3, 4], vec![1; 3]));
}

/// The log is the same after any replay, event for event.
async fn it_copies_nothing(trial: Trial) {
    let rheo = drained(&trial, 5).await;
    let log = read_all(&rheo).await;
    for selection in [
        Replay::AfterSequence(0),
        Replay::Matching(Query::new()),
        Replay::Positions(vec![Position::new(0, 3)]),
        Replay::DeadLetters,
        Replay::From(Timestamp::MIN),
    ] {
        replay(&rheo, selection).await;
        assert_eq!(read_all(&rheo).await, log);
    }
    let again = fetch(&rheo, 9).await;
    let again: Vec<_> = again.into_iter().map(|delivery| delivery.event).collect();
    assert_eq!(again, log);
    assert_eq!(info(&rheo).await.partitions[0].high_watermark, 5);
}

async fn read_all(rheo: &Rheo) -> Vec<Event> {
    rheo.read("s", 0, 0, 10_000).await.expect("the log is read")
}

/// Another group on the same stream keeps its frontier, its leases and its dead letters.
async fn other_groups_notice_nothing(trial: Trial) {
    let rheo = drained(&trial, 4).await;
    rheo.create_group("s", "h", GroupOptions::default()).await.unwrap();
    let held = rheo.fetch("s", "h", 3, FetchOptions::default()).await.unwrap();
    rheo.ack(&held[0]).await.unwrap();
    rheo.reject(&held[1], "bad").await.unwrap();
    let before = rheo.group_info("s", "h").await.unwrap();
    replay(&rheo, Replay::AfterSequence(0)).await;
    assert_eq!(rheo.group_info("s", "h").await.unwrap(), before);
    rheo.ack(&held[2]).await.unwrap();
}

//! Running consumers: laws K1, K2, K5 and K6.

use std::time::{Duration, Instant};

use rheo_core::{Delivery, ErrorKind, GroupOptions, Outcome, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::handling::{Gated, panic_quietly};
use crate::outage::Fault;
use crate::trial::{append_to, eventually, fetch};

case_table! {
    "consuming.everything_is_handled_once" [K1] => everything_is_handled_once;
    "consuming.concurrency_bounds_the_handlers" [K1] => concurrency_bounds_the_handlers;
    "consuming.max_demand_bounds_the_leases" [K1] => max_demand_bounds_the_leases;
    "consuming.leases_are_renewed_at_half_their_time" [K1] => leases_are_renewed_at_half_time;
    "consuming.a_long_handler_runs_once" [K1] => a_long_handler_runs_once;
    "consuming.settles_gather_and_a_lone_one_does_not_wait" [K1] => settles_gather;
    "consuming.the_outcome_settles" [K1] => the_outcome_settles;
    "consuming.an_error_is_a_retry_with_its_text" [K2 C6] => an_error_is_a_retry;
    "consuming.a_panic_is_a_retry_with_its_text" [K2 C6] => a_panic_is_a_retry;
    "consuming.a_timeout_is_a_retry" [K2 C6] => a_timeout_is_a_retry;
    "consuming.an_expiry_uses_up_an_attempt" [C6] => an_expiry_uses_up_an_attempt;
    "consuming.a_panic_leaves_others_untouched" [K2] => a_panic_leaves_others_untouched;
    "consuming.a_lost_lease_cancels_its_handler" [K2] needs [Replay] => a_lost_lease;
    "consuming.a_failed_renewal_cancels_its_handler" [K2] => a_failed_renewal;
    "consuming.a_lost_answer_is_asked_for_again" [K5] => a_lost_answer;
    "consuming.failures_are_followed_by_growing_pauses" [K5] => failures_make_it_pause;
    "consuming.a_failed_fetch_shows_and_stops_nothing" [K6] => a_failed_fetch;
    "consuming.a_failed_settle_shows_and_stops_nothing" [K6] => a_failed_settle;
}

const HOUR: Duration = Duration::from_secs(3600);
const LEASE: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_millis(10);

async fn lag(rheo: &Rheo) -> u64 {
    rheo.lag("s", "g").await.expect("the group is there").total()
}

async fn all_is_settled(rheo: &Rheo) {
    eventually("all is settled", async || lag(rheo).await == 0).await;
}

/// Sequence and attempt of the first deliveries of so many events.
fn firsts(count: u64) -> Vec<(u64, u32)> {
    (1..=count).map(|sequence| (sequence, 1)).collect()
}

/// Each event reaches a handler once, and nothing is left.
async fn everything_is_handled_once(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 50).await;
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").max_demand(10);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    append_to(&rheo, 0, 50).await;
    all_is_settled(&rheo).await;
    let begun = gated.begun_sorted();
    assert_eq!(begun, firsts(100));
    eventually("the acks are counted", async || consumer.health().counts.acked == 100).await;
    assert_eq!(consumer.health().counts.fetched, 100);
}

/// As many handlers run as are allowed, and never more.
async fn concurrency_bounds_the_handlers(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 20).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(3);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("three run", async || gated.running() == 3).await;
    eventually("the rest is buffered", async || consumer.health().buffered == 17).await;
    gated.let_through(20);
    all_is_settled(&rheo).await;
    assert_eq!(gated.most_at_once(), 3);
}

/// No more than `max_demand` leases are held, buffered ones included.
async fn max_demand_bounds_the_leases(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 20).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(2).max_demand(5);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("demand is met", async || consumer.health().unsettled == 5).await;
    for acked in 1..=20 {
        gated.let_through(1);
        eventually("one more is settled", async || consumer.health().counts.acked == acked).await;
        let info = rheo.group_info("s", "g").await.expect("the group is there");
        assert!(info.leased() <= 5, "{} are leased", info.leased());
    }
    assert_eq!(gated.begun().len(), 20);
}

/// A lease is renewed when half its time is over, and not before.
async fn leases_are_renewed_at_half_time(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(LEASE);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it is handled", async || gated.running() == 1).await;
    let begun = trial.clock().now();
    for half in 1..=3 {
        trial.advance_secs(4);
        tokio::task::yield_now().await;
        trial.advance_secs(1);
        eventually("it is renewed", async || line.renewals().len() == half).await;
    }
    let times = line.renewals().into_iter().map(|renewal| (renewal.now, renewal.lease));
    let expected =
        [5, 10, 15].map(|secs| (rheo_core::Now::At(begun + Duration::from_secs(secs)), LEASE));
    assert_eq!(times.collect::<Vec<_>>(), expected);
}

/// A handler of five lease times runs once, whoever else asks for its event.
async fn a_long_handler_runs_once(trial: Trial) {
    let rival = trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(LEASE);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it is handled", async || gated.running() == 1).await;
    for half in 1..=10 {
        trial.clock().advance(LEASE / 2);
        eventually("it is renewed", async || line.renewed() >= half).await;
        assert!(fetch(&rival, 1).await.is_empty(), "the event was handed out twice");
    }
    gated.let_through(1);
    all_is_settled(&rheo).await;
    assert_eq!((gated.begun(), gated.cancelled()), (firsts(1), 0));
    assert_eq!(consumer.health().counts.stale, 0);
}

/// A lone outcome goes to the store at once; what comes meanwhile goes together.
async fn settles_gather(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.timeout(HOUR).build().await.expect("the store is made ready");
    append_to(&rheo, 0, 10).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").concurrency(10);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("all are handled", async || gated.running() == 10).await;
    line.fail_at(&["settle"], Fault::Held);
    gated.let_through(1);
    eventually("the first ack is on its way", async || line.settles().len() == 1).await;
    gated.let_through(9);
    eventually("all have ended", async || consumer.health().running == 0).await;
    line.mend();
    all_is_settled(&rheo).await;
    let sizes = line.settles().iter().map(|settle| settle.settlements.len()).collect::<Vec<_>>();
    assert_eq!(sizes, [1, 9]);
}

/// Whatever the handler yields is what becomes of the event.
async fn the_outcome_settles(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 4).await;
    let gated =
        Gated::open(|delivery| match (delivery.event.sequence(), delivery.lease.attempt()) {
            (2, _) => Outcome::reject("no use"),
            (3, 1) => Outcome::retry("not yet"),
            (4, 1) => Outcome::retry_after("later", LEASE),
            _ => Outcome::Ack,
        });
    let consumer = rheo.consumer("s", "g").concurrency(1).lease(HOUR * 1000);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("only the delayed one is left", async || lag(&rheo).await == 1).await;
    assert_eq!(consumer.health().running, 0);
    trial.clock().advance(LEASE);
    all_is_settled(&rheo).await;
    let begun = gated.begun_sorted();
    assert_eq!(begun, [(1, 1), (2, 1), (3, 1), (3, 2), (4, 1), (4, 2)]);
    let dead = rheo.dead_letters("s", "g", 10, None).await.expect("the group is there");
    let dead = dead.iter().map(|dead| (dead.event.sequence(), dead.reason.as_str()));
    assert_eq!(dead.collect::<Vec<_>>(), [(2, "no use")]);
}

/// One event whose handling always fails so, in a group of three attempts.
/// Returns the reason for which it was given up.
async fn dies_after_three(trial: &Trial, outcome: fn(&Delivery) -> Outcome) -> String {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::open(outcome);
    let consumer = rheo.consumer("s", "g");
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    all_is_settled(&rheo).await;
    assert_eq!(gated.begun(), [(1, 1), (1, 2), (1, 3)]);
    only_dead_letter(&rheo).await
}

/// The reason of the only dead letter, which has had three attempts.
async fn only_dead_letter(rheo: &Rheo) -> String {
    let mut dead = rheo.dead_letters("s", "g", 10, None).await.expect("the group is there");
    assert_eq!(dead.len(), 1);
    assert_eq!((dead[0].event.sequence(), dead[0].attempt), (1, 3));
    dead.remove(0).reason
}

/// A handler that fails gets the event as often as allowed, and no more.
async fn an_error_is_a_retry(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 1).await;
    let (calls, mut called) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        // The case that looks on has ended where nobody receives.
        let _ = calls.send(delivery.lease.attempt());
        async { Err::<(), _>("no stock") }
    };
    let consumer = rheo.consumer("s", "g").start(handler).await.expect("the group is there");
    all_is_settled(&rheo).await;
    consumer.drain(HOUR).await.expect("nothing else drains it");
    drop(consumer);
    let mut attempts = Vec::new();
    while let Some(attempt) = called.recv().await {
        attempts.push(attempt);
    }
    assert_eq!(attempts, [1, 2, 3]);
    assert_eq!(only_dead_letter(&rheo).await, "no stock");
}

/// A handler that panics gets the event as often as allowed, and no more.
async fn a_panic_is_a_retry(trial: Trial) {
    let reason = dies_after_three(&trial, |_| panic_quietly("out of paper")).await;
    assert!(reason.contains("out of paper"), "{reason}");
}

/// A handler that takes too long is cancelled, and gets the event as often as
/// allowed, and no more.
async fn a_timeout_is_a_retry(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(HOUR * 1000).handler_timeout(LEASE);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    for attempts in 1..=3 {
        eventually("an attempt begins", async || gated.begun().len() >= attempts).await;
        eventually("it is cancelled", async || {
            trial.clock().advance(LEASE);
            gated.cancelled() >= attempts
        })
        .await;
    }
    all_is_settled(&rheo).await;
    assert_eq!(gated.begun(), [(1, 1), (1, 2), (1, 3)]);
    assert!(!only_dead_letter(&rheo).await.is_empty());
}

/// A consumer that never comes back gets the event as often as allowed, and no more.
async fn an_expiry_uses_up_an_attempt(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 1).await;
    for attempt in 1..=3 {
        let deliveries = fetch(&rheo, 10).await;
        assert_eq!(deliveries.len(), 1);
        assert_eq!(deliveries[0].lease.attempt(), attempt);
        trial.advance_secs(6);
    }
    assert!(fetch(&rheo, 10).await.is_empty(), "it was handed out a fourth time");
    assert_eq!(lag(&rheo).await, 0);
    assert!(!only_dead_letter(&rheo).await.is_empty());
}

/// One handler's panic neither ends nor repeats another's run.
async fn a_panic_leaves_others_untouched(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 5).await;
    let gated = Gated::shut(|delivery| match delivery.event.sequence() {
        3 => panic_quietly("out of paper"),
        _ => Outcome::Ack,
    });
    let consumer = rheo.consumer("s", "g").concurrency(5);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("all five run", async || gated.running() == 5).await;
    gated.let_through(5);
    all_is_settled(&rheo).await;
    let begun = gated.begun_sorted();
    assert_eq!((begun, gated.cancelled()), (firsts(5), 0));
    eventually("the acks are counted", async || consumer.health().counts.acked == 4).await;
    assert_eq!(consumer.health().counts.retried, 1);
}

/// A handler whose lease was revoked is cancelled at the next renewal, and
/// settles nothing.
async fn a_lost_lease(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(LEASE).poll_interval(SOON);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it is handled", async || gated.running() == 1).await;
    let (all, options) = (rheo_core::Replay::AfterSequence(0), rheo_core::ReplayOptions::default());
    rheo.replay("s", "g", all, options).await.expect("replay is claimed");
    trial.clock().advance(LEASE / 2);
    eventually("the first run is cancelled", async || gated.cancelled() == 1).await;
    eventually("it is handled again", async || gated.begun().len() == 2).await;
    gated.let_through(1);
    all_is_settled(&rheo).await;
    assert_eq!(gated.begun(), [(1, 1), (1, 2)]);
    assert_eq!(consumer.health().counts.stale, 1);
}

/// A handler whose lease could not be renewed before its end is cancelled,
/// since others may have its event by then.
async fn a_failed_renewal(trial: Trial) {
    let rival = trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 1).await;
    let gated = Gated::shut(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g").lease(LEASE);
    let _consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("it is handled", async || gated.running() == 1).await;
    line.fail(Fault::Refused(ErrorKind::Unavailable));
    trial.clock().advance(LEASE / 2);
    eventually("a renewal fails", async || !line.renewals().is_empty()).await;
    assert_eq!(gated.cancelled(), 0, "the lease still had half its time");
    trial.clock().advance(LEASE / 2);
    eventually("the handler is cancelled", async || gated.cancelled() == 1).await;
    let taken_over = fetch(&rival, 1).await;
    assert_eq!(taken_over[0].lease.attempt(), 2);
    rival.ack(&taken_over[0]).await.expect("the rival's lease is current");
    assert_eq!(gated.begun(), firsts(1));
}

/// After an ack whose answer was lost, the same ack is sent under the same
/// token until the store says what became of it.
async fn a_lost_answer(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 1).await;
    line.fail_at(&["settle"], Fault::AnswerLost);
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g");
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("the ack is sent again", async || line.settles().len() >= 2).await;
    assert_eq!(consumer.health().unsettled, 1, "it was forgotten");
    line.mend();
    eventually("it is known to have ended", async || consumer.health().unsettled == 0).await;
    assert_eq!((lag(&rheo).await, gated.begun()), (0, firsts(1)));
    let sent = line.settles().into_iter().flat_map(|settle| settle.settlements);
    let sent: Vec<_> = sent.collect();
    assert!(sent.iter().all(|one| one.outcome == Outcome::Ack && one.token == sent[0].token));
}

/// The pauses between failures grow: 50 ms, 100 ms, …, each at least half.
async fn failures_make_it_pause(trial: Trial) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    // The handle itself does not try again where the answer was lost.
    line.fail_at(&["claim"], Fault::AnswerLost);
    let begun = Instant::now();
    let consumer = rheo.consumer("s", "g");
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("three claims fail", async || consumer.health().consecutive_failures >= 3).await;
    assert!(begun.elapsed() >= Duration::from_millis(75), "{:?}", begun.elapsed());
    line.mend();
    append_to(&rheo, 0, 1).await;
    all_is_settled(&rheo).await;
    assert_eq!(gated.begun(), firsts(1));
}

/// A fetch that fails shows in the health; events go on coming after it.
async fn a_failed_fetch(trial: Trial) {
    fails_and_goes_on(trial, &["claim"], "fetch").await;
}

/// A settle that fails shows in the health; it is made good, and others follow.
async fn a_failed_settle(trial: Trial) {
    fails_and_goes_on(trial, &["settle"], "settle").await;
}

async fn fails_and_goes_on(trial: Trial, at: &'static [&'static str], operation: &str) {
    trial.with_group(1, GroupOptions::default()).await;
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    append_to(&rheo, 0, 3).await;
    line.fail_at(at, Fault::Refused(ErrorKind::Unavailable));
    let gated = Gated::open(|_| Outcome::Ack);
    let consumer = rheo.consumer("s", "g");
    let consumer = consumer.start(gated.clone()).await.expect("the group is there");
    eventually("the failure shows", async || consumer.health().last_error.is_some()).await;
    let health = consumer.health();
    let error = health.last_error.expect("it was there before");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, operation));
    assert!(health.consecutive_failures > 0);
    line.mend();
    all_is_settled(&rheo).await;
    append_to(&rheo, 0, 2).await;
    all_is_settled(&rheo).await;
    let begun = gated.begun_sorted();
    assert_eq!(begun, firsts(5));
    eventually("it is well again", async || consumer.health().consecutive_failures == 0).await;
    assert!(consumer.health().last_error.is_some(), "the last failure is remembered");
}

//! Dropped futures: law E2, and what is all or nothing wherever it is cut off.

use std::collections::BTreeSet;

use futures::future::join_all;
use rheo_core::{
    Confirm, ErrorKind, GroupOptions, NewEvent, Replay, ReplayOptions, Result, Rheo, Start,
};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{
    ack_all, append_to, dead, drain, eventually, fetch, frontiers, info, polled_at_most, sequences,
};

case_table! {
    "drop.fetches_lose_nothing" [E2 C5] => fetches_lose_nothing;
    "drop.fetches_misalign_no_later_call" [E2] => fetches_misalign_no_later_call;
    "drop.appends_leave_no_gap" [E2 S3] => appends_leave_no_gap;
    "drop.appends_spoil_nobody_elses" [E2 S3] => appends_spoil_nobody_elses;
    "drop.settles_are_done_or_not" [E2 L3] => settles_are_done_or_not;
    "drop.a_replay_is_all_or_nothing" [E2 R4] needs [Transactional Replay Partitions]
        => a_replay_is_all_or_nothing;
    "drop.a_reset_is_all_or_nothing" [E2 R5] needs [Transactional Replay Partitions]
        => a_reset_is_all_or_nothing;
    "drop.a_replay_leaves_each_event_in_one_state" [E2 R4] needs [Replay]
        => a_replay_leaves_each_event_in_one_state;
}

/// How often a call is polled at most before it is dropped.
const MOST_POLLS: usize = 6;

/// A group that events leave only by an ack.
pub(crate) fn patient() -> GroupOptions {
    GroupOptions::default().max_attempts(u32::MAX)
}

/// After a thousand dropped fetches every event is delivered, in order, once its lease is over.
async fn fetches_lose_nothing(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    append_to(&rheo, 0, 500).await;
    let mut rng = trial.rng();
    let mut delivered = BTreeSet::new();
    for _ in 0..1000 {
        let limit = rng.usize(1..=3);
        let call = polled_at_most(rng.usize(0..MOST_POLLS), fetch(&rheo, limit)).await;
        let deliveries = call.unwrap_or_default();
        if rng.bool() {
            ack_all(&rheo, &deliveries).await;
            delivered.extend(sequences(&deliveries));
        }
    }
    trial.advance_secs(5);
    let rest = sequences(&drain(&rheo).await);
    assert!(rest.is_sorted());
    assert!(rest.iter().all(|&sequence| delivered.insert(sequence)), "an acked event came again");
    assert_eq!(delivered, (1..=500).collect());
    assert_eq!(info(&rheo).await.lag(), 0);
}

/// Between dropped fetches every other call gets the answer to its own question.
async fn fetches_misalign_no_later_call(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let mut rng = trial.rng();
    for round in 1..=100 {
        let appended = append_to(&rheo, 0, 1).await;
        polled_at_most(rng.usize(0..MOST_POLLS), fetch(&rheo, 2)).await;
        assert_eq!(rheo.read("s", 0, round - 1, 10).await.unwrap(), appended);
        polled_at_most(rng.usize(0..MOST_POLLS), fetch(&rheo, 2)).await;
        assert_eq!(rheo.partitions("s").await.unwrap(), 1);
        assert_eq!(info(&rheo).await.partitions[0].high_watermark, round);
    }
}

/// Sequences stay without gaps; what was answered is in the log, the rest at most once.
async fn appends_leave_no_gap(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let mut rng = trial.rng();
    let mut answered = Vec::new();
    for n in 0..200 {
        let polls = rng.usize(0..MOST_POLLS);
        answered.extend(polled_at_most(polls, append(&rheo, n)).await);
        if n % 20 == 0 {
            let next = append(&rheo, 1000 + n).await;
            assert_eq!(rheo.read("s", 0, next.0 - 1, 1).await.unwrap()[0].sequence(), next.0);
            answered.push(next);
        }
    }
    log_holds(&rheo, &answered).await;
}

/// Appends of other tasks on the same handle go through while some are dropped.
async fn appends_spoil_nobody_elses(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    let mut rng = trial.rng();
    let tasks = (0..8).map(|task| {
        let (rheo, mut rng) = (rheo.clone(), rng.fork());
        tokio::spawn(async move {
            let mut answered = Vec::new();
            for n in 0..30 {
                let (dropped, whole) = (task * 1000 + n, task * 1000 + 500 + n);
                let polls = rng.usize(0..MOST_POLLS);
                answered.extend(polled_at_most(polls, append(&rheo, dropped)).await);
                answered.push(append(&rheo, whole).await);
            }
            answered
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut answered = Vec::new();
    for task in join_all(tasks).await {
        answered.extend(task.expect("no append fails"));
    }
    log_holds(&rheo, &answered).await;
}

/// Appends an event that says `n`: its sequence, and `n`.
async fn append(rheo: &Rheo, n: u64) -> (u64, u64) {
    let event = NewEvent::new("n", json!(n)).partition(0);
    (rheo.append("s", event).await.expect("the append succeeds").sequence(), n)
}

/// Asserts that the log has no gap, no event twice, and each answered one in its place.
pub(crate) async fn log_holds(rheo: &Rheo, answered: &[(u64, u64)]) {
    let log = rheo.read("s", 0, 0, 10_000).await.unwrap();
    let found: Vec<_> = log.iter().map(|event| event.sequence()).collect();
    assert_eq!(found, (1..=log.len() as u64).collect::<Vec<_>>());
    let said: Vec<u64> =
        log.iter().map(|event| event.payload().as_u64().expect("it says n")).collect();
    assert_eq!(said.iter().collect::<BTreeSet<_>>().len(), said.len(), "one is there twice");
    for (sequence, n) in answered {
        assert_eq!(said[*sequence as usize - 1], *n);
    }
}

/// A dropped settle is done or not: settling again tells, and then it is done.
async fn settles_are_done_or_not(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    append_to(&rheo, 0, 200).await;
    let mut rng = trial.rng();
    for delivery in fetch(&rheo, 200).await {
        let dropped = polled_at_most(rng.usize(0..MOST_POLLS), rheo.ack(&delivery)).await;
        match dropped {
            Some(answer) => answer.unwrap(),
            None => settled_by_now(rheo.ack(&delivery).await),
        }
    }
    trial.advance_secs(5);
    assert_eq!(fetch(&rheo, 9).await, []);
    let counts = info(&rheo).await;
    assert_eq!((counts.lag(), counts.leased(), counts.waiting()), (0, 0, 0));
}

/// A cut-off call may have ended the lease, and nothing else may.
fn settled_by_now(answer: Result<()>) {
    if let Err(error) = answer {
        assert_eq!(error.kind(), ErrorKind::StaleLease);
    }
}

const PARTITIONS: u32 = 4;
const EACH: u64 = 10;

/// How many events of each partition come before the instant of the others.
const EARLY: u64 = 3;

/// A group that has acked all events of four partitions, of which the first
/// three are older than the others.
async fn drained(trial: &Trial) -> Rheo {
    let rheo = trial.with_group(PARTITIONS, patient()).await;
    for partition in 0..PARTITIONS {
        append_to(&rheo, partition, EARLY).await;
    }
    trial.advance_secs(1);
    for partition in 0..PARTITIONS {
        append_to(&rheo, partition, EACH - EARLY).await;
    }
    drain(&rheo).await;
    rheo
}

/// Waits until all partitions have the one frontier or all the other: a cut-off call may still
/// be under way in the store, but must not stop halfway.
async fn settles_on_one_of(rheo: &Rheo, one: u64, other: u64) {
    let whole = || async {
        let frontiers = frontiers(rheo).await;
        frontiers == [one; PARTITIONS as usize] || frontiers == [other; PARTITIONS as usize]
    };
    eventually("all partitions are replayed, or none is", whole).await;
}

/// A replay that is dropped at any point has taken effect in all partitions or in none. All
/// that are tried go back equally far, since one that was dropped may take effect late.
async fn a_replay_is_all_or_nothing(trial: Trial) {
    let rheo = drained(&trial).await;
    let mut rng = trial.rng();
    for _ in 0..60 {
        let selection = match rng.u8(0..3) {
            0 => Replay::AfterSequence(EARLY),
            1 => Replay::Matching(rheo_core::Query::new().after_sequence(EARLY)),
            _ => Replay::From(trial.clock().now()),
        };
        let call = rheo.replay("s", "g", selection, ReplayOptions::default());
        if let Some(answer) = polled_at_most(rng.usize(0..2 * MOST_POLLS), call).await {
            answer.unwrap();
            assert_eq!(frontiers(&rheo).await, [EARLY; PARTITIONS as usize]);
        }
        settles_on_one_of(&rheo, EARLY, EACH).await;
        drain_all(&rheo).await;
    }
}

/// A reset that is dropped at any point has taken effect in all partitions or in none.
async fn a_reset_is_all_or_nothing(trial: Trial) {
    let rheo = drained(&trial).await;
    let mut rng = trial.rng();
    for _ in 0..60 {
        let call = rheo.reset_group("s", "g", Confirm::Yes, Start::AfterSequence(4));
        if let Some(answer) = polled_at_most(rng.usize(0..2 * MOST_POLLS), call).await {
            answer.unwrap();
            assert_eq!(frontiers(&rheo).await, [4; PARTITIONS as usize]);
        }
        settles_on_one_of(&rheo, 4, EACH).await;
        drain_all(&rheo).await;
    }
}

/// Drains the group, though a cut-off call may still make leases stale.
async fn drain_all(rheo: &Rheo) {
    while info(rheo).await.lag() > 0 {
        for delivery in fetch(rheo, 1000).await {
            settled_by_now(rheo.ack(&delivery).await);
        }
        // Lets the case's time limit end a lag that never falls.
        tokio::task::yield_now().await;
    }
}

/// After cut-off replays of leased, dead and acked events each one is claimable, leased, dead or
/// done, and no two of these: whatever is dead is not handed out, and none comes twice.
async fn a_replay_leaves_each_event_in_one_state(trial: Trial) {
    let rheo = trial.with_group(1, patient()).await;
    append_to(&rheo, 0, 9).await;
    let mut rng = trial.rng();
    for _ in 0..40 {
        trial.advance_secs(5);
        let call = rheo.replay("s", "g", Replay::AfterSequence(0), ReplayOptions::default());
        polled_at_most(rng.usize(0..2 * MOST_POLLS), call).await;
        for delivery in fetch(&rheo, 9).await {
            match rng.u8(0..3) {
                0 => settled_by_now(rheo.ack(&delivery).await),
                1 => settled_by_now(rheo.reject(&delivery, "bad").await),
                _ => {}
            }
        }
        let whole = || async {
            let counts = info(&rheo).await;
            let listed = dead(&rheo).await.len() as u64;
            counts.dead_letters() == listed && counts.leased() + counts.waiting() + listed <= 9
        };
        eventually("each event is in one state", whole).await;
    }
    rheo.replay("s", "g", Replay::AfterSequence(0), ReplayOptions::default()).await.unwrap();
    assert_eq!(sequences(&drain(&rheo).await), (1..=9).collect::<Vec<_>>());
    assert_eq!(dead(&rheo).await, []);
}

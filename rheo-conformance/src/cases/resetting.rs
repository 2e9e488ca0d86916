//! Reset: law R5, a group starts anew.

use std::time::Duration;

use rheo_core::{Confirm, Delivery, ErrorKind, GroupOptions, Rheo, Start};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, attempts, dead, failure, fetch, frontiers, info, sequences};

case_table! {
    "reset.it_forgets_everything" [R5] needs [Replay] => it_forgets_everything;
    "reset.it_starts_where_it_is_told" [R5 G1] needs [Replay Partitions]
        => it_starts_where_it_is_told;
    "reset.it_keeps_the_groups_rules" [R5] needs [Replay] => it_keeps_the_groups_rules;
    "reset.unconfirmed_it_changes_nothing" [R5] needs [Replay] => unconfirmed_it_changes_nothing;
    "reset.the_log_stays_as_it_is" [R5 R6] needs [Replay] => the_log_stays_as_it_is;
}

/// A group with an acked, a dead, a delayed and a leased event, and what it was handed.
async fn used(trial: &Trial) -> (Rheo, Vec<Delivery>) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, 5).await;
    let held = fetch(&rheo, 4).await;
    rheo.ack(&held[0]).await.unwrap();
    rheo.reject(&held[1], "bad").await.unwrap();
    rheo.retry(&held[2], "later", Duration::from_secs(3600)).await.unwrap();
    (rheo, held)
}

/// Leases are stale, attempts begin at 1, no dead letter and no delay is left.
async fn it_forgets_everything(trial: Trial) {
    let (rheo, held) = used(&trial).await;
    rheo.reset_group("s", "g", Confirm::Yes, Start::Beginning).await.unwrap();
    assert_eq!(failure(rheo.ack(&held[3]).await), ErrorKind::StaleLease);
    assert_eq!(dead(&rheo).await, []);
    let counts = info(&rheo).await;
    assert_eq!((counts.leased(), counts.waiting(), counts.dead_letters()), (0, 0, 0));
    assert_eq!((counts.lag(), frontiers(&rheo).await), (5, vec![0]));
    let anew = fetch(&rheo, 9).await;
    assert_eq!((sequences(&anew), attempts(&anew)), (vec![1, 2, 3, 4, 5], vec![1; 5]));
}

/// Every kind of start counts, in each partition by itself.
async fn it_starts_where_it_is_told(trial: Trial) {
    let rheo = trial.with_group(2, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    trial.advance_secs(10);
    let instant = trial.clock().now();
    append_to(&rheo, 0, 1).await;
    append_to(&rheo, 1, 2).await;
    for (start, frontier) in [
        (Start::Beginning, [0, 0]),
        (Start::End, [4, 2]),
        (Start::AfterSequence(1), [1, 1]),
        (Start::AfterSequences(vec![2, 0]), [2, 0]),
        (Start::At(instant), [3, 0]),
        (Start::At(instant + Duration::from_micros(1)), [4, 2]),
    ] {
        rheo.reset_group("s", "g", Confirm::Yes, start.clone()).await.unwrap();
        assert_eq!(frontiers(&rheo).await, frontier, "{start:?}");
        let mut firsts = [None; 2];
        for delivery in fetch(&rheo, 9).await {
            let (partition, sequence) = (delivery.event.partition(), delivery.event.sequence());
            firsts[partition as usize].get_or_insert(sequence);
        }
        let expected = [0, 1].map(|n| (frontier[n] < [4, 2][n]).then_some(frontier[n] + 1));
        assert_eq!(firsts, expected, "{start:?}");
    }
}

/// The group keeps its `max_attempts`.
async fn it_keeps_the_groups_rules(trial: Trial) {
    let (rheo, _) = used(&trial).await;
    rheo.reset_group("s", "g", Confirm::Yes, Start::AfterSequence(4)).await.unwrap();
    assert_eq!(info(&rheo).await.max_attempts, 2);
    for attempt in 1..=2 {
        let deliveries = fetch(&rheo, 9).await;
        assert_eq!((sequences(&deliveries), attempts(&deliveries)), (vec![5], vec![attempt]));
        rheo.retry(&deliveries[0], "failed", Duration::ZERO).await.unwrap();
    }
    assert_eq!(dead(&rheo).await, [(5, 2, "failed".into())]);
}

/// Without `Confirm::Yes` it is `ConfirmRequired`, and all stays as it was.
async fn unconfirmed_it_changes_nothing(trial: Trial) {
    let (rheo, held) = used(&trial).await;
    let before = (info(&rheo).await, dead(&rheo).await);
    for confirm in [Confirm::No, Confirm::default()] {
        let refused = rheo.reset_group("s", "g", confirm, Start::Beginning).await;
        assert_eq!(failure(refused), ErrorKind::ConfirmRequired);
    }
    assert_eq!((info(&rheo).await, dead(&rheo).await), before);
    rheo.ack(&held[3]).await.unwrap();
}

/// A reset neither removes nor changes an event.
async fn the_log_stays_as_it_is(trial: Trial) {
    let (rheo, _) = used(&trial).await;
    let log = rheo.read("s", 0, 0, 100).await.unwrap();
    assert_eq!(log.len(), 5);
    rheo.reset_group("s", "g", Confirm::Yes, Start::End).await.unwrap();
    assert_eq!(rheo.read("s", 0, 0, 100).await.unwrap(), log);
}

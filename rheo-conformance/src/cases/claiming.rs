//! Claiming: laws C1 to C4.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use rheo_core::{Delivery, ErrorKind, FetchOptions, GroupOptions, Outcome, Rheo};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, attempts, failure, fetch, info, sequences};

case_table! {
    "claim.limit_is_respected" [C1] => limit_is_respected;
    "claim.nothing_to_claim_is_an_empty_answer" [C1] => nothing_to_claim_is_an_empty_answer;
    "claim.wrong_arguments_are_invalid" [C1] => wrong_arguments_are_invalid;
    "claim.limit_counts_over_all_partitions" [C1] needs [Partitions]
        => limit_counts_over_all_partitions;
    "claim.only_from_the_chosen_partitions" [C1] needs [Partitions]
        => only_from_the_chosen_partitions;
    "claim.each_claim_has_a_lease_id_of_its_own" [C2] => each_claim_has_a_lease_id_of_its_own;
    "claim.attempt_is_one_higher_each_time" [C2] => attempt_is_one_higher_each_time;
    "claim.a_lease_tells_its_terms" [C2] => a_lease_tells_its_terms;
    "claim.a_leased_event_is_nobody_elses" [C3] => a_leased_event_is_nobody_elses;
    "claim.two_open_claims_get_two_events" [C3] => two_open_claims_get_two_events;
    "claim.racing_claims_share_no_event" [C3] => racing_claims_share_no_event;
    "claim.an_expired_lease_has_one_heir" [C3 C5] => an_expired_lease_has_one_heir;
    "claim.lower_sequences_come_first" [C4] => lower_sequences_come_first;
    "claim.redeliveries_come_before_new_events" [C4] => redeliveries_come_before_new_events;
    "claim.redeliveries_of_every_kind_are_in_order" [C4]
        => redeliveries_of_every_kind_are_in_order;
    "claim.a_busy_partition_starves_no_other" [C4] needs [Partitions]
        => a_busy_partition_starves_no_other;
    "claim.a_failing_partition_starves_no_other" [C4] needs [Partitions]
        => a_failing_partition_starves_no_other;
}

/// A fetch claims at most `limit` events, and the next one goes on after them.
async fn limit_is_respected(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    assert_eq!(sequences(&fetch(&rheo, 2).await), [1, 2]);
    assert_eq!(sequences(&fetch(&rheo, 1).await), [3]);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [4, 5]);
}

/// A fetch that finds nothing returns at once, before and after the log's end.
async fn nothing_to_claim_is_an_empty_answer(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    assert_eq!(fetch(&rheo, 10).await, []);
    append_to(&rheo, 0, 1).await;
    assert_eq!(sequences(&fetch(&rheo, 10).await), [1]);
    assert_eq!(fetch(&rheo, 10).await, []);
}

/// A limit of 0, a lease of zero and a partition out of range are `Invalid`, and claim nothing.
async fn wrong_arguments_are_invalid(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let options = FetchOptions::default;
    for (limit, options) in [
        (0, options()),
        (1, options().lease(Duration::ZERO)),
        (1, options().partitions([1])),
        (1, options().partitions([0, 7])),
        (1, options().consumer("")),
    ] {
        let refused = rheo.fetch("s", "g", limit, options.clone()).await;
        assert_eq!(failure(refused), ErrorKind::Invalid, "limit {limit}, {options:?}");
    }
    assert_eq!(attempts(&fetch(&rheo, 1).await), [1]);
}

/// The limit holds over all partitions together, and every event comes in the end.
async fn limit_counts_over_all_partitions(trial: Trial) {
    let rheo = trial.with_group(4, GroupOptions::default()).await;
    for partition in 0..4 {
        append_to(&rheo, partition, 3).await;
    }
    let mut positions = HashSet::new();
    loop {
        let deliveries = fetch(&rheo, 5).await;
        assert!(deliveries.len() <= 5, "{}", deliveries.len());
        if deliveries.is_empty() {
            break;
        }
        for delivery in deliveries {
            assert!(positions.insert(delivery.event.position()));
        }
    }
    assert_eq!(positions.len(), 12);
}

/// A fetch that names partitions claims from these alone.
async fn only_from_the_chosen_partitions(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 2).await;
    }
    let options = FetchOptions::default().partitions([2, 0, 2]);
    let mut claimed = Vec::new();
    for _ in 0..4 {
        let deliveries = rheo.fetch("s", "g", 1, options.clone()).await.unwrap();
        claimed.extend(deliveries.iter().map(|delivery| delivery.event.position()));
    }
    claimed.sort_unstable_by_key(|position| (position.partition, position.sequence));
    let claimed: Vec<_> = claimed.iter().map(|at| (at.partition, at.sequence)).collect();
    assert_eq!(claimed, [(0, 1), (0, 2), (2, 1), (2, 2)]);
    assert_eq!(rheo.fetch("s", "g", 9, options).await.unwrap(), []);
}

/// No two claims share a lease id, be it of one fetch or of one event.
async fn each_claim_has_a_lease_id_of_its_own(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(9)).await;
    append_to(&rheo, 0, 4).await;
    let mut ids = HashSet::new();
    for _ in 0..4 {
        let deliveries = fetch(&rheo, 4).await;
        assert_eq!(deliveries.len(), 4);
        for delivery in &deliveries {
            assert!(ids.insert(delivery.lease.lease_id()), "{:?}", delivery.lease);
            assert!(!delivery.lease.receipt().to_string().is_empty());
        }
        rheo.release(&deliveries[0]).await.unwrap();
        rheo.retry(&deliveries[1], "again", Duration::ZERO).await.unwrap();
        trial.advance_secs(5);
    }
}

/// The attempt goes up by one with every claim, whatever ended the last one.
async fn attempt_is_one_higher_each_time(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(4)).await;
    append_to(&rheo, 0, 1).await;
    assert_eq!(attempts(&fetch(&rheo, 1).await), [1]);
    trial.advance_secs(5);
    let second = fetch(&rheo, 1).await;
    assert_eq!(attempts(&second), [2]);
    rheo.retry(&second[0], "at once", Duration::ZERO).await.unwrap();
    let third = fetch(&rheo, 1).await;
    assert_eq!(attempts(&third), [3]);
    rheo.retry(&third[0], "later", Duration::from_secs(1)).await.unwrap();
    trial.advance_secs(1);
    assert_eq!(attempts(&fetch(&rheo, 1).await), [4]);
}

/// A lease names its group and consumer, when it was claimed and when it expires.
async fn a_lease_tells_its_terms(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    trial.advance_micros(1_234_567);
    let lasting = Duration::from_micros(7_654_321);
    let options = FetchOptions::default().consumer("worker é: 7").lease(lasting);
    let Delivery { event, lease } = rheo.fetch("s", "g", 1, options).await.unwrap().remove(0);
    assert_eq!((lease.stream().as_str(), lease.group().as_str()), ("s", "g"));
    assert_eq!(lease.consumer().as_str(), "worker é: 7");
    assert_eq!(lease.position(), event.position());
    assert_eq!(lease.leased_at(), trial.clock().now());
    assert_eq!(lease.expires_at(), trial.clock().now() + lasting);
}

/// While a lease lasts, neither its own consumer nor another gets the event.
async fn a_leased_event_is_nobody_elses(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    assert_eq!(fetch(&rheo, 9).await.len(), 1);
    assert_eq!(fetch(&rheo, 9).await, []);
    assert_eq!(fetch(&trial.rheo().await, 9).await, []);
    assert_eq!(info(&rheo).await.leased(), 1);
}

/// Two claims of one event each, open at the same time, get two different events at once.
async fn two_open_claims_get_two_events(trial: Trial) {
    let one = trial.with_group(1, GroupOptions::default()).await;
    let other = trial.rheo().await;
    append_to(&one, 0, 40).await;
    for round in 0..20 {
        let (first, second) = tokio::join!(fetch(&one, 1), fetch(&other, 1));
        let mut both = [sequences(&first), sequences(&second)].concat();
        both.sort_unstable();
        assert_eq!(both, [2 * round + 1, 2 * round + 2]);
    }
}

/// Of many clients that claim at once, no two get the same event, and none is left out.
async fn racing_claims_share_no_event(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 200).await;
    let mut claimed: Vec<_> = race(&trial).await.iter().flat_map(|own| sequences(own)).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, (1..=200).collect::<Vec<_>>());
}

/// Of many clients that find the same expired leases, one gets each event, as attempt 2.
async fn an_expired_lease_has_one_heir(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 100).await;
    let expired = fetch(&rheo, 100).await;
    trial.advance_secs(5);
    let heirs = race(&trial).await.concat();
    assert!(attempts(&heirs).iter().all(|&attempt| attempt == 2));
    let mut claimed = sequences(&heirs);
    claimed.sort_unstable();
    assert_eq!(claimed, (1..=100).collect::<Vec<_>>());
    for answer in rheo.settle(expired.iter().map(|old| (old, Outcome::Ack))).await {
        assert_eq!(failure(answer), ErrorKind::StaleLease);
    }
}

/// Eight clients that claim a few at a time until nothing is left: what each got.
async fn race(trial: &Trial) -> Vec<Vec<Delivery>> {
    let mut rng = trial.rng();
    let mut clients = Vec::new();
    for _ in 0..8 {
        let (rheo, mut rng) = (trial.rheo().await, rng.fork());
        clients.push(tokio::spawn(async move {
            let mut own = Vec::new();
            loop {
                let deliveries = fetch(&rheo, rng.usize(1..=7)).await;
                if deliveries.is_empty() {
                    return own;
                }
                own.extend(deliveries);
                tokio::task::yield_now().await;
            }
        }));
    }
    join_all(clients).await.into_iter().map(|own| own.expect("no client panics")).collect()
}

/// Inside a partition events come in the order of their sequences.
async fn lower_sequences_come_first(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 30).await;
    let mut rng = trial.rng();
    let mut claimed = Vec::new();
    while claimed.len() < 30 {
        claimed.extend(sequences(&fetch(&rheo, rng.usize(1..=6)).await));
    }
    assert_eq!(claimed, (1..=30).collect::<Vec<_>>());
}

/// What was handed back comes before what was never handed out.
async fn redeliveries_come_before_new_events(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 9).await;
    let first = fetch(&rheo, 5).await;
    rheo.retry(&first[3], "again", Duration::ZERO).await.unwrap();
    rheo.release(&first[1]).await.unwrap();
    let one = fetch(&rheo, 1).await;
    assert_eq!((sequences(&one), attempts(&one)), (vec![2], vec![1]));
    let rest = fetch(&rheo, 3).await;
    assert_eq!((sequences(&rest), attempts(&rest)), (vec![4, 6, 7], vec![2, 1, 1]));
}

/// Expired, retried, delayed and released events come in the order of their sequences.
async fn redeliveries_of_every_kind_are_in_order(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 9).await;
    let first = fetch(&rheo, 8).await;
    let again = |after| Outcome::retry_after("again", Duration::from_secs(after));
    let outcomes = [
        (&first[6], again(0)),
        (&first[4], again(2)),
        (&first[2], Outcome::Release),
        (&first[0], again(5)),
        (&first[3], Outcome::Ack),
    ];
    for answer in rheo.settle(outcomes).await {
        answer.unwrap();
    }
    trial.advance_secs(5);
    let second = fetch(&rheo, 9).await;
    assert_eq!(sequences(&second), [1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(attempts(&second), [2, 2, 1, 2, 2, 2, 2, 1]);
}

/// A lone event is handed out soon, however many wait in the partitions beside it.
async fn a_busy_partition_starves_no_other(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    append_to(&rheo, 0, 200).await;
    append_to(&rheo, 2, 200).await;
    for round in 1..=3 {
        append_to(&rheo, 1, 1).await;
        assert!(comes_within(&rheo, 1, round, 12).await, "event {round} of partition 1 waits");
    }
}

/// An event that fails at once, again and again, does not keep other partitions waiting.
async fn a_failing_partition_starves_no_other(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default().max_attempts(1000)).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 1).await;
    }
    let mut waiting = HashSet::from([1, 2]);
    for _ in 0..12 {
        for delivery in fetch(&rheo, 1).await {
            if delivery.event.partition() == 0 {
                rheo.retry(&delivery, "it fails", Duration::ZERO).await.unwrap();
            } else {
                waiting.remove(&delivery.event.partition());
            }
        }
    }
    assert_eq!(waiting, HashSet::new());
}

/// Whether so many fetches of one event hand out this one.
async fn comes_within(rheo: &Rheo, partition: u32, sequence: u64, fetches: usize) -> bool {
    for _ in 0..fetches {
        for delivery in fetch(rheo, 1).await {
            let event = &delivery.event;
            if (event.partition(), event.sequence()) == (partition, sequence) {
                return true;
            }
        }
    }
    false
}

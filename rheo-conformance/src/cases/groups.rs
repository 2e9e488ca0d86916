//! Creating and deleting groups: laws G1 and G2.

use std::time::Duration;

use futures::future::join_all;
use rheo_core::{
    Confirm, ErrorKind, FetchOptions, GroupOptions, NewEvent, Query, Result, Rheo, Start, Timestamp,
};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, failure, fetch, sequences};

case_table! {
    "group.it_begins_at_the_beginning_with_5_attempts" [G1] => it_begins_at_the_beginning;
    "group.it_keeps_its_settings" [G1] => it_keeps_its_settings;
    "group.it_can_be_ordered" [G1] needs [OrderedDelivery] => it_can_be_ordered;
    "group.0_attempts_are_invalid" [G1] => no_attempts_are_invalid;
    "group.it_can_begin_at_the_end" [G1] => it_can_begin_at_the_end;
    "group.it_can_begin_after_a_sequence" [G1] => it_can_begin_after_a_sequence;
    "group.it_can_begin_beyond_the_end" [G1] => it_can_begin_beyond_the_end;
    "group.it_can_begin_after_a_sequence_of_each_partition" [G1] needs [Partitions]
        => it_can_begin_after_a_sequence_of_each;
    "group.it_can_begin_at_an_instant" [G1] => it_can_begin_at_an_instant;
    "group.an_instant_is_found_in_each_partition" [G1] needs [Partitions]
        => an_instant_is_found_in_each_partition;
    "group.a_second_create_already_exists" [G1] => a_second_create_already_exists;
    "group.one_of_32_racing_creates_wins" [G1] => one_of_32_racing_creates_wins;
    "group.groups_never_affect_each_other" [G1] => groups_never_affect_each_other;
    "group.deleting_needs_confirmation" [G2] => deleting_needs_confirmation;
    "group.leases_of_a_deleted_one_are_stale" [G2] => leases_of_a_deleted_one_are_stale;
    "group.one_created_anew_begins_anew" [G2] => one_created_anew_begins_anew;
    "group.a_deleted_stream_takes_its_groups_along" [G2] => a_deleted_stream_takes_its_groups;
}

/// A stream `s` of so many partitions.
async fn with_stream(trial: &Trial, partitions: u32) -> Rheo {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", partitions).await.expect("the stream is new");
    rheo
}

async fn create(rheo: &Rheo, options: GroupOptions) {
    rheo.create_group("s", "g", options).await.expect("the group is new");
}

/// Creates group `g` with this start, and tells the first events that it is
/// handed, as (partition, sequence), and its lag before.
async fn begun(rheo: &Rheo, start: Start) -> (Vec<(u32, u64)>, u64) {
    create(rheo, GroupOptions::default().start(start)).await;
    let lag = rheo.lag("s", "g").await.expect("it tells").total();
    let deliveries = fetch(rheo, 100).await;
    let event = deliveries.iter().map(|one| &one.event);
    let mut positions: Vec<_> = event.map(|one| (one.partition(), one.sequence())).collect();
    positions.sort_unstable();
    rheo.delete_group("s", "g", Confirm::Yes).await.expect("it is deleted");
    (positions, lag)
}

/// By default a group begins with the first event, is not ordered, and has 5 attempts.
async fn it_begins_at_the_beginning(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    append_to(&rheo, 0, 3).await;
    create(&rheo, GroupOptions::default()).await;
    let info = rheo.group_info("s", "g").await.expect("it tells");
    assert_eq!((info.name.as_str(), info.max_attempts, info.ordered), ("g", 5, false));
    assert_eq!(info.lag(), 3);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [1, 2, 3]);
}

/// The attempts are the group's own, else the instance's, for every client.
async fn it_keeps_its_settings(trial: Trial) {
    let rheo = trial.builder().await.max_attempts(7).build().await.expect("it starts");
    rheo.create_stream("s", 1).await.expect("the stream is new");
    for (group, options) in [
        ("default", GroupOptions::default()),
        ("one", GroupOptions::default().max_attempts(1)),
        ("most", GroupOptions::default().max_attempts(1_000_000)),
    ] {
        rheo.create_group("s", group, options).await.expect("the group is new");
    }
    let other = trial.rheo().await;
    for (group, max_attempts) in [("default", 7), ("one", 1), ("most", 1_000_000)] {
        let info = other.group_info("s", group).await.expect("it tells");
        assert_eq!(info.max_attempts, max_attempts);
    }
}

/// A group that is to be ordered says that it is.
async fn it_can_be_ordered(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().ordered(true)).await;
    assert!(rheo.group_info("s", "g").await.expect("it tells").ordered);
}

/// A group that would never hand out an event is invalid.
async fn no_attempts_are_invalid(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let created = rheo.create_group("s", "g", GroupOptions::default().max_attempts(0)).await;
    assert_eq!(failure(created), ErrorKind::Invalid);
    assert_eq!(rheo.list_groups("s").await.expect("it lists"), []);
}

/// A group that begins at the end is handed only what is appended later.
async fn it_can_begin_at_the_end(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    append_to(&rheo, 0, 3).await;
    create(&rheo, GroupOptions::default().start(Start::End)).await;
    assert_eq!(rheo.lag("s", "g").await.expect("it tells").total(), 0);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [0; 0]);
    append_to(&rheo, 0, 2).await;
    assert_eq!(sequences(&fetch(&rheo, 10).await), [4, 5]);
}

/// A group that begins after a sequence is handed the next one first.
async fn it_can_begin_after_a_sequence(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    append_to(&rheo, 0, 3).await;
    assert_eq!(begun(&rheo, Start::AfterSequence(0)).await, (vec![(0, 1), (0, 2), (0, 3)], 3));
    assert_eq!(begun(&rheo, Start::AfterSequence(2)).await, (vec![(0, 3)], 1));
    assert_eq!(begun(&rheo, Start::AfterSequence(3)).await, (vec![], 0));
}

/// A group that begins after a sequence that is not there yet has no lag, and
/// is handed nothing until the log has passed it.
async fn it_can_begin_beyond_the_end(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    create(&rheo, GroupOptions::default().start(Start::AfterSequence(4))).await;
    append_to(&rheo, 0, 3).await;
    assert_eq!(rheo.lag("s", "g").await.expect("it tells").total(), 0);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [0; 0]);
    append_to(&rheo, 0, 3).await;
    assert_eq!(rheo.lag("s", "g").await.expect("it tells").total(), 2);
    assert_eq!(sequences(&fetch(&rheo, 10).await), [5, 6]);
}

/// A start can name one sequence for all partitions, or one for each; any
/// other number of them is invalid.
async fn it_can_begin_after_a_sequence_of_each(trial: Trial) {
    let rheo = with_stream(&trial, 3).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 3).await;
    }
    let each = Start::AfterSequences(vec![3, 0, 2]);
    let expected = vec![(1, 1), (1, 2), (1, 3), (2, 3)];
    assert_eq!(begun(&rheo, each).await, (expected, 4));
    let expected = vec![(0, 3), (1, 3), (2, 3)];
    assert_eq!(begun(&rheo, Start::AfterSequence(2)).await, (expected, 3));
    for wrong in [vec![], vec![1, 1], vec![1; 4]] {
        let options = GroupOptions::default().start(Start::AfterSequences(wrong));
        let created = rheo.create_group("s", "g", options).await;
        assert_eq!(failure(created), ErrorKind::Invalid);
    }
}

/// A group that begins at an instant is handed the first event at or after it,
/// to the microsecond.
async fn it_can_begin_at_an_instant(trial: Trial) {
    let rheo = with_stream(&trial, 1).await;
    let start = trial.clock().now();
    for _ in 0..3 {
        append_to(&rheo, 0, 1).await;
        trial.clock().advance(Duration::from_micros(2));
    }
    let at = |micros| start + Duration::from_micros(micros);
    let table = [(Timestamp::MIN, 3), (at(0), 3), (at(1), 2), (at(2), 2), (at(4), 1)];
    for (instant, count) in table.into_iter().chain([(at(5), 0), (Timestamp::MAX, 0)]) {
        let expected = (3 - count..3).map(|before| (0, before + 1)).collect();
        assert_eq!(begun(&rheo, Start::At(instant)).await, (expected, count), "{instant}");
    }
}

/// The first event at or after an instant is another one in each partition,
/// and a partition that has none begins at its end.
async fn an_instant_is_found_in_each_partition(trial: Trial) {
    let rheo = with_stream(&trial, 4).await;
    append_to(&rheo, 0, 2).await;
    append_to(&rheo, 1, 1).await;
    trial.advance_secs(1);
    let instant = trial.clock().now();
    append_to(&rheo, 0, 1).await;
    append_to(&rheo, 2, 2).await;
    let options = GroupOptions::default().start(Start::At(instant));
    create(&rheo, options).await;
    trial.advance_secs(1);
    append_to(&rheo, 1, 1).await;
    append_to(&rheo, 3, 1).await;
    let deliveries = fetch(&rheo, 100).await;
    let event = deliveries.iter().map(|one| &one.event);
    let mut positions: Vec<_> = event.map(|one| (one.partition(), one.sequence())).collect();
    positions.sort_unstable();
    assert_eq!(positions, [(0, 3), (1, 2), (2, 1), (2, 2), (3, 1)]);
}

/// The second create of a group is refused, and leaves the first as it is.
async fn a_second_create_already_exists(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, 2).await;
    fetch(&rheo, 1).await;
    for rheo in [rheo.clone(), trial.rheo().await] {
        let options = GroupOptions::default().max_attempts(9).start(Start::End);
        let created = rheo.create_group("s", "g", options).await;
        assert_eq!(failure(created), ErrorKind::AlreadyExists);
    }
    let info = rheo.group_info("s", "g").await.expect("it tells");
    assert_eq!((info.max_attempts, info.lag(), info.leased()), (2, 2, 1));
}

/// Of 32 racing creates of a group exactly one wins.
async fn one_of_32_racing_creates_wins(trial: Trial) {
    let clients = [with_stream(&trial, 1).await, trial.rheo().await];
    let creates = (1..=32).map(|n| {
        let (rheo, options) = (clients[n % 2].clone(), GroupOptions::default());
        let options = options.max_attempts(n as u32);
        tokio::spawn(async move { rheo.create_group("s", "g", options).await })
    });
    let results: Vec<Result<()>> =
        join_all(creates).await.into_iter().map(|joined| joined.expect("no panic")).collect();
    let won: Vec<usize> = (0..32).filter(|&at| results[at].is_ok()).collect();
    assert_eq!(won.len(), 1);
    let info = clients[0].group_info("s", "g").await.expect("it tells");
    assert_eq!(info.max_attempts as usize, won[0] + 1);
    for lost in results.into_iter().filter(Result::is_err) {
        assert_eq!(failure(lost), ErrorKind::AlreadyExists);
    }
}

/// What one group claims and settles, another on the same stream does not notice.
async fn groups_never_affect_each_other(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    rheo.create_group("s", "other", GroupOptions::default()).await.expect("the group is new");
    append_to(&rheo, 0, 3).await;
    let deliveries = fetch(&rheo, 3).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.reject(&deliveries[1], "no").await.expect("the lease is current");
    let before = rheo.group_info("s", "g").await.expect("it tells");
    let info = rheo.group_info("s", "other").await.expect("it tells");
    assert_eq!((info.lag(), info.leased(), info.dead_letters()), (3, 0, 0));
    let options = FetchOptions::default();
    let others = rheo.fetch("s", "other", 10, options).await.expect("it fetches");
    assert_eq!(sequences(&others), [1, 2, 3]);
    assert!(others.iter().all(|one| one.lease.attempt() == 1));
    rheo.delete_group("s", "other", Confirm::Yes).await.expect("it is deleted");
    assert_eq!(rheo.group_info("s", "g").await.expect("it tells"), before);
    rheo.ack(&deliveries[2]).await.expect("the lease is current");
}

/// Without confirmation nothing is deleted.
async fn deleting_needs_confirmation(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    let deleted = rheo.delete_group("s", "g", Confirm::No).await;
    assert_eq!(failure(deleted), ErrorKind::ConfirmRequired);
    let deleted = rheo.delete_stream("s", Confirm::default()).await;
    assert_eq!(failure(deleted), ErrorKind::ConfirmRequired);
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads").len(), 1);
    rheo.ack(&delivery).await.expect("the lease is current");
    rheo.delete_group("s", "g", Confirm::Yes).await.expect("it is deleted");
    assert_eq!(rheo.list_groups("s").await.expect("it lists"), []);
    rheo.delete_stream("s", Confirm::Yes).await.expect("it is deleted");
    assert_eq!(rheo.list_streams().await.expect("it lists"), []);
}

/// A lease of a deleted group settles nothing, also where a group of that name
/// is there again and has leased the event.
async fn leases_of_a_deleted_one_are_stale(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let old = fetch(&rheo, 1).await.remove(0);
    rheo.delete_group("s", "g", Confirm::Yes).await.expect("it is deleted");
    rheo.ack(&old).await.expect_err("the group is gone");
    create(&rheo, GroupOptions::default()).await;
    assert_eq!(failure(rheo.ack(&old).await), ErrorKind::StaleLease);
    let new = fetch(&rheo, 1).await.remove(0);
    let told = [
        failure(rheo.ack(&old).await),
        failure(rheo.retry(&old, "again", Duration::ZERO).await),
        failure(rheo.reject(&old, "no").await),
        failure(rheo.release(&old).await),
        failure(rheo.renew(&old, Duration::from_secs(5)).await),
    ];
    assert_eq!(told, [ErrorKind::StaleLease; 5]);
    rheo.ack(&new).await.expect("the lease is current");
}

/// A group created anew under an old name has nothing of the old one.
async fn one_created_anew_begins_anew(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let deliveries = fetch(&rheo, 3).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.reject(&deliveries[1], "no").await.expect("the lease is current");
    rheo.delete_group("s", "g", Confirm::Yes).await.expect("it is deleted");
    create(&rheo, GroupOptions::default()).await;
    let info = rheo.group_info("s", "g").await.expect("it tells");
    assert_eq!((info.lag(), info.leased(), info.dead_letters()), (3, 0, 0));
    let again = fetch(&rheo, 10).await;
    assert_eq!(sequences(&again), [1, 2, 3]);
    assert!(again.iter().all(|one| one.lease.attempt() == 1));
}

/// With a stream go its groups, their leases and its events: a stream of that
/// name, created anew, has none of them.
async fn a_deleted_stream_takes_its_groups(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    rheo.append("s", NewEvent::new("t", 1).id(uuid::Uuid::nil())).await.expect("it is appended");
    append_to(&rheo, 0, 1).await;
    let deliveries = fetch(&rheo, 2).await;
    rheo.reject(&deliveries[0], "no").await.expect("the lease is current");
    rheo.delete_stream("s", Confirm::Yes).await.expect("it is deleted");
    rheo.create_stream("s", 1).await.expect("the name is free");
    assert_eq!(rheo.list_groups("s").await.expect("it lists"), []);
    assert_eq!(rheo.query("s", &Query::new()).await.expect("it finds"), []);
    create(&rheo, GroupOptions::default()).await;
    let info = rheo.group_info("s", "g").await.expect("it tells");
    assert_eq!((info.lag(), info.leased(), info.dead_letters()), (0, 0, 0));
    let event = NewEvent::new("t", 2).id(uuid::Uuid::nil());
    let stored = rheo.append("s", event).await.expect("it is appended");
    assert_eq!((stored.sequence(), stored.payload()), (1, 2.into()));
    assert_eq!(failure(rheo.ack(&deliveries[1]).await), ErrorKind::StaleLease);
    assert_eq!(fetch(&rheo, 10).await[0].lease.attempt(), 1);
}

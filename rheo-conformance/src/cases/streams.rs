//! Streams and where events go in them: laws S1, S2 and S6.

use std::time::Duration;

use futures::future::join_all;
use rheo_core::backend::{Claim, DeadLetters, GroupRef, Partitions, Settle, Settlement, StreamRef};
use rheo_core::{
    Confirm, ConsumerId, ErrorKind, Fence, FetchOptions, GroupName, GroupOptions, LeaseId,
    NewEvent, Outcome, Position, Query, Replay, ReplayOptions, Result, Rheo, Start, StreamName,
    Token,
};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, failure};

case_table! {
    "stream.a_second_create_already_exists" [S1] => a_second_create_already_exists;
    "stream.one_of_32_racing_creates_wins" [S1] => one_of_32_racing_creates_wins;
    "stream.partitions_are_1_to_1024" [S1] => partitions_are_1_to_1024;
    "stream.all_1024_partitions_work" [S1] needs [Partitions] => all_1024_partitions_work;
    "stream.nothing_creates_one_by_itself" [S1 S2] => nothing_creates_one_by_itself;
    "stream.a_missing_one_is_told_by_every_operation" [S2] => a_missing_one_is_told;
    "stream.a_missing_group_is_told_by_every_operation" [S2] => a_missing_group_is_told;
    "stream.replay_and_reset_tell_what_is_missing" [S2] needs [Replay]
        => replay_and_reset_tell_what_is_missing;
    "stream.a_deleted_one_is_missing_to_every_client" [S2] => a_deleted_one_is_missing;
    "stream.one_created_anew_is_empty" [S1 S2 S3] needs [Partitions] => one_created_anew_is_empty;
    "stream.a_missing_one_is_told_before_its_group" [S2] => told_before_its_group;
    "routing.keys_go_where_they_always_went" [S6] needs [Partitions] => keys_go_where_they_went;
    "routing.an_explicit_partition_wins" [S6] needs [Partitions] => an_explicit_partition_wins;
    "routing.without_a_key_it_is_partition_0" [S6] needs [Partitions] => without_a_key_it_is_0;
    "routing.a_partition_out_of_range_is_invalid" [S6] => a_partition_out_of_range_is_invalid;
}

/// The second create of a stream is refused, and leaves the first as it is.
async fn a_second_create_already_exists(trial: Trial) {
    let (one, other) = (trial.rheo().await, trial.rheo().await);
    one.create_stream("s", 1).await.expect("the stream is new");
    append_to(&one, 0, 1).await;
    for rheo in [&one, &other] {
        assert_eq!(failure(rheo.create_stream("s", 1).await), ErrorKind::AlreadyExists);
    }
    assert_eq!(other.read("s", 0, 0, 10).await.expect("it reads").len(), 1);
}

/// Of 32 racing creates exactly one wins, and the others learn that it exists.
async fn one_of_32_racing_creates_wins(trial: Trial) {
    let (one, other) = (trial.rheo().await, trial.rheo().await);
    let creates = (0..32).map(|n| {
        let rheo = if n % 2 == 0 { one.clone() } else { other.clone() };
        tokio::spawn(async move { rheo.create_stream("s", 1).await })
    });
    let results = join_all(creates).await.into_iter().map(|joined| joined.expect("no panic"));
    let (won, lost): (Vec<_>, Vec<_>) = results.partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 31));
    for result in lost {
        assert_eq!(failure(result), ErrorKind::AlreadyExists);
    }
}

/// No partition and more than 1024 are invalid, and create nothing.
async fn partitions_are_1_to_1024(trial: Trial) {
    let rheo = trial.rheo().await;
    for partitions in [0, 1025, u32::MAX] {
        assert_eq!(failure(rheo.create_stream("s", partitions).await), ErrorKind::Invalid);
    }
    assert_eq!(rheo.list_streams().await.expect("it lists"), []);
    rheo.create_stream("s", 1).await.expect("the stream is new");
    assert_eq!(rheo.partitions("s").await.expect("it is there"), 1);
}

/// A stream of 1024 partitions keeps and delivers events in the first and the last.
async fn all_1024_partitions_work(trial: Trial) {
    let rheo = trial.with_group(1024, GroupOptions::default()).await;
    for partition in [0, 1023] {
        let event = append_to(&rheo, partition, 1).await.remove(0);
        assert_eq!((event.partition(), event.sequence()), (partition, 1));
        assert_eq!(rheo.read("s", partition, 0, 10).await.expect("it reads"), [event]);
    }
    let options = FetchOptions::default();
    let deliveries = rheo.fetch("s", "g", 10, options).await.expect("the fetch succeeds");
    let mut partitions: Vec<_> = deliveries.iter().map(|one| one.event.partition()).collect();
    partitions.sort_unstable();
    assert_eq!(partitions, [0, 1023]);
    assert_eq!(trial.rheo().await.partitions("s").await.expect("it is there"), 1024);
}

/// Appending to a stream that is missing, or making a group on it, does not create it.
async fn nothing_creates_one_by_itself(trial: Trial) {
    let rheo = trial.rheo().await;
    let appended = rheo.append("s", NewEvent::new("t", 1)).await;
    assert_eq!(failure(appended), ErrorKind::StreamNotFound);
    let created = rheo.create_group("s", "g", GroupOptions::default()).await;
    assert_eq!(failure(created), ErrorKind::StreamNotFound);
    assert_eq!(rheo.list_streams().await.expect("it lists"), []);
}

/// Every operation on a missing stream says so.
async fn a_missing_one_is_told(trial: Trial) {
    let rheo = trial.rheo().await;
    told_missing(&rheo).await;
}

async fn told_missing(rheo: &Rheo) {
    let told = [
        failure(rheo.partitions("s").await),
        failure(rheo.delete_stream("s", Confirm::Yes).await),
        failure(rheo.append("s", NewEvent::new("t", 1)).await),
        failure(rheo.append_batch("s", vec![NewEvent::new("t", 1)]).await),
        failure(rheo.append_batch("s", vec![]).await),
        failure(rheo.read("s", 0, 0, 10).await),
        failure(rheo.query("s", &Query::new()).await),
        failure(rheo.query_page("s", &Query::new(), None).await),
        failure(rheo.list_groups("s").await),
        failure(rheo.create_group("s", "g", GroupOptions::default()).await),
        failure(rheo.create_group("s", "g", GroupOptions::default().start(Start::End)).await),
    ];
    assert_eq!(told, [ErrorKind::StreamNotFound; 11]);
    assert_eq!(of_group_operations(rheo).await, [ErrorKind::StreamNotFound; 6]);
}

/// Every operation on a missing group of a stream that is there says so.
async fn a_missing_group_is_told(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    assert_eq!(of_group_operations(&rheo).await, [ErrorKind::GroupNotFound; 6]);
    assert_eq!(rheo.list_groups("s").await.expect("it lists"), []);
}

async fn of_group_operations(rheo: &Rheo) -> [ErrorKind; 6] {
    [
        failure(rheo.fetch("s", "g", 1, FetchOptions::default()).await),
        failure(rheo.lag("s", "g").await),
        failure(rheo.group_info("s", "g").await),
        failure(rheo.dead_letters("s", "g", 10, None).await),
        failure(rheo.wait("s", "g", Duration::from_millis(1)).await),
        failure(rheo.delete_group("s", "g", Confirm::Yes).await),
    ]
}

/// Replay and reset tell a missing stream, then a missing group.
async fn replay_and_reset_tell_what_is_missing(trial: Trial) {
    let rheo = trial.rheo().await;
    for expected in [ErrorKind::StreamNotFound, ErrorKind::GroupNotFound] {
        for replay in [Replay::AfterSequence(0), Replay::DeadLetters] {
            let replayed = rheo.replay("s", "g", replay, ReplayOptions::default()).await;
            assert_eq!(failure(replayed), expected);
        }
        let reset = rheo.reset_group("s", "g", Confirm::Yes, Start::Beginning).await;
        assert_eq!(failure(reset), expected);
        rheo.create_stream("s", 1).await.ok();
    }
}

/// A client that has used a stream finds it missing once another has deleted it.
async fn a_deleted_one_is_missing(trial: Trial) {
    let (user, deleter) = (trial.rheo().await, trial.rheo().await);
    user.create_stream("s", 1).await.expect("the stream is new");
    append_to(&user, 0, 1).await;
    deleter.delete_stream("s", Confirm::Yes).await.expect("it is deleted");
    told_missing(&user).await;
    told_missing(&deleter).await;
}

/// A stream created anew has its new partitions and no old event, also for a
/// client that remembers the old one.
async fn one_created_anew_is_empty(trial: Trial) {
    let (user, manager) = (trial.rheo().await, trial.rheo().await);
    user.create_stream("s", 1).await.expect("the stream is new");
    append_to(&user, 0, 3).await;
    manager.delete_stream("s", Confirm::Yes).await.expect("it is deleted");
    manager.create_stream("s", 2).await.expect("the stream is new");
    assert_eq!(user.read("s", 0, 0, 10).await.expect("it reads"), []);
    let event = append_to(&user, 1, 1).await.remove(0);
    assert_eq!((event.partition(), event.sequence()), (1, 1));
    assert_eq!(manager.query("s", &Query::new()).await.expect("it finds"), [event]);
}

/// The store itself looks for the stream before the group: a client may
/// remember a stream that is gone.
async fn told_before_its_group(trial: Trial) {
    let clock = trial.rheo().await.clock().judge();
    let backend = trial.backend().await;
    let stream = StreamRef { name: StreamName::new("s").expect("it is a name"), partitions: 1 };
    let group = GroupRef { stream, name: GroupName::new("g").expect("it is a name") };
    let fence = Fence::random();
    let claim = Claim {
        group: group.clone(),
        partitions: Partitions::All,
        limit: 1,
        consumer: ConsumerId::new("c").expect("it is a name"),
        lease: Duration::from_secs(5),
        fence,
        now: clock,
    };
    let token = Token::new(LeaseId::new(fence, Position::new(0, 1)));
    let settlement = Settlement { token, outcome: Outcome::Ack };
    let settle = Settle { group: group.clone(), settlements: vec![settlement], now: clock };
    let letters = DeadLetters { group: group.clone(), after: None, limit: 1 };
    let told = [
        failure(backend.claim(&claim).await),
        failure(backend.settle(&settle).await),
        failure(backend.group_info(&group, clock).await),
        failure(backend.dead_letters(&letters).await),
        failure(backend.delete_group(&group).await),
    ];
    assert_eq!(told, [ErrorKind::StreamNotFound; 5]);
}

/// Keys are routed by the golden vectors of xxh3 (64 bits, seed 0) modulo the
/// number of partitions: a key's partition never changes.
async fn keys_go_where_they_went(trial: Trial) {
    let long = "x".repeat(300);
    let golden = [
        ("", [0, 1, 4, 194]),
        ("a", [1, 1, 1, 543]),
        ("abc", [0, 1, 2, 336]),
        ("AAPL", [1, 2, 0, 197]),
        ("customer-42", [1, 0, 3, 609]),
        ("é", [1, 0, 6, 179]),
        ("naïve ☃", [1, 2, 1, 661]),
        ("🦀", [0, 1, 6, 808]),
        (&long, [0, 2, 5, 340]),
    ];
    let rheo = trial.rheo().await;
    for (at, partitions) in [2, 3, 7, 1024].into_iter().enumerate() {
        let stream = format!("s{partitions}");
        rheo.create_stream(&stream, partitions).await.expect("the stream is new");
        let events = golden.iter().map(|(key, _)| NewEvent::new("t", 1).key(*key)).collect();
        let stored = rheo.append_batch(&stream, events).await.expect("they are appended");
        let found: Vec<u32> = stored.iter().map(rheo_core::Event::partition).collect();
        let expected: Vec<u32> = golden.iter().map(|(_, routed)| routed[at]).collect();
        assert_eq!(found, expected, "of {partitions} partitions");
    }
}

/// A partition that is named wins over the key, and the key stays as it was given.
async fn an_explicit_partition_wins(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 4).await.expect("the stream is new");
    for partition in 0..4 {
        let event = NewEvent::new("t", 1).key("abc").partition(partition);
        let stored = rheo.append("s", event).await.expect("it is appended");
        assert_eq!((stored.partition(), stored.sequence()), (partition, 1));
        assert_eq!(stored.key(), Some("abc"));
    }
}

/// An event without key and partition goes to partition 0.
async fn without_a_key_it_is_0(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    for sequence in 1..=3 {
        let event = NewEvent::new("t", json!({ "n": sequence }));
        let stored = rheo.append("s", event).await.expect("it is appended");
        assert_eq!((stored.partition(), stored.sequence()), (0, sequence));
    }
}

/// Naming a partition that the stream has not is invalid wherever one is named.
async fn a_partition_out_of_range_is_invalid(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    for partition in [1, u32::MAX] {
        let event = NewEvent::new("t", 1).partition(partition);
        let batch = vec![NewEvent::new("t", 1), event.clone()];
        let options = FetchOptions::default().partitions([partition]);
        let told = [
            failure(rheo.append("s", event).await),
            failure(rheo.append_batch("s", batch).await),
            failure(rheo.read("s", partition, 0, 10).await),
            failure(rheo.query("s", &Query::new().partition(partition)).await),
            failure(rheo.fetch("s", "g", 1, options).await),
        ];
        assert_eq!(told, [ErrorKind::Invalid; 5]);
    }
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), []);
}

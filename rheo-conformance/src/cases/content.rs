//! What an event holds, and that it stays so: laws S8, S10 and S11.

use std::time::Duration;

use rheo_core::{
    Confirm, ErrorKind, Event, FetchOptions, GroupOptions, Lineage, NewEvent, Query, Replay,
    ReplayOptions, Rheo, Start, Timestamp,
};
use serde_json::{Value, json};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, failure, fetch};

case_table! {
    "event.it_is_the_same_wherever_it_is_seen" [S8] => it_is_the_same_wherever_it_is_seen;
    "event.an_empty_key_is_not_a_missing_one" [S8] => an_empty_key_is_not_a_missing_one;
    "event.types_and_keys_have_bounds" [S8] => types_and_keys_have_bounds;
    "event.its_time_is_exact_to_the_microsecond" [S8] => its_time_is_exact_to_the_microsecond;
    "event.its_time_is_never_in_the_future" [S8] => its_time_is_never_in_the_future;
    "event.the_size_limit_is_1_mib_unless_set" [S10] => the_size_limit_is_1_mib_unless_set;
    "event.the_size_limit_is_exact" [S10] => the_size_limit_is_exact;
    "event.one_too_large_refuses_its_batch" [S10 S4] => one_too_large_refuses_its_batch;
    "event.consumption_never_changes_it" [S11] => consumption_never_changes_it;
    "event.replay_and_reset_never_change_it" [S11 R6] needs [Replay]
        => replay_and_reset_never_change_it;
}

/// What `read`, `query` and a fetch of group `g` show of stream `s`.
pub(super) async fn every_view(rheo: &Rheo) -> [Vec<Event>; 3] {
    let read = rheo.read("s", 0, 0, 1000).await.expect("it reads");
    let found = rheo.query("s", &Query::new().limit(1000)).await.expect("it finds");
    let handed_out = fetch(rheo, 1000).await.into_iter().map(|one| one.event).collect();
    [read, found, handed_out]
}

/// Append, read, query and fetch show the same event, with everything it was given.
async fn it_is_the_same_wherever_it_is_seen(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let lineage = Lineage::default()
        .correlation_id("c")
        .causation_id("d")
        .producer("p")
        .schema("s")
        .schema_version("2");
    let payload = json!({"b": [1, {"c": null}], "a": "ü"});
    let event = NewEvent::new("order.placed", &payload)
        .key("kéy")
        .metadata("desk", json!({"floor": 3}))
        .lineage(&lineage);
    let appended = rheo.append("s", event).await.expect("it is appended");
    assert_eq!(appended.stream().as_str(), "s");
    assert_eq!((appended.partition(), appended.sequence()), (0, 1));
    assert_eq!(appended.timestamp(), trial.clock().now());
    assert_eq!((appended.event_type(), appended.key()), ("order.placed", Some("kéy")));
    assert_eq!(appended.lineage(), lineage);
    let metadata = json!({
        "desk": {"floor": 3}, "correlation_id": "c", "causation_id": "d",
        "producer": "p", "schema": "s", "schema_version": "2",
    });
    assert_eq!(Value::from(appended.metadata()), metadata);
    assert_eq!(appended.payload(), payload);
    for events in every_view(&trial.rheo().await).await {
        assert_eq!(events, std::slice::from_ref(&appended));
    }
}

/// No key and the empty key are two things, and stay so.
async fn an_empty_key_is_not_a_missing_one(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let events = vec![NewEvent::new("t", 1), NewEvent::new("t", 1).key("")];
    rheo.append_batch("s", events).await.expect("they are appended");
    for events in every_view(&rheo).await {
        let keys: Vec<_> = events.iter().map(Event::key).collect();
        assert_eq!(keys, [None, Some("")]);
        assert!(events.iter().all(|event| event.metadata().is_empty()));
    }
}

/// Types have 1 to 255 bytes, keys up to 512, in UTF-8; any character goes.
async fn types_and_keys_have_bounds(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let (longest_type, longest_key) = ("é".repeat(127), "é".repeat(256));
    let names = [("x", " "), (&longest_type, &longest_key), ("a\n'\"%_\\", "\t{a}:$.\u{7f}🦀")];
    for (event_type, key) in names {
        rheo.append("s", NewEvent::new(event_type, 1).key(key)).await.expect("it is appended");
    }
    for events in every_view(&rheo).await {
        let told: Vec<_> =
            events.iter().map(|one| (one.event_type(), one.key().unwrap())).collect();
        assert_eq!(told, names);
    }
    let too_long = [
        NewEvent::new("", 1),
        NewEvent::new("x".repeat(256), 1),
        NewEvent::new("t", 1).key("x".repeat(513)),
    ];
    for event in too_long {
        assert_eq!(failure(rheo.append("s", event).await), ErrorKind::Invalid);
    }
}

/// Timestamps come back to the microsecond, neither cut nor rounded up.
async fn its_time_is_exact_to_the_microsecond(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let mut given: Vec<Timestamp> = Vec::new();
    for micros in [0, 1, 1, 499, 500, 999, 998_000, 999_999, 1_000_001] {
        trial.clock().advance(Duration::from_micros(micros));
        given.push(trial.clock().now());
        append_to(&rheo, 0, 1).await;
    }
    for events in every_view(&rheo).await {
        let told: Vec<_> = events.iter().map(Event::timestamp).collect();
        assert_eq!(told, given);
    }
}

/// By the system's clock an event's time lies between the call and its return.
async fn its_time_is_never_in_the_future(trial: Trial) {
    let rheo = trial.rheo_on_store_time().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    for sequence in 0..20 {
        let before = Timestamp::now();
        append_to(&rheo, 0, 1).await;
        let event = rheo.read("s", 0, sequence, 1).await.expect("it reads").remove(0);
        let after = Timestamp::now();
        let told = event.timestamp();
        assert!(before <= told && told <= after, "{before} ≤ {told} ≤ {after}");
    }
}

/// A payload that makes an event of type `t` this large.
fn event_of(bytes: usize) -> NewEvent {
    let others = "t".len() + "{}".len() + "\"\"".len();
    NewEvent::new("t", "x".repeat(bytes - others))
}

/// Unless set, an event of 1 MiB fits, and one byte more does not.
async fn the_size_limit_is_1_mib_unless_set(trial: Trial) {
    const MIB: usize = 1 << 20;
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let stored = rheo.append("s", event_of(MIB)).await.expect("it fits");
    assert_eq!(failure(rheo.append("s", event_of(MIB + 1)).await), ErrorKind::EventTooLarge);
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), [stored]);
}

/// A limit that is set counts type, key, metadata and payload in encoded
/// bytes, and holds for that instance alone.
async fn the_size_limit_is_exact(trial: Trial) {
    let small = trial.builder().await.event_bytes(37).build().await.expect("it starts");
    small.create_stream("s", 1).await.expect("the stream is new");
    let of_37 = || {
        let event = NewEvent::new("type", json!(["é", 12345])).key("key");
        event.metadata("m", "0123456789")
    };
    let stored = small.append("s", of_37()).await.expect("it fits");
    assert_eq!(stored.body().encoded_len(), 37);
    let too_large = [
        NewEvent::new("type", json!(["é", 123_456])).key("key").metadata("m", "0123456789"),
        of_37().key("keys"),
        of_37().metadata("m", "0123456789a"),
        NewEvent::new("types", json!(["é", 12345])).key("key").metadata("m", "0123456789"),
    ];
    for event in too_large {
        assert_eq!(failure(small.append("s", event.clone()).await), ErrorKind::EventTooLarge);
        trial.rheo().await.append("s", event).await.expect("it fits elsewhere");
    }
}

/// An event that is too large keeps the rest of its batch from being written.
async fn one_too_large_refuses_its_batch(trial: Trial) {
    let rheo = trial.builder().await.event_bytes(100).build().await.expect("it starts");
    rheo.create_stream("s", 1).await.expect("the stream is new");
    for at in 0..3 {
        let mut batch = vec![NewEvent::new("t", 1); 2];
        batch.insert(at, event_of(101));
        assert_eq!(failure(rheo.append_batch("s", batch).await), ErrorKind::EventTooLarge);
    }
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), []);
    rheo.append_batch("s", vec![event_of(100); 3]).await.expect("together they may be larger");
}

/// Claims, acks, retries, rejects, expiry and the group's end leave the log as it was.
async fn consumption_never_changes_it(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    let appended = append_to(&rheo, 0, 5).await;
    let deliveries = fetch(&rheo, 5).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.retry(&deliveries[1], "again", Duration::ZERO).await.expect("the lease is current");
    rheo.reject(&deliveries[2], "no").await.expect("the lease is current");
    rheo.release(&deliveries[3]).await.expect("the lease is current");
    trial.advance_secs(60);
    fetch(&rheo, 5).await;
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), appended);
    rheo.delete_group("s", "g", Confirm::Yes).await.expect("it is deleted");
    assert_eq!(rheo.query("s", &Query::new()).await.expect("it finds"), appended);
}

/// Replay and reset leave the log as it was: nothing is added, changed or lost.
async fn replay_and_reset_never_change_it(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let appended = append_to(&rheo, 0, 5).await;
    for delivery in fetch(&rheo, 5).await {
        rheo.ack(&delivery).await.expect("the lease is current");
    }
    let options = ReplayOptions::default();
    rheo.replay("s", "g", Replay::AfterSequence(0), options).await.expect("it replays");
    let options = FetchOptions::default();
    let again = rheo.fetch("s", "g", 10, options).await.expect("it fetches");
    assert_eq!(again.into_iter().map(|one| one.event).collect::<Vec<_>>(), appended);
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), appended);
    rheo.reset_group("s", "g", Confirm::Yes, Start::End).await.expect("it is reset");
    assert_eq!(rheo.read("s", 0, 0, 10).await.expect("it reads"), appended);
    assert_eq!(rheo.query("s", &Query::new()).await.expect("it finds"), appended);
}

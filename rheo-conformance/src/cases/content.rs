//! What an event holds, and that it stays so: laws S8, S9, S10 and S11.

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
    "event.numbers_come_back_as_they_went_in" [S8 S9] => numbers_come_back_as_they_went_in;
    "event.keys_of_objects_mean_themselves" [S9] => keys_of_objects_mean_themselves;
    "event.strings_hold_every_character_but_one" [S9] => strings_hold_every_character_but_one;
    "event.u_0000_is_invalid_everywhere" [S9] => u_0000_is_invalid_everywhere;
    "event.nesting_goes_64_deep" [S9] => nesting_goes_64_deep;
    "event.empty_payloads_are_delivered_and_settled" [S9] => empty_payloads_are_delivered;
    "event.the_size_limit_is_1_mib_unless_set" [S10] => the_size_limit_is_1_mib_unless_set;
    "event.the_size_limit_is_exact" [S10] => the_size_limit_is_exact;
    "event.one_too_large_refuses_its_batch" [S10 S4] => one_too_large_refuses_its_batch;
    "event.consumption_never_changes_it" [S11] => consumption_never_changes_it;
    "event.replay_and_reset_never_change_it" [S11 R6] needs [Replay]
        => replay_and_reset_never_change_it;
}

/// What `read`, `query` and a fetch of group `g` show of stream `s`.
async fn every_view(rheo: &Rheo) -> [Vec<Event>; 3] {
    let read = rheo.read("s", 0, 0, 1000).await.expect("it reads");
    let found = rheo.query("s", &Query::new().limit(1000)).await.expect("it finds");
    let handed_out = fetch(rheo, 1000).await.into_iter().map(|one| one.event).collect();
    [read, found, handed_out]
}

/// Appends an event with each payload, and asserts that it comes back so, by
/// value and kind, from every view. Metadata holds it as well.
async fn come_back(trial: &Trial, payloads: &[Value]) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let event = |payload: &Value| NewEvent::new("t", payload).metadata("m", payload);
    let events = payloads.iter().map(event).collect();
    let appended = rheo.append_batch("s", events).await.expect("they are appended");
    for events in every_view(&trial.rheo().await).await.iter().chain([&appended]) {
        let told: Vec<Value> = events.iter().map(Event::payload).collect();
        assert_eq!(told, payloads);
        let metadata: Vec<_> = events.iter().map(|event| event.metadata()["m"].clone()).collect();
        assert_eq!(metadata, payloads);
    }
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
        assert_eq!(events, [appended.clone()]);
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

/// Every i64, u64 and finite f64 keeps its value and its kind.
async fn numbers_come_back_as_they_went_in(trial: Trial) {
    let mut numbers = vec![
        json!(u64::MAX),
        json!(u64::MAX - 1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_u64),
        json!(0.1),
        json!(1.0),
        json!(1e16),
        json!(1e21),
        json!(-2.0),
        json!(1e308),
        json!(f64::MAX),
        json!(f64::MIN),
        json!(f64::MIN_POSITIVE),
        json!(5e-324),
        json!(0.1 + 0.2),
        json!(1.0 / 3.0),
        json!(123_456_789.123_456_78),
        json!(9_007_199_254_740_993.0),
        json!(1.8446744073709552e19),
    ];
    let mut rng = trial.rng();
    numbers.extend((0..50).map(|_| json!(rng.i64(..))));
    numbers.extend((0..50).map(|_| json!(rng.u64(..))));
    let floats = (0..200).map(|_| f64::from_bits(rng.u64(..))).filter(|float| float.is_finite());
    numbers.extend(floats.map(|float| json!(float)));
    let nested = numbers.iter().map(|number| json!({"a": [number]}));
    let payloads: Vec<Value> = numbers.iter().cloned().chain(nested).collect();
    come_back(&trial, &payloads).await;
}

/// The keys of objects may be empty, hold dots, begin with `$`: they are no paths.
async fn keys_of_objects_mean_themselves(trial: Trial) {
    let payloads = [
        json!({"": 1}),
        json!({"a.b": 1, "a": {"b": 2}}),
        json!({"$set": {"x": 1}, "$": 2, "$date": "x", "$oid": 3}),
        json!({"a": {"": {"": []}}, ".": 1, "..": 2}),
        json!({"A": 1, "a": 2, "a ": 3, "é": 4, "e\u{301}": 5, "🦀": 6}),
        json!({"0": "zero", "[0]": 1, "'": 2, "\"": 3, "\\": 4, "\n": 5, "a b": 6, "%s": 7}),
        json!({"__proto__": 1, "_id": 2, "type": 3, "payload": {"payload": 4}}),
    ];
    come_back(&trial, &payloads).await;
}

/// Strings hold every Unicode scalar but U+0000, also what JSON escapes.
async fn strings_hold_every_character_but_one(trial: Trial) {
    let mut payloads = vec![
        json!(""),
        json!(" "),
        json!("\\u0000"),
        json!("\\"),
        json!("\"quoted\""),
        json!("null"),
        json!("1"),
        json!("{}"),
        json!("\u{feff}a"),
        json!("e\u{301} é"),
        json!("\u{2028}\u{2029}"),
        json!("\u{ffff}\u{fffe}"),
        json!("\u{10ffff}"),
        json!("\u{d7ff}\u{e000}"),
        json!("👩‍👩‍👧"),
        json!("2026-03-15T12:00:00Z"),
        json!("a".repeat(100_000)),
    ];
    let controls: String = (1u8..32).map(char::from).chain(['\u{7f}', '\u{85}']).collect();
    payloads.push(json!(controls));
    let mut rng = trial.rng();
    let random: String = std::iter::repeat_with(|| rng.char('\u{1}'..)).take(2000).collect();
    payloads.push(json!(random));
    come_back(&trial, &payloads).await;
}

/// The character U+0000 is invalid in every part of an event, and nothing is written.
async fn u_0000_is_invalid_everywhere(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let refused = [
        NewEvent::new("t", "\0"),
        NewEvent::new("t", json!({"a": [1, "x\0"]})),
        NewEvent::new("t", json!({"\0": 1})),
        NewEvent::new("t\0", 1),
        NewEvent::new("t", 1).key("\0"),
        NewEvent::new("t", 1).metadata("a", "\0"),
        NewEvent::new("t", 1).metadata("\0", "a"),
        NewEvent::new("t", 1).lineage(&Lineage::default().producer("\0")),
    ];
    for event in refused {
        assert_eq!(failure(rheo.append("s", event).await), ErrorKind::Invalid);
    }
    assert!(every_view(&rheo).await.iter().all(Vec::is_empty));
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!(1), |inner, _| wrap(inner))
}

/// Arrays and objects go 64 deep; deeper is invalid.
async fn nesting_goes_64_deep(trial: Trial) {
    let in_array = |inner| json!([inner]);
    let in_object = |inner| json!({ "a": inner });
    // In metadata one level is taken by the metadata itself.
    let deepest = [nested(63, in_array), nested(63, in_object)];
    come_back(&trial, &deepest).await;
    let rheo = trial.rheo().await;
    for payload in [nested(64, in_array), nested(64, in_object)] {
        let stored = rheo.append("s", NewEvent::new("t", &payload)).await.expect("it is appended");
        let read = rheo.read("s", 0, stored.sequence() - 1, 1).await.expect("it reads");
        assert_eq!(read[0].payload(), payload);
    }
    let too_deep = [
        NewEvent::new("t", nested(65, in_array)),
        NewEvent::new("t", nested(65, in_object)),
        NewEvent::new("t", nested(1000, in_array)),
        NewEvent::new("t", 1).metadata("m", nested(64, in_array)),
    ];
    for event in too_deep {
        assert_eq!(failure(rheo.append("s", event).await), ErrorKind::Invalid);
    }
}

/// Payloads that are empty, or null, are events like any other.
async fn empty_payloads_are_delivered(trial: Trial) {
    let empty = [json!(null), json!({}), json!([]), json!(""), json!(0), json!(false)];
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let events = empty.iter().map(|payload| NewEvent::new("t", payload)).collect();
    rheo.append_batch("s", events).await.expect("they are appended");
    let deliveries = fetch(&rheo, 10).await;
    let told: Vec<Value> = deliveries.iter().map(|one| one.event.payload()).collect();
    assert_eq!(told, empty);
    for delivery in &deliveries {
        rheo.ack(delivery).await.expect("the lease is current");
    }
    assert_eq!(rheo.lag("s", "g").await.expect("it tells").total(), 0);
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

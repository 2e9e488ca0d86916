//! What payload and metadata can hold: law S9.

use rheo_core::{ErrorKind, Event, GroupOptions, Lineage, NewEvent};
use serde_json::{Value, json};

use super::content::every_view;
use crate::Trial;
use crate::case::case_table;
use crate::trial::{failure, fetch};

case_table! {
    "event.numbers_come_back_as_they_went_in" [S8 S9] => numbers_come_back_as_they_went_in;
    "event.keys_of_objects_mean_themselves" [S9] => keys_of_objects_mean_themselves;
    "event.strings_hold_every_character_but_one" [S9] => strings_hold_every_character_but_one;
    "event.u_0000_is_invalid_everywhere" [S9] => u_0000_is_invalid_everywhere;
    "event.nesting_goes_64_deep" [S9] => nesting_goes_64_deep;
    "event.empty_payloads_are_delivered_and_settled" [S9] => empty_payloads_are_delivered;
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

//! What a filter means: law Q3. A query finds what the matcher says.

use std::time::Duration;

use rheo_core::{Condition, Event, Field, Filter, NewEvent, Query, Rheo};
use serde_json::{Value, json};

use crate::Trial;
use crate::case::case_table;

case_table! {
    "match.numbers_compare_by_value" [Q3] => numbers_compare_by_value;
    "match.strings_compare_byte_for_byte" [Q3] => strings_compare_byte_for_byte;
    "match.null_equals_only_a_present_null" [Q3] => null_equals_only_a_present_null;
    "match.arrays_equal_only_the_same_array" [Q3] => arrays_equal_only_the_same_array;
    "match.objects_equal_whatever_their_order" [Q3] => objects_equal_whatever_their_order;
    "match.kinds_never_mix" [Q3] => kinds_never_mix;
    "match.random_queries_find_what_the_matcher_says" [Q3 Q2] needs [Partitions]
        => random_queries_find_what_the_matcher_says;
}

/// A stream `s` with an event for each value, as payload field and as
/// metadata field `v`.
async fn with_values(trial: &Trial, values: &[Value]) -> Rheo {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let event = |value: &Value| NewEvent::new("t", json!({ "v": value })).metadata("v", value);
    let mut events: Vec<_> = values.iter().map(event).collect();
    events.push(NewEvent::new("without", json!({})));
    rheo.append_batch("s", events).await.expect("they are appended");
    rheo
}

/// Asserts which of `values`, by their index, the condition finds.
async fn finds(rheo: &Rheo, condition: Condition, expected: &[u64]) {
    for field in [Field::payload(["v"]), Field::metadata(["v"])] {
        let query = Query::new().filter(Filter::new(field, condition.clone()));
        let events = rheo.query("s", &query).await.expect("it finds");
        let found: Vec<u64> = events.iter().map(|event| event.sequence() - 1).collect();
        assert_eq!(found, expected, "{query:?}");
    }
}

fn equals(value: Value) -> Condition {
    Condition::Equals(value)
}

/// `1` equals `1.0`; what only nearly equals does not, be it beyond 2⁵³.
async fn numbers_compare_by_value(trial: Trial) {
    let values = [
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(0),
        json!(-0.0),
        json!(9_007_199_254_740_992_u64),
        json!(9_007_199_254_740_993_u64),
        json!(9_007_199_254_740_992.0),
        json!(u64::MAX),
        json!(1.8446744073709552e19),
        json!(i64::MIN),
        json!(1e308),
        json!(5e-324),
        json!(-1),
    ];
    let rheo = with_values(&trial, &values).await;
    finds(&rheo, equals(json!(1)), &[0, 1]).await;
    finds(&rheo, equals(json!(1.0)), &[0, 1]).await;
    finds(&rheo, equals(json!(0)), &[3, 4]).await;
    finds(&rheo, equals(json!(9_007_199_254_740_993_u64)), &[6]).await;
    finds(&rheo, equals(json!(9_007_199_254_740_992.0)), &[5, 7]).await;
    finds(&rheo, equals(json!(u64::MAX)), &[8]).await;
    finds(&rheo, equals(json!(1.8446744073709552e19)), &[9]).await;
    finds(&rheo, equals(json!(-9.223_372_036_854_776e18)), &[10]).await;
    finds(&rheo, Condition::Greater(json!(9_007_199_254_740_992.0)), &[6, 8, 9, 11]).await;
    finds(&rheo, Condition::Less(json!(5e-324)), &[3, 4, 10, 13]).await;
    finds(&rheo, Condition::GreaterOrEqual(json!(u64::MAX)), &[8, 9, 11]).await;
    finds(&rheo, Condition::LessOrEqual(json!(-1.0)), &[10, 13]).await;
    finds(&rheo, Condition::In(vec![json!(1.50), json!(-1)]), &[2, 13]).await;
}

/// Strings are equal, and less or greater, by their bytes: no case, accent,
/// space, number or pattern in them means anything.
async fn strings_compare_byte_for_byte(trial: Trial) {
    let values = [
        "a",
        "A",
        "a ",
        "á",
        "a\u{301}",
        "",
        "10",
        "9",
        "a%",
        "a_",
        "\u{ffff}",
        "\u{10000}",
        "Z",
        "ß",
        "ss",
        "a'b",
        "b",
    ];
    let rheo = with_values(&trial, &values.map(Value::from)).await;
    for (at, value) in (0..).zip(values) {
        finds(&rheo, equals(json!(value)), &[at]).await;
        let sorted = |keep: fn(&str, &str) -> bool| -> Vec<u64> {
            (0..).zip(values).filter(|(_, other)| keep(other, value)).map(|(at, _)| at).collect()
        };
        finds(&rheo, Condition::Less(json!(value)), &sorted(|a, b| a < b)).await;
        finds(&rheo, Condition::GreaterOrEqual(json!(value)), &sorted(|a, b| a >= b)).await;
    }
}

/// Null equals a null that is there, not a missing field, and has no order.
async fn null_equals_only_a_present_null(trial: Trial) {
    let values = [json!(null), json!(false), json!(0), json!(""), json!("null"), json!([null])];
    let rheo = with_values(&trial, &values).await;
    finds(&rheo, equals(json!(null)), &[0]).await;
    finds(&rheo, Condition::In(vec![json!(null), json!(false)]), &[0, 1]).await;
    finds(&rheo, Condition::LessOrEqual(json!(null)), &[]).await;
    finds(&rheo, Condition::GreaterOrEqual(json!(null)), &[]).await;
    finds(&rheo, Condition::Exists, &[0, 1, 2, 3, 4, 5]).await;
}

/// An array equals the same array, never one of its members, nor one that it is in.
async fn arrays_equal_only_the_same_array(trial: Trial) {
    let values = [
        json!([1]),
        json!(1),
        json!([1, 2]),
        json!([2, 1]),
        json!([[1]]),
        json!([]),
        json!([1.0, 2]),
        json!(["1"]),
    ];
    let rheo = with_values(&trial, &values).await;
    finds(&rheo, equals(json!([1])), &[0]).await;
    finds(&rheo, equals(json!(1)), &[1]).await;
    finds(&rheo, equals(json!([1, 2])), &[2, 6]).await;
    finds(&rheo, equals(json!([[1.0]])), &[4]).await;
    finds(&rheo, equals(json!([])), &[5]).await;
    finds(&rheo, Condition::In(vec![json!([2, 1]), json!("1")]), &[3]).await;
    finds(&rheo, Condition::GreaterOrEqual(json!([1])), &[]).await;
    finds(&rheo, Condition::GreaterOrEqual(json!(1)), &[1]).await;
}

/// An object equals one with the same fields, no more and no fewer, in any order.
async fn objects_equal_whatever_their_order(trial: Trial) {
    let values = [
        json!({"a": 1, "b": {"c": [2]}}),
        json!({"b": {"c": [2.0]}, "a": 1.0}),
        json!({"a": 1}),
        json!({"a": 1, "b": null}),
        json!({}),
        json!({"A": 1}),
        json!({"a": "1"}),
    ];
    let rheo = with_values(&trial, &values).await;
    finds(&rheo, equals(json!({"b": {"c": [2]}, "a": 1})), &[0, 1]).await;
    finds(&rheo, equals(json!({"a": 1.0})), &[2]).await;
    finds(&rheo, equals(json!({})), &[4]).await;
    finds(&rheo, Condition::LessOrEqual(json!({})), &[]).await;
    let deeper = Filter::new(Field::payload(["v", "b", "c"]), equals(json!([2])));
    let events = rheo.query("s", &Query::new().filter(deeper)).await.expect("it finds");
    assert_eq!(events.len(), 2);
}

/// Strings, numbers and booleans equal none of each other, and have no order
/// among each other.
async fn kinds_never_mix(trial: Trial) {
    let values = [json!(1), json!("1"), json!(true), json!("true"), json!(0), json!(false)];
    let rheo = with_values(&trial, &values).await;
    for (at, value) in (0..).zip(values) {
        finds(&rheo, equals(value), &[at]).await;
    }
    finds(&rheo, Condition::Less(json!("2")), &[1]).await;
    finds(&rheo, Condition::Less(json!(2)), &[0, 4]).await;
    finds(&rheo, Condition::GreaterOrEqual(json!("")), &[1, 3]).await;
    finds(&rheo, Condition::LessOrEqual(json!(true)), &[]).await;
}

/// Few values of every kind, so that random conditions often meet them.
fn value(rng: &mut fastrand::Rng) -> Value {
    let scalars = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(2.5),
        json!(-1),
        json!(u64::MAX),
        json!(1.8446744073709552e19),
        json!(""),
        json!("1"),
        json!("a"),
        json!("A"),
        json!("a "),
        json!("é"),
    ];
    let scalar = |rng: &mut fastrand::Rng| scalars[rng.usize(..scalars.len())].clone();
    match rng.u8(..8) {
        0 => json!([scalar(rng)]),
        1 => json!({ "a": scalar(rng) }),
        2 => json!({ "a": { "b": scalar(rng) } }),
        _ => scalar(rng),
    }
}

fn one_of<'a>(rng: &mut fastrand::Rng, names: &[&'a str]) -> &'a str {
    names[rng.usize(..names.len())]
}

const NAMES: [&str; 5] = ["a", "b", "a.b", "producer", "correlation_id"];
const TYPES: [&str; 4] = ["a", "A", "a ", "b"];
const KEYS: [&str; 4] = ["", "k", "K", "1"];

fn event(rng: &mut fastrand::Rng) -> NewEvent {
    let mut fields = serde_json::Map::new();
    for name in NAMES.into_iter().filter(|_| rng.bool()).collect::<Vec<_>>() {
        fields.insert(name.into(), value(rng));
    }
    let payload = if rng.u8(..6) == 0 { value(rng) } else { fields.into() };
    let mut event = NewEvent::new(one_of(rng, &TYPES), payload).partition(rng.u32(..3));
    if rng.bool() {
        event = event.key(one_of(rng, &KEYS));
    }
    for name in NAMES.into_iter().filter(|_| rng.bool()).collect::<Vec<_>>() {
        event = event.metadata(name, value(rng));
    }
    event
}

fn path(rng: &mut fastrand::Rng) -> Vec<&'static str> {
    (0..rng.usize(1..3)).map(|_| one_of(rng, &NAMES)).collect()
}

/// A field, and a value of a kind that it can have.
fn field_and_value(rng: &mut fastrand::Rng, stored: &[Event]) -> (Field, Value) {
    let event = &stored[rng.usize(..stored.len())];
    match rng.u8(..10) {
        0 => (Field::Id, json!(event.id().to_string())),
        1 => (Field::Type, json!(one_of(rng, &TYPES))),
        2 => (Field::Key, json!(one_of(rng, &KEYS))),
        3 => (Field::Partition, json!(rng.u32(..3))),
        4 => (Field::Sequence, json!(event.sequence())),
        5 => (Field::Timestamp, json!(event.timestamp().to_string())),
        6 | 7 => (Field::metadata(path(rng)), value(rng)),
        _ => (Field::payload(path(rng)), value(rng)),
    }
}

fn filter(rng: &mut fastrand::Rng, stored: &[Event]) -> Filter {
    let (field, value) = field_and_value(rng, stored);
    let condition = match rng.u8(..10) {
        0..4 => Condition::Equals(value),
        4 => Condition::In(vec![value; 2]),
        5 => Condition::Less(value),
        6 => Condition::LessOrEqual(value),
        7 => Condition::Greater(value),
        8 => Condition::GreaterOrEqual(value),
        _ => Condition::Exists,
    };
    Filter::new(field, condition)
}

/// On random events, random queries find what the reference matcher says, in
/// their order and up to their limit.
async fn random_queries_find_what_the_matcher_says(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    let mut rng = trial.rng();
    let mut stored: Vec<Event> = Vec::new();
    for _ in 0..10 {
        let batch = (0..rng.usize(1..20)).map(|_| event(&mut rng)).collect();
        stored.extend(rheo.append_batch("s", batch).await.expect("they are appended"));
        trial.clock().advance(Duration::from_micros(rng.u64(..3)));
    }
    stored.sort_by_key(Event::position);
    for _ in 0..200 {
        let filters: Vec<_> = (0..rng.usize(1..3)).map(|_| filter(&mut rng, &stored)).collect();
        let (after, until) = (rng.u64(..10), rng.u64(20..90));
        let limit = if rng.bool() { 1000 } else { rng.usize(1..10) };
        let mut query = Query::new().after_sequence(after).until_sequence(until).limit(limit);
        query = filters.iter().cloned().fold(query, Query::filter);
        let in_range = |event: &&Event| (after + 1..=until).contains(&event.sequence());
        let matches = |event: &&Event| filters.iter().all(|filter| filter.matches(event));
        let mut expected: Vec<_> =
            stored.iter().filter(in_range).filter(matches).cloned().collect();
        if rng.bool() {
            query = query.descending();
            expected.reverse();
        }
        expected.truncate(limit);
        let found = rheo.query("s", &query).await.expect("it finds");
        let positions = |events: &[Event]| events.iter().map(Event::position).collect::<Vec<_>>();
        assert_eq!(positions(&found), positions(&expected), "seed {}: {query:?}", trial.seed());
        assert_eq!(found, expected);
    }
}

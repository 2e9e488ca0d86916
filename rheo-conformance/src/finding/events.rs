//! Random events, and the values in them.

use fastrand::Rng;
use rheo_core::NewEvent;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One value in many spellings, and values that are nearly one.
const SPELLINGS: &[&str] = &[
    "0",
    "-0.0",
    "1",
    "1.0",
    "1.00",
    "1.0000000000000000001",
    "-1",
    "2.5",
    "0.1",
    "0.10",
    "0.1000000000000000055",
    "10000000000000000",
    "1e16",
    "9007199254740991",
    "9007199254740992.0",
    "9007199254740993",
    "9223372036854775808",
    "9223372036854775808.0",
    "18446744073709551615",
    "18446744073709552000.0",
    "1.8446744073709552e19",
    "1e-7",
    "5e-324",
    "1e308",
    "true",
    "false",
    "null",
    r#""""#,
    r#""a""#,
    r#""\u0061""#,
    r#""A""#,
    r#""a ""#,
    r#""é""#,
    r#""\u00e9""#,
    r#""1""#,
    r#""/""#,
    r#""\/""#,
    r#""a\"b""#,
    r#""\\""#,
    r#""\"a\":1""#,
    "[]",
    "{}",
];
const SPELLED_KEYS: &[&str] =
    &["a", "\\u0061", "b", "a.b", "", "a\\\"b", "producer", "$x", "A", "é", "0"];
/// What a path may lead through.
pub(super) const KEYS: &[&str] = &["a", "b", "a.b", "", "a\"b", "producer", "$x", "é", "0"];
/// The metadata fields that stores have indexes for.
pub(super) const LINEAGE: &[&str] =
    &["correlation_id", "causation_id", "producer", "schema", "schema_version"];
const EVENT_TYPES: &[&str] = &["a", "A", "a ", "b", "é", "{a}", "a:b/c%"];
const EVENT_KEYS: &[&str] = &["", "k", "K", "1", "k ", "é", "k:{}"];

pub(super) fn one_of<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.usize(..choices.len())]
}

/// Any value, as somebody writes it.
fn spelled_value(rng: &mut Rng, depth: u8) -> String {
    match rng.u8(..8) {
        0 if depth < 3 => format!("[{}]", spelled_list(rng, |rng| spelled_value(rng, depth + 1))),
        1..3 if depth < 3 => spelled_object(rng, depth + 1),
        _ => one_of(rng, SPELLINGS).into(),
    }
}

fn spelled_object(rng: &mut Rng, depth: u8) -> String {
    let field =
        |rng: &mut Rng| format!(r#""{}":{}"#, one_of(rng, SPELLED_KEYS), spelled_value(rng, depth));
    format!("{{{}}}", spelled_list(rng, field))
}

fn spelled_list(rng: &mut Rng, item: impl Fn(&mut Rng) -> String) -> String {
    (0..rng.u8(..4)).map(|_| item(rng)).collect::<Vec<_>>().join(",")
}

/// Any value, but of little depth.
pub(super) fn value(rng: &mut Rng) -> Value {
    serde_json::from_str(&spelled_value(rng, 2)).expect("it is JSON")
}

/// What a field of the lineage may hold: mostly what indexes are for.
pub(super) fn lineage_value(rng: &mut Rng) -> Value {
    match rng.u8(..8) {
        0 | 1 => value(rng),
        2 => json!("a\"\\🦀é"),
        _ => one_of(rng, EVENT_TYPES).into(),
    }
}

pub(super) fn event(rng: &mut Rng, partitions: u32) -> NewEvent {
    let payload = RawValue::from_string(payload(rng)).expect("it is JSON");
    let mut event = NewEvent::new(one_of(rng, EVENT_TYPES), payload);
    event = event.partition(rng.u32(..partitions));
    if rng.bool() {
        event = event.key(one_of(rng, EVENT_KEYS));
    }
    for _ in 0..rng.u8(..4) {
        event = if rng.bool() {
            event.metadata(one_of(rng, LINEAGE), lineage_value(rng))
        } else {
            event.metadata(one_of(rng, KEYS), value(rng))
        };
    }
    event
}

/// Mostly an object; some are much larger than others.
fn payload(rng: &mut Rng) -> String {
    match rng.u8(..8) {
        0 | 1 => spelled_value(rng, 0),
        2 => {
            let (value, filler) = (spelled_value(rng, 2), "x".repeat(rng.usize(..1000)));
            format!(r#"{{"a":{value},"filler":"{filler}"}}"#)
        }
        _ => spelled_object(rng, 0),
    }
}

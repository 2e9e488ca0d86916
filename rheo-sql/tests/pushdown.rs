//! What a database is asked to find is what the matcher says: random events,
//! random queries.

#![cfg(all(unix, any(feature = "sqlite", feature = "postgres", feature = "mysql")))]

#[cfg(any(feature = "postgres", feature = "mysql"))]
mod servers;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rheo_core::{Condition, Event, Field, Filter, ManualClock, NewEvent, Query, Rheo};
use rheo_sql::Sql;
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
const KEYS: &[&str] = &["a", "b", "a.b", "", "a\"b", "producer", "$x", "é", "0"];
const EVENT_TYPES: &[&str] = &["a", "A", "a ", "b", "é"];
const EVENT_KEYS: &[&str] = &["", "k", "K", "1", "k "];

fn one_of<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.usize(..choices.len())]
}

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

fn value(rng: &mut Rng) -> Value {
    serde_json::from_str(&spelled_value(rng, 2)).unwrap()
}

fn event(rng: &mut Rng, partitions: u32) -> NewEvent {
    let payload = if rng.u8(..4) == 0 { spelled_value(rng, 0) } else { spelled_object(rng, 0) };
    let payload = RawValue::from_string(payload).unwrap();
    let mut event = NewEvent::new(one_of(rng, EVENT_TYPES), payload);
    event = event.partition(rng.u32(..partitions));
    if rng.bool() {
        event = event.key(one_of(rng, EVENT_KEYS));
    }
    for _ in 0..rng.u8(..4) {
        event = event.metadata(one_of(rng, KEYS), value(rng));
    }
    event
}

/// Fills a stream through two instances whose clocks differ, so that timestamps
/// do not always rise.
async fn fill(
    rng: &mut Rng,
    sql: &Arc<Sql>,
    stream: &str,
    partitions: u32,
    count: usize,
) -> Vec<Event> {
    let mut instances = Vec::new();
    for _ in 0..2 {
        let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
        let rheo = Rheo::builder(sql.clone()).clock(clock.clone()).build().await.unwrap();
        instances.push((rheo, clock));
    }
    instances[0].0.create_stream(stream, partitions).await.unwrap();
    let mut stored: Vec<Event> = Vec::new();
    while stored.len() < count {
        let (rheo, clock) = &instances[rng.usize(..2)];
        clock.advance(Duration::from_micros(rng.u64(..5)));
        let batch = (0..rng.usize(1..=count.div_ceil(20))).map(|_| event(rng, partitions));
        stored.extend(rheo.append_batch(stream, batch.collect()).await.unwrap());
    }
    stored.sort_by_key(Event::position);
    stored
}

fn path(rng: &mut Rng) -> Vec<&'static str> {
    let length = rng.usize(..8).clamp(1, 7) / 3;
    (0..length).map(|_| one_of(rng, KEYS)).collect()
}

/// A field, and values of kinds that are allowed there.
fn field_and_values(rng: &mut Rng, stored: &[Event]) -> (Field, Vec<Value>) {
    let count = if rng.bool() { 1 } else { rng.usize(..6) };
    let events: Vec<_> = (0..count.max(1)).map(|_| &stored[rng.usize(..stored.len())]).collect();
    let of_events = |value: fn(&Event) -> Value| events.iter().map(|&event| value(event)).collect();
    match rng.u8(..16) {
        0 => (Field::Id, of_events(|event| event.id().to_string().into())),
        1 | 2 => (Field::Type, of_events(|event| event.event_type().into())),
        3 | 4 => (Field::Key, of_events(|event| event.key().map_or(json!(1), Value::from))),
        5 => (Field::Partition, vec![json!(rng.u32(..3)), json!(1.5)]),
        6 => (Field::Sequence, of_events(|event| event.sequence().into())),
        7 => (Field::Timestamp, of_events(|event| event.timestamp().to_string().into())),
        8..12 => (Field::metadata(path(rng)), (0..count.max(1)).map(|_| value(rng)).collect()),
        _ => (Field::payload(path(rng)), (0..count.max(1)).map(|_| value(rng)).collect()),
    }
}

fn filter(rng: &mut Rng, stored: &[Event]) -> Filter {
    let (field, mut values) = field_and_values(rng, stored);
    let first = values[0].clone();
    let condition = match rng.u8(..10) {
        0..4 => Condition::Equals(first),
        4 => {
            values.truncate(rng.usize(..=values.len()));
            Condition::In(values)
        }
        5 => Condition::Less(first),
        6 => Condition::LessOrEqual(first),
        7 => Condition::Greater(first),
        8 => Condition::GreaterOrEqual(first),
        _ => Condition::Exists,
    };
    Filter::new(field, condition)
}

/// Asserts for one random query that it finds what it should.
async fn try_query(rng: &mut Rng, rheo: &Rheo, stream: &str, stored: &[Event]) {
    let longest = stored.iter().map(Event::sequence).max().unwrap();
    let filters: Vec<_> = (0..rng.usize(..4)).map(|_| filter(rng, stored)).collect();
    let after = if rng.bool() { 0 } else { rng.u64(..longest) };
    let until = if rng.bool() { u64::MAX } else { after + rng.u64(1..=longest) };
    let limit = [1, rng.usize(1..60), 10_000][rng.usize(..3)];
    let descending = rng.bool();

    let mut query = Query::new().after_sequence(after).until_sequence(until).limit(limit);
    query = filters.iter().cloned().fold(query, Query::filter);
    let matches = |event: &&Event| {
        let in_range = after < event.sequence() && event.sequence() <= until;
        in_range && Filter::matches_all(&filters, event)
    };
    let mut expected: Vec<_> = stored.iter().filter(matches).collect();
    if descending {
        query = query.descending();
        expected.reverse();
    }
    expected.truncate(limit);
    let found = rheo.query(stream, &query).await.unwrap();
    let positions = |events: &[&Event]| {
        events.iter().map(|event| event.position().to_string()).collect::<Vec<_>>()
    };
    let found: Vec<_> = found.iter().collect();
    assert_eq!(positions(&found), positions(&expected), "{query:?}");
    assert_eq!(found, expected);
}

/// Of few partitions, of more than one statement looks into, and of one that
/// is longer than a first walk.
async fn queries_find_what_the_matcher_says(store: &str, sql: Arc<Sql>) {
    let seed = fastrand::u64(..);
    eprintln!("{store}: seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let rheo = Rheo::builder(sql.clone()).build().await.unwrap();
    for (stream, partitions, events, queries) in
        [("short", 3, 300, 300), ("wide", 70, 800, 50), ("long", 1, 3000, 50)]
    {
        let stored = fill(&mut rng, &sql, stream, partitions, events).await;
        for _ in 0..queries {
            try_query(&mut rng, &rheo, stream, &stored).await;
        }
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn on_sqlite() {
    let sql = Sql::connect("sqlite::memory:").await.unwrap();
    queries_find_what_the_matcher_says("sqlite", sql).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn on_postgres() {
    let started = rheo_conformance::servers::Postgres::start().await;
    let Some(server) = servers::found("postgres", started) else { return };
    let sql = Sql::connect(server.url()).await.unwrap();
    queries_find_what_the_matcher_says("postgres", sql).await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn on_mysql() {
    let started = rheo_conformance::servers::MariaDb::start().await;
    let Some(server) = servers::found("mysql", started) else { return };
    let sql = Sql::connect(server.url()).await.unwrap();
    queries_find_what_the_matcher_says("mysql", sql).await;
}

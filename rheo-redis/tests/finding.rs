//! What a search finds is what the matcher says: random events, random queries,
//! with an index and without, and also where entries are missing.

mod servers;

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use redis::{Client, cmd};
use rheo_conformance::servers::Redis as Server;
use rheo_core::{Condition, Event, Field, Filter, ManualClock, NewEvent, Query, Rheo};
use rheo_redis::{Index, Options, Redis};
use serde_json::{Value, json};

const EVENT_TYPES: &[&str] = &["a", "A", "a ", "{a}", "a:b/c%"];
const EVENT_KEYS: &[&str] = &["", "k", "K", "é", "k:{}"];
const LINEAGE: &[&str] =
    &["correlation_id", "causation_id", "producer", "schema", "schema_version"];

fn one_of<'a>(rng: &mut Rng, choices: &[&'a str]) -> &'a str {
    choices[rng.usize(..choices.len())]
}

/// What a metadata field may hold; mostly what an index knows.
fn value(rng: &mut Rng) -> Value {
    match rng.u8(..8) {
        0 => json!(rng.u8(..2)),
        1 => json!(["a"]),
        2 => json!(null),
        3 => json!({"a": "a"}),
        4 => json!("a\"\\🦀é"),
        _ => json!(one_of(rng, EVENT_TYPES)),
    }
}

fn event(rng: &mut Rng, partitions: u32) -> NewEvent {
    let payload = json!({"a": value(rng), "filler": "x".repeat(rng.usize(..300))});
    let mut event = NewEvent::new(one_of(rng, EVENT_TYPES), payload);
    event = event.partition(rng.u32(..partitions));
    if rng.bool() {
        event = event.key(one_of(rng, EVENT_KEYS));
    }
    for _ in 0..rng.u8(..4) {
        event = event.metadata(one_of(rng, LINEAGE), value(rng));
    }
    event
}

/// A server, and the instance that is tried, whose keys have a prefix of their own.
struct World {
    server: Server,
    redis: Arc<Redis>,
    prefix: String,
}

/// Fills a stream through two instances whose clocks differ, so that timestamps
/// do not always rise, and deletes some entries by hand.
async fn fill(
    rng: &mut Rng,
    world: &World,
    stream: &str,
    partitions: u32,
    count: usize,
) -> Vec<Event> {
    let mut instances = Vec::new();
    for _ in 0..2 {
        let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
        let rheo = Rheo::builder(world.redis.clone()).clock(clock.clone()).build().await.unwrap();
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
    let client = Client::open(world.server.url()).unwrap();
    let mut by_hand = client.get_multiplexed_async_connection().await.unwrap();
    for _ in 0..count / 20 {
        let gone = stored.remove(rng.usize(..stored.len()));
        let log = format!("{}{{{stream}/{}}}", world.prefix, gone.partition());
        let mut delete = cmd("XDEL");
        delete.arg(log).arg(format!("0-{}", gone.sequence()));
        assert_eq!(delete.query_async::<u32>(&mut by_hand).await.unwrap(), 1);
    }
    stored
}

/// A field, and values of kinds that are allowed there.
fn field_and_values(rng: &mut Rng, stored: &[Event]) -> (Field, Vec<Value>) {
    let count = if rng.bool() { 1 } else { rng.usize(1..6) };
    let events: Vec<_> = (0..count).map(|_| &stored[rng.usize(..stored.len())]).collect();
    let of_events = |value: fn(&Event) -> Value| events.iter().map(|&event| value(event)).collect();
    match rng.u8(..16) {
        0 => (Field::Id, of_events(|event| event.id().to_string().into())),
        1..4 => (Field::Type, of_events(|event| event.event_type().into())),
        4..7 => (Field::Key, of_events(|event| event.key().map_or(json!(1), Value::from))),
        7 => (Field::Sequence, of_events(|event| event.sequence().into())),
        8..10 => (Field::Timestamp, of_events(|event| event.timestamp().to_string().into())),
        10..14 => {
            let name = one_of(rng, LINEAGE);
            (Field::metadata([name]), (0..count).map(|_| value(rng)).collect())
        }
        _ => (Field::payload(["a"]), (0..count).map(|_| value(rng)).collect()),
    }
}

fn filter(rng: &mut Rng, stored: &[Event]) -> Filter {
    let (field, mut values) = field_and_values(rng, stored);
    let first = values[0].clone();
    let condition = match rng.u8(..10) {
        0..4 => Condition::Equals(first),
        4 | 5 => {
            values.truncate(rng.usize(..=values.len()));
            Condition::In(values)
        }
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
    let found: Vec<_> = found.iter().collect();
    let positions = |events: &[&Event]| {
        events.iter().map(|event| event.position().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(positions(&found), positions(&expected), "{query:?}");
    assert_eq!(found, expected);
}

/// Of few partitions, of more than go into a page, and of one that is longer
/// than a page.
async fn queries_find_what_the_matcher_says(options: Options) {
    let Some(server) = servers::found("redis", Server::start().await) else { return };
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let prefix = format!("finding-{seed}:");
    let redis = Redis::connect_with(server.url(), options.prefix(&prefix)).await.unwrap();
    let world = World { server, redis, prefix };
    let rheo = Rheo::builder(world.redis.clone()).build().await.unwrap();
    for (stream, partitions, events, queries) in
        [("short", 3, 300, 300), ("wide", 300, 900, 50), ("long", 1, 3000, 50)]
    {
        let stored = fill(&mut rng, &world, stream, partitions, events).await;
        for _ in 0..queries {
            try_query(&mut rng, &rheo, stream, &stored).await;
        }
        let reads = stored.iter().filter(|event| event.partition() == 0);
        let read = rheo.read(stream, 0, 0, 10_000).await.unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), reads.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn by_reading_everything() {
    queries_find_what_the_matcher_says(Options::default()).await;
}

#[tokio::test]
async fn by_the_index() {
    let all = [Index::Type, Index::Key, Index::Lineage];
    queries_find_what_the_matcher_says(Options::default().index(all)).await;
}

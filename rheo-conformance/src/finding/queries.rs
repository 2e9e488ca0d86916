//! Random queries.

use fastrand::Rng;
use rheo_core::{Condition, Event, Field, Filter, Query};
use serde_json::{Value, json};

use super::events::{KEYS, LINEAGE, lineage_value, one_of, value};

/// What a query asks.
pub(super) struct Asked {
    pub(super) filters: Vec<Filter>,
    pub(super) after: u64,
    pub(super) until: u64,
    pub(super) limit: usize,
    pub(super) descending: bool,
}

impl Asked {
    /// Something about these events.
    pub(super) fn random(rng: &mut Rng, stored: &[Event]) -> Self {
        let longest = stored.iter().map(Event::sequence).max().expect("there are events");
        let filters = (0..rng.usize(..4)).map(|_| filter(rng, stored)).collect();
        let after = if rng.bool() { 0 } else { rng.u64(..longest) };
        let until = if rng.bool() { u64::MAX } else { after + rng.u64(1..=longest) };
        let limit = [1, rng.usize(1..60), 10_000][rng.usize(..3)];
        Self { filters, after, until, limit, descending: rng.bool() }
    }

    pub(super) fn query(&self) -> Query {
        let query = Query::new().after_sequence(self.after).until_sequence(self.until);
        let query = self.filters.iter().cloned().fold(query, Query::filter).limit(self.limit);
        if self.descending { query.descending() } else { query }
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

/// A field, and values of kinds that are allowed there: one at least.
fn field_and_values(rng: &mut Rng, stored: &[Event]) -> (Field, Vec<Value>) {
    let count = if rng.bool() { 1 } else { rng.usize(1..6) };
    let events: Vec<_> = (0..count).map(|_| &stored[rng.usize(..stored.len())]).collect();
    let of_events = |value: fn(&Event) -> Value| events.iter().map(|&event| value(event)).collect();
    match rng.u8(..20) {
        0 => (Field::Id, of_events(|event| event.id().to_string().into())),
        1..4 => (Field::Type, of_events(|event| event.event_type().into())),
        4..7 => (Field::Key, of_events(|event| event.key().map_or(json!(1), Value::from))),
        7 => (Field::Partition, vec![json!(rng.u32(..3)), json!(1.5)]),
        8 => (Field::Sequence, of_events(|event| event.sequence().into())),
        9 => (Field::Timestamp, of_events(|event| event.timestamp().to_string().into())),
        10..13 => {
            let name = one_of(rng, LINEAGE);
            (Field::metadata([name]), (0..count).map(|_| lineage_value(rng)).collect())
        }
        13..16 => (Field::metadata(path(rng)), (0..count).map(|_| value(rng)).collect()),
        _ => (Field::payload(path(rng)), (0..count).map(|_| value(rng)).collect()),
    }
}

/// Mostly of few names, and of none as well.
fn path(rng: &mut Rng) -> Vec<&'static str> {
    let length = rng.usize(..8).clamp(1, 7) / 3;
    (0..length).map(|_| one_of(rng, KEYS)).collect()
}

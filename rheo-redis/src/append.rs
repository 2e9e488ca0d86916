//! Appending.

use std::collections::BTreeMap;

use redis::{RedisWrite, ToRedisArgs, Value};
use rheo_core::backend::{Append, RoutedEvent};
use rheo_core::{Error, Event, EventBody, Position, Result, StreamName};
use uuid::Uuid;

use crate::Store;
use crate::call::Call;
use crate::codec;
use crate::error::corrupt;

const OPERATION: &str = "append";

/// The events that go to one partition, in order.
struct Batch<'a>(Vec<&'a RoutedEvent>);

impl Store {
    /// Appends: in one step on a single server, partition by partition in a
    /// cluster.
    pub(crate) async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        let mut batches: BTreeMap<u32, Batch<'_>> = BTreeMap::new();
        for event in &request.events {
            batches.entry(event.partition).or_insert_with(|| Batch(Vec::new())).0.push(event);
        }
        // In a cluster one partition may have it, and another not.
        let answers = self.call_all(OPERATION, &self.calls(request, &batches)).await?;
        let mut appended = BTreeMap::new();
        for ((&partition, batch), answer) in batches.iter().zip(answers) {
            let events = batch.placed(answer, &request.stream.name, partition)?;
            appended.insert(partition, events.into_iter());
        }
        let next = |event: &RoutedEvent| appended.get_mut(&event.partition)?.next();
        request.events.iter().map(next).collect::<Option<_>>().ok_or_else(strange)
    }

    /// What makes work rings: on a single server once for all of it, and last.
    fn calls(&self, request: &Append, batches: &BTreeMap<u32, Batch<'_>>) -> Vec<Call> {
        let stream = &request.stream;
        let channel = self.channel(&stream.name);
        let last = batches.keys().last();
        let call = |(partition, batch): (&u32, &Batch<'_>)| {
            let keys = [
                self.keys.log(&stream.name, *partition),
                self.keys.meta(&stream.name, *partition),
                self.keys.ids(&stream.name, *partition),
            ];
            let rings = self.facts.cluster || Some(partition) == last;
            Call::write("append", stream, &keys)
                .arg(stream.partitions)
                .arg(if rings { channel.as_str() } else { "" })
                .arg(batch)
        };
        batches.iter().map(call).collect()
    }
}

impl Batch<'_> {
    /// The events at their places, by what the function answered.
    fn placed(&self, answer: Value, stream: &StreamName, partition: u32) -> Result<Vec<Event>> {
        let mut answer = match answer {
            Value::Array(answer) => answer.into_iter(),
            last => vec![last].into_iter(),
        };
        let Some(Value::Int(last)) = answer.next() else { return Err(strange()) };
        let mut there = BTreeMap::new();
        while let (Some(Value::Int(number)), Some(entry)) = (answer.next(), answer.next()) {
            let events = codec::events(Value::Array(vec![entry]), stream, partition)?;
            there.extend(events.into_iter().map(|event| (number, event)));
        }
        let added = self.0.len() as u64 - there.len() as u64;
        let mut sequence = u64::try_from(last).ok().and_then(|last| last.checked_sub(added));
        let mut place = |(number, event): (i64, &&RoutedEvent)| {
            if let Some(event) = there.remove(&number) {
                return Some(event);
            }
            sequence = sequence.map(|sequence| sequence + 1);
            let position = Position::new(partition, sequence?);
            Some(Event::new(stream.clone(), position, event.body.clone()))
        };
        (1..).zip(&self.0).map(&mut place).collect::<Option<_>>().ok_or_else(strange)
    }
}

/// What the function is told of an event: which arguments it has (they are left
/// out where the event before has the same), and whether its caller gave its id.
mod shape {
    pub(super) const BASE: u8 = 64;
    pub(super) const TIMESTAMP: u8 = 1;
    pub(super) const TYPE: u8 = 2;
    pub(super) const METADATA: u8 = 4;
    pub(super) const KEY: u8 = 8;
    pub(super) const ID_GIVEN: u8 = 16;
}

/// The shape of an event, by itself and by the one before.
fn shape_of(event: &RoutedEvent, before: Option<&RoutedEvent>) -> u8 {
    let body = &event.body;
    let differs = |is_same: fn(&EventBody, &EventBody) -> bool| {
        before.is_none_or(|before| !is_same(body, &before.body))
    };
    let parts = [
        (shape::TIMESTAMP, differs(|one, other| one.timestamp() == other.timestamp())),
        (shape::TYPE, differs(|one, other| one.event_type() == other.event_type())),
        (shape::METADATA, differs(|one, other| one.metadata_text() == other.metadata_text())),
        (shape::KEY, body.key().is_some()),
        (shape::ID_GIVEN, event.idempotent),
    ];
    parts.into_iter().filter(|(_, has)| *has).fold(shape::BASE, |shape, (bit, _)| shape | bit)
}

/// As the function takes them: a shape for each, then the arguments of each.
impl ToRedisArgs for &Batch<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let before = std::iter::once(None).chain(self.0.iter().copied().map(Some));
        let shapes = self.0.iter().zip(before).map(|(event, before)| shape_of(event, before));
        let shapes: Vec<u8> = shapes.collect();
        out.write_arg(&shapes);
        for (RoutedEvent { body, .. }, shape) in self.0.iter().zip(shapes) {
            let mut id = Uuid::encode_buffer();
            out.write_arg(body.id().as_hyphenated().encode_lower(&mut id).as_bytes());
            out.write_arg(body.payload_text().as_bytes());
            if shape & shape::TIMESTAMP != 0 {
                body.timestamp().as_micros().write_redis_args(out);
            }
            if shape & shape::TYPE != 0 {
                out.write_arg(body.event_type().as_bytes());
            }
            if shape & shape::METADATA != 0 {
                out.write_arg(body.metadata_text().as_bytes());
            }
            if let Some(key) = body.key() {
                out.write_arg(key.as_bytes());
            }
        }
    }
}

fn strange() -> Error {
    corrupt(OPERATION, "the answer to an append is another than expected")
}

#[cfg(test)]
mod tests {
    use rheo_core::{EventParts, Timestamp};

    use super::*;

    fn event(micros: i64, event_type: &str, key: Option<&str>, idempotent: bool) -> RoutedEvent {
        let body = EventBody::from_store(&EventParts {
            id: Uuid::nil(),
            timestamp: Timestamp::from_micros(micros),
            event_type,
            key,
            metadata: "{}",
            payload: "1",
        });
        RoutedEvent { partition: 0, body: body.unwrap(), idempotent }
    }

    #[test]
    fn what_is_as_before_is_left_out() {
        let events = [
            event(7, "a", None, false),
            event(7, "a", Some(""), true),
            event(-8, "b", None, false),
        ];
        let args = (&Batch(events.iter().collect())).to_redis_args();
        let args: Vec<_> = args.iter().map(|arg| std::str::from_utf8(arg).unwrap()).collect();
        let id = "00000000-0000-0000-0000-000000000000";
        assert_eq!(args, ["GXC", id, "1", "7", "a", "{}", id, "1", "", id, "1", "-8", "b"]);
    }

    #[test]
    fn places_follow_from_the_last_one() {
        let stream = StreamName::new("orders").unwrap();
        let events = [event(1, "a", None, false), event(2, "b", None, false)];
        let batch = Batch(events.iter().collect());
        let placed = batch.placed(Value::Int(18), &stream, 3).unwrap();
        let positions: Vec<_> = placed.iter().map(Event::position).collect();
        assert_eq!(positions, [Position::new(3, 17), Position::new(3, 18)]);
        for strange in [Value::Int(1), Value::Okay, Value::Array(vec![])] {
            assert!(batch.placed(strange, &stream, 3).is_err());
        }
    }
}

//! Appending.

use std::collections::BTreeMap;

use redis::{RedisWrite, ToRedisArgs, Value};
use rheo_core::backend::{Append, RoutedEvent};
use rheo_core::{Effect, Event, Position, Result, StreamName};
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
        let answers = self.call_each(OPERATION, &self.calls(request, &batches)).await?;
        let applied = answers.iter().any(Result::is_ok);
        let mut appended = BTreeMap::new();
        for ((&partition, batch), answer) in batches.iter().zip(answers) {
            let answer = answer.map_err(|error| {
                if applied { error.with_effect(Effect::Unknown) } else { error }
            })?;
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
        let Value::Array(answer) = answer else { return Err(strange()) };
        let mut answer = answer.into_iter();
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

/// As the function takes them: how to take each, then the parts of each.
impl ToRedisArgs for &Batch<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let shape = |event: &&RoutedEvent| {
            b'0' + u8::from(event.body.key().is_some()) + 2 * u8::from(event.idempotent)
        };
        out.write_arg(&self.0.iter().map(shape).collect::<Vec<_>>());
        for RoutedEvent { body, .. } in &self.0 {
            let mut id = Uuid::encode_buffer();
            out.write_arg(body.id().as_hyphenated().encode_lower(&mut id).as_bytes());
            body.timestamp().as_micros().write_redis_args(out);
            out.write_arg(body.event_type().as_bytes());
            out.write_arg(body.key().unwrap_or_default().as_bytes());
            out.write_arg(body.metadata_text().as_bytes());
            out.write_arg(body.payload_text().as_bytes());
        }
    }
}

fn strange() -> rheo_core::Error {
    corrupt(OPERATION, "the answer to an append is another than expected")
}

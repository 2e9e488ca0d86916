//! Saboteurs at the log.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, GroupRef, LeaseRefusal, Read, RoutedEvent, Search, Seek, Settle, StreamRef,
};
use rheo_core::{
    Condition, Error, ErrorKind, Event, EventBody, EventParts, Field, Filter, Order, Outcome,
    Position, Result, StreamName, Timestamp,
};
use serde_json::Value;

use super::sabotaged::Sabotage;

fn parts(body: &EventBody) -> EventParts<'_> {
    EventParts {
        id: body.id(),
        timestamp: body.timestamp(),
        event_type: body.event_type(),
        key: body.key(),
        metadata: body.metadata_text(),
        payload: body.payload_text(),
    }
}

fn with_payload(body: &EventBody, payload: &str) -> EventBody {
    let changed = EventParts { payload, ..parts(body) };
    EventBody::from_store(&changed).expect("the payload is JSON")
}

/// The request with each event changed.
fn changed(request: &Append, change: impl Fn(&mut RoutedEvent)) -> Append {
    let mut request = request.clone();
    request.events.iter_mut().for_each(change);
    request
}

#[derive(Debug)]
pub(super) struct TimestampsCut;

#[async_trait]
impl Sabotage for TimestampsCut {
    async fn append(&self, store: &dyn Backend, request: &Append) -> Result<Vec<Event>> {
        let request = changed(request, |event| {
            let micros = event.body.timestamp().as_micros();
            let cut = EventParts {
                timestamp: Timestamp::from_micros(micros - micros.rem_euclid(1000)),
                ..parts(&event.body)
            };
            event.body = EventBody::from_store(&cut).expect("nothing else changed");
        });
        store.append(&request).await
    }
}

#[derive(Debug)]
pub(super) struct WholeFloatsBecomeIntegers;

#[async_trait]
impl Sabotage for WholeFloatsBecomeIntegers {
    async fn append(&self, store: &dyn Backend, request: &Append) -> Result<Vec<Event>> {
        let request = changed(request, |event| {
            if let Some(payload) = with_integers(&event.body.payload()) {
                event.body = with_payload(&event.body, &payload.to_string());
            }
        });
        store.append(&request).await
    }
}

/// The value with whole floats as integers, where it has any.
fn with_integers(value: &Value) -> Option<Value> {
    const FITS: f64 = 9e18;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and fits")]
            (float.abs() < FITS).then(|| Value::from(float as i64))
        }
        Value::Array(values) => {
            let changed: Vec<_> = values.iter().map(with_integers).collect();
            let or_same = |(new, old): (Option<_>, &Value)| new.unwrap_or_else(|| old.clone());
            let some = changed.iter().any(Option::is_some);
            some.then(|| changed.into_iter().zip(values).map(or_same).collect())
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let mut some = false;
            for value in fields.values_mut() {
                if let Some(changed) = with_integers(value) {
                    *value = changed;
                    some = true;
                }
            }
            some.then_some(Value::Object(fields))
        }
        _ => None,
    }
}

#[derive(Debug)]
pub(super) struct IdsIgnored;

#[async_trait]
impl Sabotage for IdsIgnored {
    async fn append(&self, store: &dyn Backend, request: &Append) -> Result<Vec<Event>> {
        store.append(&changed(request, |event| event.idempotent = false)).await
    }
}

#[derive(Debug)]
pub(super) struct BatchReversed;

#[async_trait]
impl Sabotage for BatchReversed {
    async fn append(&self, store: &dyn Backend, request: &Append) -> Result<Vec<Event>> {
        let first = request.events[0].partition;
        if request.events.iter().all(|event| event.partition == first) {
            return store.append(request).await;
        }
        let mut request = request.clone();
        request.events.reverse();
        let mut stored = store.append(&request).await?;
        stored.reverse();
        Ok(stored)
    }
}

type Place = (StreamName, Position);

fn place(event: &Event) -> Place {
    (event.stream().clone(), event.position())
}

/// The events that are in the store and not yet visible.
#[derive(Debug, Default)]
pub(super) struct CommitsLate {
    late: Mutex<HashSet<Place>>,
}

impl CommitsLate {
    fn late(&self) -> MutexGuard<'_, HashSet<Place>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn visible(&self, mut events: Vec<Event>) -> Vec<Event> {
        let late = self.late();
        events.retain(|event| late.is_empty() || !late.contains(&place(event)));
        events
    }
}

/// Makes an event visible in the end.
struct Commit<'a>(&'a CommitsLate, Place);

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        self.0.late().remove(&self.1);
    }
}

#[async_trait]
impl Sabotage for CommitsLate {
    async fn append(&self, store: &dyn Backend, request: &Append) -> Result<Vec<Event>> {
        let stored = store.append(request).await?;
        // Every other lone event, so that there are some to be overtaken by.
        if let [event] = &stored[..]
            && event.sequence() % 2 == 1
        {
            let commit = Commit(self, place(event));
            self.late().insert(place(event));
            tokio::time::sleep(Duration::from_millis(1)).await;
            drop(commit);
        }
        Ok(stored)
    }

    async fn read(&self, store: &dyn Backend, request: &Read) -> Result<Vec<Event>> {
        Ok(self.visible(store.read(request).await?))
    }
}

/// The events that anyone acked.
#[derive(Debug, Default)]
pub(super) struct AckedEventsVanish {
    acked: Mutex<HashSet<(StreamRef, Position)>>,
}

#[async_trait]
impl Sabotage for AckedEventsVanish {
    async fn settle(
        &self,
        store: &dyn Backend,
        request: &Settle,
    ) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let answers = store.settle(request).await?;
        let mut acked = self.acked.lock().unwrap_or_else(PoisonError::into_inner);
        for (settlement, answer) in request.settlements.iter().zip(&answers) {
            if answer.is_ok() && settlement.outcome == Outcome::Ack {
                let position = settlement.token.lease_id.position();
                acked.insert((request.group.stream.clone(), position));
            }
        }
        Ok(answers)
    }

    async fn read(&self, store: &dyn Backend, request: &Read) -> Result<Vec<Event>> {
        let mut events = store.read(request).await?;
        let acked = self.acked.lock().unwrap_or_else(PoisonError::into_inner);
        events.retain(|event| !acked.contains(&(request.stream.clone(), event.position())));
        Ok(events)
    }
}

#[derive(Debug)]
pub(super) struct ArraysEqualMembers;

#[async_trait]
impl Sabotage for ArraysEqualMembers {
    async fn search(&self, store: &dyn Backend, request: &Search) -> Result<Vec<Event>> {
        search_by(store, request, |filter, event| {
            let (Field::Payload(path), Condition::Equals(value)) =
                (filter.field(), filter.condition())
            else {
                return false;
            };
            let payload = event.payload();
            let found = path.iter().try_fold(&payload, |value, key| value.as_object()?.get(key));
            found.is_some_and(|found| found.as_array().is_some_and(|array| array.contains(value)))
        })
        .await
    }
}

/// A search in which a filter matches also where `or` holds, on payloads.
async fn search_by(
    store: &dyn Backend,
    request: &Search,
    or: impl Fn(&Filter, &Event) -> bool + Send + Sync,
) -> Result<Vec<Event>> {
    let on_payload = |filter: &Filter| matches!(filter.field(), Field::Payload(_));
    if !request.filters.iter().any(on_payload) {
        return store.search(request).await;
    }
    let wide = Search { filters: Vec::new(), limit: usize::MAX, ..request.clone() };
    let mut events = store.search(&wide).await?;
    let matches = |filter: &Filter, event: &Event| filter.matches(event) || or(filter, event);
    events.retain(|event| request.filters.iter().all(|filter| matches(filter, event)));
    events.truncate(request.limit);
    Ok(events)
}

#[derive(Debug)]
pub(super) struct NullEqualsMissing;

#[async_trait]
impl Sabotage for NullEqualsMissing {
    async fn search(&self, store: &dyn Backend, request: &Search) -> Result<Vec<Event>> {
        search_by(store, request, |filter, event| {
            let exists = Filter::new(filter.field().clone(), Condition::Exists);
            *filter.condition() == Condition::Equals(Value::Null) && !exists.matches(event)
        })
        .await
    }
}

#[derive(Debug)]
pub(super) struct LimitBeforeOrder;

#[async_trait]
impl Sabotage for LimitBeforeOrder {
    async fn search(&self, store: &dyn Backend, request: &Search) -> Result<Vec<Event>> {
        let order = Order::Ascending;
        let mut events = store.search(&Search { order, ..request.clone() }).await?;
        if request.order == Order::Descending {
            events.reverse();
        }
        Ok(events)
    }
}

#[derive(Debug)]
pub(super) struct PartitionAfterPartition;

#[async_trait]
impl Sabotage for PartitionAfterPartition {
    async fn search(&self, store: &dyn Backend, request: &Search) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for &range in &request.ranges {
            let of_one = Search {
                ranges: vec![range],
                limit: request.limit - events.len(),
                ..request.clone()
            };
            if of_one.limit > 0 {
                events.extend(store.search(&of_one).await?);
            }
        }
        Ok(events)
    }
}

#[derive(Debug)]
pub(super) struct StartsAfterInstant;

#[async_trait]
impl Sabotage for StartsAfterInstant {
    async fn seek(&self, store: &dyn Backend, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        let seek = match seek {
            Seek::At(instant) => Seek::At(Timestamp::from_micros(instant.as_micros() + 1)),
            Seek::End => Seek::End,
        };
        store.seek(stream, seek).await
    }
}

#[derive(Debug)]
pub(super) struct NamesFolded;

fn folded(a: &str, b: &str) -> bool {
    a != b && a.to_lowercase() == b.to_lowercase()
}

fn taken(operation: &'static str) -> Error {
    Error::new(ErrorKind::AlreadyExists, operation, "but for upper and lower case")
}

#[async_trait]
impl Sabotage for NamesFolded {
    async fn create_stream(&self, store: &dyn Backend, stream: &StreamRef) -> Result<()> {
        let streams = store.list_streams().await?;
        if streams.iter().any(|other| folded(other.name.as_str(), stream.name.as_str())) {
            return Err(taken("create_stream"));
        }
        store.create_stream(stream).await
    }

    async fn create_group(
        &self,
        store: &dyn Backend,
        request: &rheo_core::backend::CreateGroup,
    ) -> Result<()> {
        let GroupRef { stream, name } = &request.group;
        let groups = store.list_groups(stream).await?;
        if groups.iter().any(|other| folded(other.as_str(), name.as_str())) {
            return Err(taken("create_group"));
        }
        store.create_group(request).await
    }
}

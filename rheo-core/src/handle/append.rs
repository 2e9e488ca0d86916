//! Appending.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use metrics::counter;

use super::Rheo;
use super::coalesce::Lane;
use crate::backend::{Append, RoutedEvent, StreamRef};
use crate::{Error, ErrorKind, Event, NewEvent, Result, StreamName};

type AppendLane = Lane<RoutedEvent, Event>;

/// One lane for each partition: a write that is held up, as by the lock of a
/// long transaction, holds up no other partition.
#[derive(Debug, Default)]
pub(super) struct AppendLanes(Mutex<HashMap<(StreamRef, u32), Arc<AppendLane>>>);

impl AppendLanes {
    pub(super) fn remove(&self, stream: &StreamName) {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|(known, _), _| known.name != *stream);
    }

    fn get(&self, rheo: &Rheo, stream: &StreamRef, partition: u32) -> Arc<AppendLane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry((stream.clone(), partition)).or_insert_with(|| {
            // Weak: the instance owns the lane, not the lane the instance.
            let (inner, stream) = (Arc::downgrade(&rheo.inner), stream.clone());
            Arc::new(Lane::new(
                |event: &RoutedEvent| event.body.encoded_len(),
                move |events| {
                    let (inner, stream) = (inner.upgrade(), stream.clone());
                    async move {
                        let inner = inner.ok_or_else(super::coalesce::abandoned)?;
                        Rheo { inner }.append_now(Append { stream, events }).await
                    }
                    .boxed()
                },
            ))
        });
        Arc::clone(lane)
    }
}

impl Rheo {
    /// Appends one event, and returns it as stored.
    ///
    /// Where each write costs a round trip, concurrent calls on one partition go
    /// to the store together.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `EventTooLarge` where the event is over the size limit.
    ///
    /// # Cancellation
    /// The event may or may not be appended; sequences stay without gaps.
    pub async fn append(&self, stream: &str, event: NewEvent) -> Result<Event> {
        let stored = self.append_events("append", stream, &[event]).await?;
        stored.into_iter().next().ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "append", "the backend returned no event")
        })
    }

    /// Appends events in their order, and returns them as stored, in the same order.
    ///
    /// Sequences are contiguous inside each partition. All or nothing in each
    /// partition; across partitions too where the backend claims `atomic_batch`.
    /// No event writes nothing.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `EventTooLarge` where one event is over the size
    /// limit; nothing is written then.
    ///
    /// # Cancellation
    /// As for [`append`](Self::append).
    pub async fn append_batch(&self, stream: &str, events: Vec<NewEvent>) -> Result<Vec<Event>> {
        self.append_events("append_batch", stream, &events).await
    }

    /// The request that [`append_batch`](Self::append_batch) would make, for an
    /// adapter that executes it in a transaction of the caller's: checked,
    /// routed, with ids and timestamps. No event makes an empty request, which
    /// is not for a backend.
    ///
    /// The stream is looked up in the store the first time only. Where the
    /// backend answers `StreamNotFound`, [`forget_stream`](Self::forget_stream)
    /// and resolve the events again.
    ///
    /// # Errors
    /// As for [`append_batch`](Self::append_batch).
    pub async fn resolve_append(
        &self,
        stream: &str,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Result<Append> {
        const OPERATION: &str = "append_batch";
        let stream = self.known(OPERATION, stream).await?.stream;
        let events: Vec<NewEvent> = events.into_iter().collect();
        let events = self.route(OPERATION, &stream, &events)?;
        Ok(Append { stream, events })
    }

    async fn append_events(
        &self,
        operation: &'static str,
        stream: &str,
        events: &[NewEvent],
    ) -> Result<Vec<Event>> {
        let mut known = self.known(operation, stream).await?;
        loop {
            let routed = self.route(operation, &known.stream, events)?;
            if routed.is_empty() {
                return Ok(Vec::new());
            }
            let mut result = self.append_routed(&known.stream, routed).await;
            if !self.outdated(&mut known, &mut result).await {
                return result.map_err(|error| error.in_operation(operation));
            }
        }
    }

    fn route(
        &self,
        operation: &'static str,
        stream: &StreamRef,
        events: &[NewEvent],
    ) -> Result<Vec<RoutedEvent>> {
        let now = self.clock().now();
        let limit = self.settings().event_bytes;
        let route = |event: &NewEvent| event.route(operation, stream.partitions, now, limit);
        events.iter().map(route).collect()
    }

    async fn append_routed(
        &self,
        stream: &StreamRef,
        events: Vec<RoutedEvent>,
    ) -> Result<Vec<Event>> {
        let coalesced = self.inner.capabilities.mechanisms.coalesced_writes;
        match one_partition(&events).filter(|_| coalesced) {
            Some(partition) => {
                let lane = self.inner.appends.get(self, stream, partition);
                self.in_time("append", lane.submit(events)).await
            }
            None => self.append_now(Append { stream: stream.clone(), events }).await,
        }
    }

    async fn append_now(&self, request: Append) -> Result<Vec<Event>> {
        let events = self.write_call("append", || self.store().append(&request)).await?;
        let events = Self::one_for_each("append", request.events.len(), events)?;
        counter!("rheo_events_total", "operation" => "append").increment(events.len() as u64);
        Ok(events)
    }
}

/// The partition that all the events are routed to, if it is one.
fn one_partition(events: &[RoutedEvent]) -> Option<u32> {
    let partition = events.first()?.partition;
    events.iter().all(|event| event.partition == partition).then_some(partition)
}

//! [`Log`]: the events of one stream, and how they are found.

use std::collections::HashMap;

use rheo_core::backend::{Append, Read, RoutedEvent, Search, Seek};
use rheo_core::{Event, Filter, Order, Position, StreamName};
use uuid::Uuid;

/// The only partition that streams have here.
pub(crate) const PARTITION: u32 = 0;

/// Events in the order of their sequences: the first has sequence 1.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Vec<Event>,
    /// Where the ids are that callers gave. Those that Rheo generated are
    /// never looked up, so they need no place here.
    given_ids: HashMap<Uuid, usize>,
}

impl Log {
    /// The high watermark: the last sequence, 0 where there is none.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.events.len() as u64
    }

    /// Appends events in their order, and returns them as stored.
    pub(crate) fn append(&mut self, request: &Append) -> Vec<Event> {
        let stream = &request.stream.name;
        request.events.iter().map(|event| self.append_one(stream, event)).collect()
    }

    fn append_one(&mut self, stream: &StreamName, event: &RoutedEvent) -> Event {
        if event.idempotent {
            let next = self.events.len();
            let index = *self.given_ids.entry(event.body.id()).or_insert(next);
            // The id is known, perhaps from earlier in the same batch: the
            // event that has it is the answer, and takes no new sequence.
            if let Some(stored) = self.events.get(index) {
                return stored.clone();
            }
        }
        let position = Position::new(PARTITION, self.last_sequence() + 1);
        let stored = Event::new(stream.clone(), position, event.body.clone());
        self.events.push(stored.clone());
        stored
    }

    /// The event with this sequence.
    pub(crate) fn get(&self, sequence: u64) -> Option<&Event> {
        let index = usize::try_from(sequence.checked_sub(1)?).ok()?;
        self.events.get(index)
    }

    /// The events from `first` to `last`, as far as there are any.
    pub(crate) fn range(&self, first: u64, last: u64) -> &[Event] {
        // Whoever asks may name a sequence far beyond the end.
        let last = last.min(self.last_sequence());
        let first = first.max(1).min(last + 1);
        &self.events[(first - 1) as usize..last as usize]
    }

    pub(crate) fn read(&self, request: &Read) -> Vec<Event> {
        let events = self.range(request.after.saturating_add(1), u64::MAX);
        events.iter().take(request.limit).cloned().collect()
    }

    /// Looks at one event after the other, as far as need be. The matcher of
    /// the core says what a filter means; a store with indexes may narrow what
    /// it is asked about, never decide otherwise.
    pub(crate) fn search(&self, request: &Search) -> Vec<Event> {
        // There is one partition, and so one range at most.
        let range = request.ranges.first();
        let mut rest = range.map_or(&[][..], |range| self.range(range.first, range.last));
        let candidates = std::iter::from_fn(|| match request.order {
            Order::Ascending => rest.split_off_first(),
            Order::Descending => rest.split_off_last(),
        });
        let matching = candidates.filter(|event| Filter::matches_all(&request.filters, event));
        matching.take(request.limit).cloned().collect()
    }

    /// The sequence after which a group that begins at `seek` starts.
    pub(crate) fn seek(&self, seek: Seek) -> u64 {
        let before = match seek {
            Seek::End => None,
            // Timestamps need not ascend: they come from the appenders' clocks.
            Seek::At(instant) => self.events.iter().position(|event| event.timestamp() >= instant),
        };
        before.map_or(self.last_sequence(), |index| index as u64)
    }
}

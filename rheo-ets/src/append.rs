//! Appending.

use rheo_core::backend::Append;
use rheo_core::{Event, Position, Result};

use crate::Memory;
use crate::index::Terms;
use crate::partition::Writer;
use crate::store::Stream;

impl Memory {
    /// Appends under the locks of all partitions touched, taken in ascending
    /// order: nobody appends in between, and each partition shows the batch wholly or not at all.
    pub(crate) fn append_events(&self, request: &Append) -> Result<Vec<Event>> {
        let stream = self.stream("append", &request.stream)?;
        let stored = append_to(&stream, request);
        stream.bell.ring();
        Ok(stored)
    }
}

fn append_to(stream: &Stream, request: &Append) -> Vec<Event> {
    // What costs time comes before the locks.
    let of_event = |event| stream.vocabulary.of_event(event);
    let terms: Vec<Terms> = request.events.iter().map(|event| of_event(&event.body)).collect();
    let mut touched: Vec<u32> = request.events.iter().map(|event| event.partition).collect();
    touched.sort_unstable();
    touched.dedup();

    let mut writers: Vec<Writer<'_>> =
        touched.iter().map(|&partition| stream.partition(partition).write()).collect();
    let append = |(event, terms)| {
        let event: &rheo_core::backend::RoutedEvent = event;
        let at = touched.partition_point(|&partition| partition < event.partition);
        let (sequence, body) = writers[at].append(event, terms);
        let position = Position::new(event.partition, sequence);
        Event::new(request.stream.name.clone(), position, body)
    };
    request.events.iter().zip(&terms).map(append).collect()
}

//! Reading by sequence, and finding places in the log.

use rheo_core::backend::{Read, Seek, StreamRef};
use rheo_core::{Event, Position, Result};

use crate::Memory;
use crate::partition::Partition;

impl Memory {
    pub(crate) fn read_events(&self, request: &Read) -> Result<Vec<Event>> {
        let stream = self.stream("read", &request.stream)?;
        let contents = stream.partition(request.partition).read();
        let first = request.after.saturating_add(1);
        let last = request.after.saturating_add(request.limit as u64);
        let events = contents.log.range(first, last).map(|(sequence, body)| {
            let position = Position::new(request.partition, sequence);
            Event::new(request.stream.name.clone(), position, body.clone())
        });
        Ok(events.collect())
    }

    pub(crate) fn find_places(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        let stream = self.stream("seek", stream)?;
        let place = |partition: &Partition| match seek {
            Seek::End => partition.high_watermark(),
            Seek::At(instant) => {
                let log = &partition.read().log;
                log.first_at(instant).map_or(log.high_watermark(), |sequence| sequence - 1)
            }
        };
        Ok(stream.partitions.iter().map(place).collect())
    }
}

//! [`Log`]: the events of one partition, by sequence.

use rheo_core::{EventBody, Timestamp};

/// How many events a chunk holds. Chunks are filled one after the other and
/// never moved, so a long log costs no copying when it grows.
const CHUNK: usize = 1024;

/// Events, numbered from 1 without gaps.
#[derive(Debug, Default)]
pub(crate) struct Log {
    chunks: Vec<Chunk>,
    len: u64,
}

#[derive(Debug)]
struct Chunk {
    bodies: Vec<EventBody>,
    /// The latest timestamp of this chunk and all before it.
    latest: Timestamp,
}

impl Log {
    /// Adds an event, and returns its sequence.
    pub(crate) fn push(&mut self, body: EventBody) -> u64 {
        let latest = self.chunks.last().map_or(Timestamp::MIN, |chunk| chunk.latest);
        let latest = latest.max(body.timestamp());
        match self.chunks.last_mut() {
            Some(chunk) if chunk.bodies.len() < CHUNK => {
                chunk.bodies.push(body);
                chunk.latest = latest;
            }
            last => {
                // The first chunk grows by need: many partitions stay short.
                let room = if last.is_some() { CHUNK } else { 0 };
                let mut bodies = Vec::with_capacity(room);
                bodies.push(body);
                self.chunks.push(Chunk { bodies, latest });
            }
        }
        self.len += 1;
        self.len
    }

    /// The last sequence, 0 where there is none.
    pub(crate) fn high_watermark(&self) -> u64 {
        self.len
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<&EventBody> {
        let index = usize::try_from(sequence.checked_sub(1)?).ok()?;
        self.chunks.get(index / CHUNK)?.bodies.get(index % CHUNK)
    }

    /// The events from `first` to `last`, as far as the log has them.
    pub(crate) fn range(
        &self,
        first: u64,
        last: u64,
    ) -> impl DoubleEndedIterator<Item = (u64, &EventBody)> {
        let last = last.min(self.len);
        (first..=last).filter_map(|sequence| Some((sequence, self.get(sequence)?)))
    }

    /// The lowest sequence whose event is not before `instant`. Timestamps
    /// need not ascend.
    pub(crate) fn first_at(&self, instant: Timestamp) -> Option<u64> {
        let number = self.chunks.partition_point(|chunk| chunk.latest < instant);
        let bodies = &self.chunks.get(number)?.bodies;
        // What comes before this chunk is earlier, so one of its own is meant.
        let offset = bodies.iter().position(|body| body.timestamp() >= instant)?;
        Some((number * CHUNK + offset) as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::tests::body_at;

    fn log(micros: impl IntoIterator<Item = i64>) -> Log {
        let mut log = Log::default();
        for micros in micros {
            log.push(body_at(micros));
        }
        log
    }

    #[test]
    fn sequences_count_from_one_over_chunk_borders() {
        let count = 3 * CHUNK as i64 + 1;
        let log = log(0..count);
        assert_eq!(log.high_watermark(), count as u64);
        for sequence in 1..=log.high_watermark() {
            let body = log.get(sequence).unwrap();
            assert_eq!(body.timestamp().as_micros(), sequence as i64 - 1);
        }
        assert!(log.get(0).is_none());
        assert!(log.get(log.high_watermark() + 1).is_none());
        let found: Vec<_> = log.range(1023, 1026).rev().map(|(sequence, _)| sequence).collect();
        assert_eq!(found, [1026, 1025, 1024, 1023]);
        assert_eq!(log.range(count as u64, u64::MAX).count(), 1);
        assert_eq!(log.range(9, 8).count(), 0);
    }

    #[test]
    fn an_instant_is_found_though_time_goes_back() {
        let log = log([10, 30, 20, 40].into_iter().chain(std::iter::repeat_n(5, 5000)).chain([50]));
        let first_at = |micros| log.first_at(Timestamp::from_micros(micros));
        assert_eq!(first_at(0), Some(1));
        assert_eq!(first_at(10), Some(1));
        assert_eq!(first_at(15), Some(2));
        assert_eq!(first_at(30), Some(2));
        assert_eq!(first_at(31), Some(4));
        assert_eq!(first_at(41), Some(5005));
        assert_eq!(first_at(51), None);
        assert_eq!(Log::default().first_at(Timestamp::MIN), None);
    }
}

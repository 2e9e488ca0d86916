//! Finding places in the log.

use redis::FromRedisValue;
use rheo_core::Result;
use rheo_core::backend::{Seek, StreamRef};

use crate::Store;
use crate::call::Call;
use crate::error::corrupt;

/// What was found in one partition.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The partition's last sequence.
    pub(crate) last: u64,
    /// The sequence just before what was looked for.
    pub(crate) before: u64,
    /// The names of the stream's indexes.
    pub(crate) indexes: String,
}

impl Store {
    /// Finds a place in each partition.
    pub(crate) async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        let places = self.places("seek", stream, 0..stream.partitions, seek).await?;
        Ok(places.into_iter().map(|place| place.before).collect())
    }

    /// Finds a place in each of these partitions. The functions inside the
    /// server do the searching, so that it takes one round trip.
    pub(crate) async fn places(
        &self,
        operation: &'static str,
        stream: &StreamRef,
        partitions: impl Iterator<Item = u32>,
        seek: Seek,
    ) -> Result<Vec<Place>> {
        let instant = match seek {
            Seek::End => String::new(),
            Seek::At(instant) => instant.as_micros().to_string(),
        };
        let call = |partition| {
            let keys =
                [self.keys.log(&stream.name, partition), self.keys.meta(&stream.name, partition)];
            Call::read("seek", stream, &keys).arg(stream.partitions).arg(&instant)
        };
        let calls: Vec<Call> = partitions.map(call).collect();
        let answers = self.call_each(operation, &calls).await?;
        let place = |answer: Result<_>| {
            let (last, before, indexes) = FromRedisValue::from_redis_value(answer?)
                .map_err(|_| corrupt(operation, "a place in the log is other than expected"))?;
            Ok(Place { last, before, indexes })
        };
        answers.into_iter().map(place).collect()
    }
}

//! Finding places in the log.

use std::ops::RangeInclusive;

use rheo_core::Result;
use rheo_core::backend::{Seek, StreamRef};

use crate::Store;
use crate::db::{Conn, Row, args};
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;

/// Find a place in each partition of a stream.
#[derive(Debug)]
pub(crate) struct FindPlaces {
    pub(crate) stream: StreamRef,
    pub(crate) seek: Seek,
}

/// A place in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) stream_id: i64,
    pub(crate) partition: u32,
    /// The partition's last sequence.
    pub(crate) last: u64,
    /// The sequence just before what was looked for.
    pub(crate) before: u64,
}

impl Operation for FindPlaces {
    const NAME: &'static str = "seek";
    type Output = Vec<u64>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<u64>, Failure> {
        let all = 0..=self.stream.partitions - 1;
        let places = find_places(store, conn, Self::NAME, &self.stream, all, self.seek).await?;
        Ok(places.iter().map(|place| place.before).collect())
    }
}

/// Finds a place in each of these partitions, of which the stream has one at
/// least.
///
/// # Errors
/// `StreamNotFound`.
pub(crate) async fn find_places(
    store: &Store,
    conn: &mut Conn<'_>,
    operation: &'static str,
    stream: &StreamRef,
    partitions: RangeInclusive<u32>,
    seek: Seek,
) -> Result<Vec<Place>, Failure> {
    let (first, last) = partitions.into_inner();
    let mut args = args![stream.name.as_str(), stream.partitions, first, last];
    let statement = match seek {
        Seek::End => store.sql("last_places"),
        Seek::At(instant) => {
            args.push(instant.as_micros().into());
            store.sql("places_at")
        }
    };
    let rows = conn.rows(&statement, args).await?;
    if rows.is_empty() {
        return Err(stream_not_found(operation, &stream.name).into());
    }
    rows.iter().map(place).collect()
}

fn place(row: &Row) -> Result<Place, Failure> {
    Ok(Place {
        partition: row.u32(0)?,
        stream_id: row.int(1)?,
        last: row.u64(2)?,
        before: row.u64(3)?,
    })
}

//! Reading by sequence.

use rheo_core::backend::{Read, Seek};
use rheo_core::{Event, Result};

use crate::Store;
use crate::codec;
use crate::db::{Conn, args};
use crate::error::Failure;
use crate::operation::Operation;
use crate::seek::find_places;

impl Operation for Read {
    const NAME: &'static str = "read";
    type Output = Vec<Event>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Event>, Failure> {
        let Read { stream, partition, after, limit } = self;
        let args = args![stream.name.as_str(), stream.partitions, *partition, *after, *limit];
        let rows = conn.rows(&store.sql("read"), args).await?;
        if rows.is_empty() {
            // Nothing there, or no stream: only then is it worth asking.
            let only = *partition..=*partition;
            find_places(store, conn, Self::NAME, stream, only, Seek::End).await?;
        }
        rows.iter().map(|row| codec::event(row, 0, &stream.name)).collect()
    }
}

//! Creating, deleting and listing streams.

use rheo_core::backend::StreamRef;
use rheo_core::{Error, ErrorKind, Result, StreamName};
use serde_json::json;

use crate::Store;
use crate::db::{Conn, Row, args};
use crate::error::{Failure, corrupt, stream_not_found};
use crate::group::forget_group;
use crate::operation::Operation;
use crate::state::list;

/// Create this stream.
pub(crate) struct CreateStream(pub(crate) StreamRef);

impl Operation for CreateStream {
    const NAME: &'static str = "create_stream";
    type Output = ();

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let StreamRef { name, partitions } = &self.0;
        let stream = args![name.as_str(), *partitions];
        // Whoever races for the name waits here, and finds it taken.
        if conn.execute(&store.sql("put_stream"), stream).await? == 0 {
            let context = format!("stream {name:?}");
            return Err(Error::new(ErrorKind::AlreadyExists, Self::NAME, context).into());
        }
        let numbers = list((0..*partitions).map(|number| json!({"number": number})));
        conn.execute(&store.sql("put_partitions"), args![name.as_str(), numbers]).await?;
        Ok(())
    }
}

/// Delete this stream, with its events and its groups.
pub(crate) struct DeleteStream(pub(crate) StreamName);

impl Operation for DeleteStream {
    const NAME: &'static str = "delete_stream";
    type Output = ();

    /// Locks come first, and in the order in which all take them: the stream
    /// keeps new groups out, its partitions appends, the cursors claims. Whoever
    /// was before is waited for, and what it wrote is found below.
    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let stream = lock_stream(store, conn, Self::NAME, &self.0).await?;
        conn.rows(&store.sql("lock_ends"), args![stream.id]).await?;
        conn.execute(&store.sql("remove_partitions"), args![stream.id]).await?;
        for group in conn.rows(&store.sql("lock_groups"), args![stream.id]).await? {
            forget_group(store, conn, group.int(0)?).await?;
        }
        for statement in ["remove_groups", "remove_ids", "remove_events", "remove_stream"] {
            conn.execute(&store.sql(statement), args![stream.id]).await?;
        }
        Ok(())
    }
}

/// How many partitions has this stream?
pub(crate) struct FindPartitions(pub(crate) StreamName);

impl Operation for FindPartitions {
    const NAME: &'static str = "partitions";
    type Output = u32;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<u32, Failure> {
        let found = conn.row(&store.sql("find_stream"), args![self.0.as_str()]).await?;
        found.ok_or_else(|| stream_not_found(Self::NAME, &self.0))?.u32(1)
    }
}

/// Which streams are there?
pub(crate) struct ListStreams;

impl Operation for ListStreams {
    const NAME: &'static str = "list_streams";
    type Output = Vec<StreamRef>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Self::Output, Failure> {
        let rows = conn.rows(&store.sql("list_streams"), args![]).await?;
        let stream = |row: &Row| {
            let name = StreamName::new(row.text(0)?).map_err(|error| corrupt(0, error))?;
            Ok(StreamRef { name, partitions: row.u32(1)? })
        };
        rows.iter().map(stream).collect()
    }
}

/// A stream that can be neither deleted nor given a group by others.
pub(crate) struct LockedStream {
    pub(crate) id: i64,
    pub(crate) partitions: u32,
}

/// Finds a stream and locks it: `StreamNotFound`.
pub(crate) async fn lock_stream(
    store: &Store,
    conn: &mut Conn<'_>,
    operation: &'static str,
    name: &StreamName,
) -> Result<LockedStream, Failure> {
    let found = conn.row(&store.sql("lock_stream"), args![name.as_str()]).await?;
    let found = found.ok_or_else(|| stream_not_found(operation, name))?;
    Ok(LockedStream { id: found.int(0)?, partitions: found.u32(1)? })
}

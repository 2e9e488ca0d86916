//! Creating, deleting and listing streams.

mod deletion;

use std::sync::Arc;

use mongodb::ClientSession;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use rheo_core::backend::StreamRef;
use rheo_core::{Error, ErrorKind, Result, StreamName, Timestamp};
use serde::Deserialize;

use crate::Store;
use crate::collections::all;
use crate::error::{Failure, corrupt, stream_not_found};
use crate::operation::Operation;
use deletion::{DropStream, Leftover};

/// A stream's document.
#[derive(Debug, Deserialize)]
struct StreamFields {
    #[serde(rename = "_id")]
    name: String,
    log: ObjectId,
    partitions: u32,
    /// Whether its deletion has begun: then nobody finds it any more.
    #[serde(default)]
    dropping: bool,
    /// The last sequence of each partition when the deletion began.
    #[serde(default)]
    ends: Vec<u64>,
}

impl Store {
    /// Creates a stream, once nothing is left of a deleted one of its name.
    pub(crate) async fn create_stream(self: &Arc<Self>, stream: &StreamRef) -> Result<()> {
        while let Some(leftover) = self.write(CreateStream(stream.clone())).await? {
            self.finish_deletion(CreateStream::NAME, leftover).await?;
        }
        Ok(())
    }

    /// Deletes a stream. What is left of one that was deleted before goes too.
    pub(crate) async fn delete_stream(self: &Arc<Self>, name: &StreamName) -> Result<()> {
        let dropped = self.write(DropStream(name.clone())).await?;
        self.finish_deletion(DropStream::NAME, dropped.leftover).await?;
        if dropped.before {
            return Err(stream_not_found(DropStream::NAME, name));
        }
        Ok(())
    }
}

/// Create this stream. What is left of a deleted one is the answer, where that
/// has to go first.
struct CreateStream(StreamRef);

impl Operation for CreateStream {
    const NAME: &'static str = "create_stream";
    type Output = Option<Leftover>;

    /// Of several that race, one writes the document; the others begin anew,
    /// and find it.
    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Option<Leftover>, Failure> {
        let StreamRef { name, partitions } = &self.0;
        if let Some(found) = find(store, session, name).await? {
            if found.dropping {
                return Ok(Some(found.into()));
            }
            let context = format!("stream {name:?}");
            return Err(Error::new(ErrorKind::AlreadyExists, Self::NAME, context).into());
        }
        let log = ObjectId::new();
        let stream = doc! {
            "_id": name.as_str(), "log": log, "partitions": *partitions, "groups": 0_i64,
        };
        store.collections.streams.insert_one(stream).session(&mut *session).await?;
        let documents =
            (0..*partitions).map(|partition| partition_document(&self.0, log, partition));
        store.collections.partitions.insert_many(documents).session(session).await?;
        Ok(None)
    }
}

/// The names stand in the `_id`, since of a change that is all that a change
/// stream tells.
fn partition_document(stream: &StreamRef, log: ObjectId, partition: u32) -> Document {
    let name = stream.name.as_str();
    doc! {
        "_id": { "stream": name, "partition": partition },
        "stream": name,
        "log": log,
        "partition": partition,
        "partitions": stream.partitions,
        "last": 0_i64,
        "latest": Timestamp::MIN.as_micros(),
    }
}

/// How many partitions has this stream?
pub(crate) struct FindPartitions(pub(crate) StreamName);

impl Operation for FindPartitions {
    const NAME: &'static str = "partitions";
    type Output = u32;

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<u32, Failure> {
        let found = find(store, session, &self.0).await?.filter(|stream| !stream.dropping);
        Ok(found.ok_or_else(|| stream_not_found(Self::NAME, &self.0))?.partitions)
    }
}

/// Which streams are there?
pub(crate) struct ListStreams;

impl Operation for ListStreams {
    const NAME: &'static str = "list_streams";
    type Output = Vec<StreamRef>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let streams = store.collections.streams.clone_with_type::<StreamFields>();
        let finding = streams.find(doc! { "dropping": { "$exists": false } });
        let cursor = finding.sort(doc! { "_id": 1 }).session(&mut *session).await?;
        let stream = |found: StreamFields| {
            let name =
                StreamName::new(found.name).map_err(|why| corrupt("a stream's name", why))?;
            Ok(StreamRef { name, partitions: found.partitions })
        };
        all(cursor, session).await?.into_iter().map(stream).collect()
    }
}

/// A stream's document, be it there for others or on its way out.
async fn find(
    store: &Store,
    session: &mut ClientSession,
    name: &StreamName,
) -> Result<Option<StreamFields>, Failure> {
    let streams = store.collections.streams.clone_with_type::<StreamFields>();
    Ok(streams.find_one(doc! { "_id": name.as_str() }).session(session).await?)
}

//! [`Collections`]: where everything lies.

mod indexes;
mod making;

use futures::TryStreamExt;
use mongodb::bson::{Document, RawDocumentBuf};
use mongodb::options::{
    Acknowledgment, CollectionOptions, DatabaseOptions, ReadConcern, ReadPreference, WriteConcern,
};
use mongodb::{Client, ClientSession, Collection, Database, SessionCursor};
use rheo_core::Result;
use serde::de::DeserializeOwned;

use crate::error::Failure;

/// The collections of one prefix, in a database that is read from the primary
/// alone and waits until most of the members have what is written on disk,
/// whatever its client does.
#[derive(Clone, Debug)]
pub(crate) struct Collections {
    pub(crate) database: Database,
    pub(crate) schema: Collection<Document>,
    pub(crate) streams: Collection<Document>,
    pub(crate) partitions: Collection<Document>,
    pub(crate) events: Collection<RawDocumentBuf>,
    pub(crate) groups: Collection<Document>,
    pub(crate) runs: Collection<Document>,
    pub(crate) attempts: Collection<Document>,
    pub(crate) dead_letters: Collection<Document>,
}

impl Collections {
    pub(crate) fn new(client: &Client, database: &str, prefix: &str) -> Self {
        let mut durably = WriteConcern::from(Acknowledgment::Majority);
        durably.journal = Some(true);
        let options = DatabaseOptions::builder()
            .selection_criteria(Some(ReadPreference::Primary.into()))
            .read_concern(Some(ReadConcern::majority()))
            .write_concern(Some(durably))
            .build();
        let database = client.database_with_options(database, options);
        let place = Place { database: &database, prefix };
        Self {
            schema: place.collection("schema"),
            streams: place.collection("streams"),
            partitions: place.collection("partitions"),
            events: place.collection("events"),
            groups: place.collection("groups"),
            runs: place.collection("runs"),
            attempts: place.collection("attempts"),
            dead_letters: place.collection("dead_letters"),
            database,
        }
    }
}

/// Where the collections of one prefix lie.
struct Place<'a> {
    database: &'a Database,
    prefix: &'a str,
}

impl Place<'_> {
    /// In a session that shows a snapshot, the driver asks for one only where
    /// nothing else is set, be it by the host's client.
    fn collection<T: Send + Sync>(&self, name: &str) -> Collection<T> {
        let snapshot = CollectionOptions::builder().read_concern(Some(ReadConcern::snapshot()));
        let name = format!("{}{name}", self.prefix);
        self.database.collection_with_options(&name, snapshot.build())
    }
}

/// All that a cursor gives.
pub(crate) async fn all<T: DeserializeOwned + Send + Sync + Unpin>(
    mut cursor: SessionCursor<T>,
    session: &mut ClientSession,
) -> Result<Vec<T>, Failure> {
    Ok(cursor.stream(session).try_collect().await?)
}

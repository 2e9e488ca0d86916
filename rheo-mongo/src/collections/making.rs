//! How the collections come about, and who may use them.

use std::sync::Arc;

use futures::future::try_join_all;
use mongodb::bson::{Document, doc};
use mongodb::error::ErrorKind as Kind;
use mongodb::{ClientSession, IndexModel};
use rheo_core::backend::Server;
use rheo_core::{Effect, Error, ErrorKind, Result};

use super::Collections;
use crate::Store;
use crate::error::{Failure, corrupt};
use crate::operation::Operation;

/// The version of how the documents are laid out.
const VERSION: i32 = 1;

/// The server's code for a collection that is there already.
const EXISTS: i32 = 48;

impl Store {
    /// Makes the collections and indexes, or finds them so; then finishes
    /// what was cut off.
    pub(crate) async fn prepare(self: &Arc<Self>) -> Result<()> {
        if self.check_version().await?.is_none() {
            // What is made stays, also where not all of it is.
            let made = self.read(Make).await;
            made.map_err(|error| error.with_effect(Effect::Unknown))?;
        }
        self.finish_deletions().await
    }

    /// Refuses documents that a later version of Rheo laid out. Answers which
    /// version did, if one has.
    pub(crate) async fn check_version(self: &Arc<Self>) -> Result<Option<i32>> {
        let found = self.read(FindVersion).await?;
        if let Some(version) = found.filter(|&version| version > VERSION) {
            let context = format!(
                "the collections under {:?} were made by a newer Rheo (layout {version}; this one \
                 knows {VERSION}): upgrade this program",
                self.options.collection_prefix
            );
            return Err(Error::new(ErrorKind::Config, FindVersion::NAME, context));
        }
        Ok(found)
    }

    /// Asks the primary for a sign of life.
    pub(crate) async fn ping(self: &Arc<Self>) -> Result<Server> {
        self.read(Ping).await?;
        let facts = self.facts.clone();
        Ok(Server { product: facts.product, version: facts.version })
    }
}

/// Which version laid out the documents?
struct FindVersion;

impl Operation for FindVersion {
    const NAME: &'static str = "prepare";
    type Output = Option<i32>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Option<i32>, Failure> {
        let found = store.collections.schema.find_one(doc! { "_id": "rheo" }).session(session);
        let version = |found: &Document| found.get_i32("version");
        let version = found.await?.as_ref().map(version).transpose();
        version.map_err(|why| corrupt("the version of the layout", why))
    }
}

/// Make the collections, their indexes, and the document that says so.
///
/// Each step may have been done before, by this instance or another.
struct Make;

impl Operation for Make {
    const NAME: &'static str = "prepare";
    type Output = ();

    async fn run(&self, store: &Store, _: &mut ClientSession) -> Result<(), Failure> {
        let collections = &store.collections;
        let making =
            collections.with_indexes().map(|(name, indexes)| collections.make(name, indexes));
        try_join_all(making).await?;
        let version = doc! { "$setOnInsert": { "version": VERSION } };
        collections.schema.update_one(doc! { "_id": "rheo" }, version).upsert(true).await?;
        Ok(())
    }
}

impl Collections {
    async fn make(&self, name: &str, indexes: Vec<IndexModel>) -> Result<(), Failure> {
        match self.database.create_collection(name).await {
            Err(error) if exists(&error) => {}
            created => created?,
        }
        if !indexes.is_empty() {
            self.database.collection::<Document>(name).create_indexes(indexes).await?;
        }
        Ok(())
    }
}

fn exists(error: &mongodb::error::Error) -> bool {
    matches!(&*error.kind, Kind::Command(answer) if answer.code == EXISTS)
}

/// Is the primary there?
struct Ping;

impl Operation for Ping {
    const NAME: &'static str = "ping";
    type Output = ();

    async fn run(&self, store: &Store, _: &mut ClientSession) -> Result<(), Failure> {
        store.collections.database.run_command(doc! { "ping": 1 }).await?;
        Ok(())
    }
}

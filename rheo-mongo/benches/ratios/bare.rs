//! The bare driver, and the least that could be called the same work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Document, doc, serialize_to_bson};
use mongodb::options::{
    Acknowledgment, CollectionOptions, IndexOptions, ReturnDocument, WriteConcern,
};
use mongodb::{Client, Collection, Database, IndexModel};
use ratios::{event_type, key, payload};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How long a claim holds, in milliseconds.
const LEASE: i64 = 30_000;

/// A collection of events, and one of what is to be claimed: a document for
/// each batch. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Log {
    client: Client,
    events: Collection<Document>,
    claims: Collection<Claim>,
    /// The next sequence.
    next: Arc<AtomicU64>,
}

/// A batch that can be claimed, or is.
#[derive(Deserialize, Serialize)]
pub(crate) struct Claim {
    #[serde(rename = "_id")]
    first: i64,
    last: i64,
    due: i64,
    fence: Option<ObjectId>,
}

impl Log {
    /// An empty one, with the index that orders its events.
    pub(crate) async fn create(client: &Client, database: &Database, name: &str) -> Self {
        let options = CollectionOptions::builder().write_concern(durably()).build();
        let log = Self {
            client: client.clone(),
            events: database.collection_with_options(name, options.clone()),
            claims: database.collection_with_options(&format!("{name}_claims"), options),
            next: Arc::new(AtomicU64::new(1)),
        };
        let order = IndexModel::builder()
            .keys(doc! { "stream": 1, "partition": 1, "sequence": 1 })
            .options(IndexOptions::builder().unique(true).build())
            .build();
        log.events.create_index(order).await.expect("an index");
        log
    }

    /// Makes the indexes of another collection.
    pub(crate) async fn index_like(&self, other: &Collection<Document>) {
        let indexes = other.list_indexes().await.expect("its indexes");
        let indexes: Vec<IndexModel> = indexes.try_collect().await.expect("its indexes");
        for index in indexes.into_iter().filter(|index| !index.keys.contains_key("_id")) {
            let mut like = IndexModel::builder().keys(index.keys).build();
            // The name is made of the keys, as that of the index that is there.
            like.options = index.options.map(|options| {
                let unique = IndexOptions::builder().unique(options.unique);
                unique.partial_filter_expression(options.partial_filter_expression).build()
            });
            self.events.create_index(like).await.expect("an index");
        }
    }

    pub(crate) async fn drop(self) {
        self.events.drop().await.expect("dropped");
        self.claims.drop().await.expect("dropped");
    }

    /// The next events, with their sequences.
    pub(crate) fn events(&self, count: u64) -> Vec<Document> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first..first + count).map(document).collect()
    }

    /// Appends events in a transaction.
    pub(crate) async fn append(&self, events: &[Document]) {
        let mut session = self.client.start_session().await.expect("a session");
        session.start_transaction().write_concern(durably()).await.expect("begun");
        self.events.insert_many(events).session(&mut session).await.expect("inserted");
        session.commit_transaction().await.expect("committed");
    }

    /// Appends one event, which is atomic by itself.
    pub(crate) async fn append_one(&self, event: &Document) {
        self.events.insert_one(event).await.expect("inserted");
    }

    /// Appends so many batches to be claimed, each of so many events.
    pub(crate) async fn fill(&self, batches: u64, each: u64) {
        for _ in 0..batches {
            let events = self.events(each);
            self.append(&events).await;
            let first = events[0].get_i64("sequence").expect("a sequence");
            let last = first + each.cast_signed() - 1;
            let claim = Claim { first, last, due: 0, fence: None };
            self.claims.insert_one(claim).await.expect("inserted");
        }
    }

    /// Claims the first batch that is due, and reads it.
    pub(crate) async fn claim(&self) -> (Claim, Vec<Document>) {
        let now = DateTime::now().timestamp_millis();
        let lease = doc! { "$set": { "due": now + LEASE, "fence": ObjectId::new() } };
        let claiming = self.claims.find_one_and_update(doc! { "due": { "$lte": now } }, lease);
        let claiming = claiming.sort(doc! { "_id": 1 });
        let claiming = claiming.return_document(ReturnDocument::After);
        let claim = claiming.await.expect("an answer").expect("another batch");
        let sequence = doc! { "$gte": claim.first, "$lte": claim.last };
        let finding =
            self.events.find(doc! { "stream": STREAM, "partition": 0, "sequence": sequence });
        let events = finding.sort(doc! { "sequence": 1 }).await.expect("found");
        (claim, events.try_collect().await.expect("found"))
    }

    /// Settles what was claimed; whether it was held still.
    pub(crate) async fn settle(&self, claim: &Claim) -> bool {
        let held = doc! { "_id": claim.first, "fence": claim.fence };
        self.claims.delete_one(held).await.expect("an answer").deleted_count == 1
    }
}

const STREAM: &str = "bare";

/// An event as people would store it.
fn document(sequence: u64) -> Document {
    let id = Uuid::now_v7().into_bytes().to_vec();
    doc! {
        "stream": STREAM,
        "partition": 0,
        "sequence": sequence.cast_signed(),
        "id": Binary { subtype: BinarySubtype::Uuid, bytes: id },
        "time": DateTime::now(),
        "type": event_type(sequence),
        "key": key(sequence),
        "metadata": {},
        "payload": serialize_to_bson(&payload(sequence)).expect("natural BSON"),
    }
}

/// In the journal of a majority.
fn durably() -> WriteConcern {
    let mut durably = WriteConcern::from(Acknowledgment::Majority);
    durably.journal = Some(true);
    durably
}

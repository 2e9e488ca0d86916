//! MongoDB by its driver: `insert_many` in a transaction, a document that is
//! claimed and settled, and a find by sequence.

use async_trait::async_trait;
use futures::TryStreamExt;
use rheo::mongo::mongodb::bson::oid::ObjectId;
use rheo::mongo::mongodb::bson::spec::BinarySubtype;
use rheo::mongo::mongodb::bson::{Binary, Bson, DateTime, Document, doc, serialize_to_bson};
use rheo::mongo::mongodb::options::{
    Acknowledgment, CollectionOptions, IndexOptions, ReturnDocument, WriteConcern,
};
use rheo::mongo::mongodb::{Client, Collection, Database, IndexModel};
use serde_json::Value;

use super::{Raw, told};
use crate::commands::bench::events::Plain;
use crate::failure::{Failure, Outcome};

/// How long a claim holds, in milliseconds.
const LEASE: i64 = 30_000;

/// A collection of events, and one of how far partitions are done.
#[derive(Clone)]
pub(super) struct Log {
    client: Client,
    database: Database,
    events: Collection<Document>,
    done: Collection<Document>,
    /// The collection whose indexes it gets.
    like: String,
    partition: i64,
    next: i64,
}

impl Log {
    pub(super) async fn open(url: &str, name: &str, like: &str) -> Result<Self, Failure> {
        let client = Client::with_uri_str(url).await.map_err(told)?;
        let database = client.default_database().ok_or_else(|| told("the URL has no database"))?;
        let options = CollectionOptions::builder().write_concern(durably()).build();
        Ok(Self {
            events: database.collection_with_options(name, options.clone()),
            done: database.collection_with_options(&format!("{name}_done"), options),
            client,
            database,
            like: like.into(),
            partition: 0,
            next: 1,
        })
    }

    /// Makes the indexes that Rheo's events have.
    async fn index(&self) -> Outcome {
        let rheos: Collection<Document> = self.database.collection(&self.like);
        let indexes: Vec<IndexModel> =
            rheos.list_indexes().await.map_err(told)?.try_collect().await.map_err(told)?;
        for index in indexes.into_iter().filter(|index| !index.keys.contains_key("_id")) {
            let mut like = IndexModel::builder().keys(index.keys).build();
            // The name is made of the keys, as that of the index that is there.
            like.options = index.options.map(|options| {
                let unique = IndexOptions::builder().unique(options.unique);
                unique.partial_filter_expression(options.partial_filter_expression).build()
            });
            self.events.create_index(like).await.map_err(told)?;
        }
        Ok(())
    }

    /// Events as people would store them.
    fn documents(&self, events: &[Plain]) -> Result<Vec<Document>, Failure> {
        let document = |(sequence, event): (i64, &Plain)| {
            let payload: Value = serde_json::from_str(&event.payload).map_err(told)?;
            let id = event.id.into_bytes().to_vec();
            Ok(doc! {
                "stream": self.events.name(),
                "partition": self.partition,
                "sequence": sequence,
                "id": Binary { subtype: BinarySubtype::Uuid, bytes: id },
                "time": DateTime::from_millis(event.at / 1000),
                "timestamp": event.at,
                "type": &event.event_type,
                "key": &event.key,
                "metadata": {},
                "payload": serialize_to_bson(&payload).map_err(told)?,
            })
        };
        (self.next..).zip(events).map(document).collect()
    }

    /// Claims the partition; how far it is done, and the token of the claim.
    async fn claim(&self) -> Result<(i64, ObjectId), Failure> {
        let (now, fence) = (DateTime::now().timestamp_millis(), ObjectId::new());
        let due = doc! { "_id": self.partition, "due": { "$lte": now } };
        let lease = doc! { "$set": { "due": now + LEASE, "fence": fence } };
        let claiming = self.done.find_one_and_update(due, lease);
        let claimed = claiming.return_document(ReturnDocument::After).await.map_err(told)?;
        let claimed = claimed.ok_or_else(|| told("the partition is claimed already"))?;
        Ok((claimed.get_i64("sequence").map_err(told)?, fence))
    }
}

#[async_trait]
impl Raw for Log {
    async fn create(&mut self) -> Outcome {
        let order = IndexModel::builder()
            .keys(doc! { "stream": 1, "partition": 1, "sequence": 1 })
            .options(IndexOptions::builder().unique(true).build())
            .build();
        self.events.create_index(order).await.map_err(told)?;
        self.index().await?;
        let start = doc! { "_id": 0_i64, "sequence": 0_i64, "due": 0_i64 };
        self.done.insert_one(start).await.map(drop).map_err(told)
    }

    async fn another(&mut self, partition: u32) -> Result<Box<dyn Raw>, Failure> {
        Ok(Box::new(Self { partition: partition.into(), ..self.clone() }))
    }

    async fn append(&mut self, events: &[Plain]) -> Outcome {
        let documents = self.documents(events)?;
        if let [document] = &documents[..] {
            // Atomic by itself.
            self.events.insert_one(document).await.map_err(told)?;
        } else {
            let mut session = self.client.start_session().await.map_err(told)?;
            let beginning = session.start_transaction();
            beginning.write_concern(durably()).await.map_err(told)?;
            self.events.insert_many(&documents).session(&mut session).await.map_err(told)?;
            session.commit_transaction().await.map_err(told)?;
        }
        self.next += events.len() as i64;
        Ok(())
    }

    async fn consume(&mut self, size: u64) -> Result<u64, Failure> {
        let (done, fence) = self.claim().await?;
        let sequence = doc! { "$gt": done, "$lte": done + size.cast_signed() };
        let finding = self.events.find(doc! {
            "stream": self.events.name(),
            "partition": self.partition,
            "sequence": sequence,
        });
        let found = finding.sort(doc! { "sequence": 1 }).await.map_err(told)?;
        let found: Vec<Document> = found.try_collect().await.map_err(told)?;
        let count = found.len() as u64;
        let held = doc! { "_id": self.partition, "fence": fence };
        let settled = doc! { "$set": { "sequence": done + count.cast_signed(), "due": 0_i64 } };
        let settling = self.done.update_one(held, settled).await.map_err(told)?;
        match settling.matched_count {
            1 => Ok(count),
            _ => Err(told("the claim was lost")),
        }
    }

    async fn rewind(&mut self) -> Outcome {
        let start = doc! { "$set": { "sequence": 0_i64, "due": 0_i64 } };
        self.done.update_many(doc! {}, start).await.map(drop).map_err(told)
    }

    async fn delete(&mut self) -> Outcome {
        self.events.drop().await.map_err(told)?;
        self.done.drop().await.map_err(told)
    }

    async fn bytes(&mut self) -> Result<Option<u64>, Failure> {
        let stats = self.database.run_command(doc! { "dbStats": 1 }).await.map_err(told)?;
        let number = |name| match stats.get(name) {
            Some(&Bson::Int32(bytes)) => Some(i64::from(bytes)),
            Some(&Bson::Int64(bytes)) => Some(bytes),
            Some(&Bson::Double(bytes)) => Some(bytes as i64),
            _ => None,
        };
        let sum = number("dataSize").zip(number("indexSize")).map(|(data, index)| data + index);
        Ok(sum.map(|bytes| bytes.max(0).cast_unsigned()))
    }
}

/// In the journal of a majority.
fn durably() -> WriteConcern {
    let mut durably = WriteConcern::from(Acknowledgment::Majority);
    durably.journal = Some(true);
    durably
}

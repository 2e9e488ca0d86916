//! Deletions of streams that were cut off between two of their steps.

#![cfg(unix)]

use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{Confirm, ErrorKind, GroupOptions, NewEvent, Rheo};
use rheo_mongo::mongodb::bson::{Document, doc};
use rheo_mongo::mongodb::{Client, Collection, Database};
use rheo_mongo::{Mongo, Options};

/// An instance under a prefix of its own, and the database beneath.
struct Store {
    client: Client,
    database: Database,
    prefix: &'static str,
    rheo: Rheo,
}

impl Store {
    async fn on(server: &Server, prefix: &'static str) -> Self {
        let client = Client::with_uri_str(server.url()).await.unwrap();
        let database = client.default_database().unwrap();
        let rheo = instance(&client, &database, prefix).await;
        Self { client, database, prefix, rheo }
    }

    fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(&format!("{}{name}", self.prefix))
    }

    /// A deleted stream `s`, of whose events the deletion left the last two,
    /// and a neighbour whose name begins alike.
    async fn cut_off(&self) {
        for name in ["s", "s."] {
            self.rheo.create_stream(name, 2).await.unwrap();
            self.rheo.create_group(name, "g", GroupOptions::default()).await.unwrap();
            let event = |number: u32| NewEvent::new("t", number).partition(number % 2);
            self.rheo.append_batch(name, (1..=5).map(event).collect()).await.unwrap();
        }
        let of_stream = doc! { "stream": "s" };
        let mark = doc! { "$set": { "dropping": true, "ends": [2_i64, 3_i64] } };
        let marked = self.collection("streams").update_one(doc! { "_id": "s" }, mark).await;
        assert_eq!(marked.unwrap().modified_count, 1);
        for name in ["partitions", "groups"] {
            let deleted = self.collection(name).delete_many(of_stream.clone()).await.unwrap();
            assert_eq!(deleted.deleted_count, 2, "{name}");
        }
        let first = doc! { "stream": "s", "partition": 0 };
        assert_eq!(self.collection("events").delete_many(first).await.unwrap().deleted_count, 2);
    }

    /// How many documents of `s` there are: of the stream, and of its events.
    async fn left(&self) -> [u64; 2] {
        let (streams, events) = (self.collection("streams"), self.collection("events"));
        let streams = streams.count_documents(doc! { "_id": "s" }).await.unwrap();
        [streams, events.count_documents(doc! { "stream": "s" }).await.unwrap()]
    }

    async fn assert_neighbour_is_whole(&self) {
        let events = self.rheo.read("s.", 1, 0, 10).await.unwrap();
        assert_eq!(events.len(), 3);
        assert_eq!(self.rheo.lag("s.", "g").await.unwrap().total(), 5);
    }
}

async fn instance(client: &Client, database: &Database, prefix: &str) -> Rheo {
    let options = Options::default().collection_prefix(prefix);
    let mongo = Mongo::on_client(client.clone(), database.name(), options).await.unwrap();
    Rheo::builder(mongo).build().await.unwrap()
}

/// Nobody finds the stream, and whoever deletes it again finishes what was begun.
#[tokio::test]
async fn a_deletion_is_finished_by_the_next() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let store = Store::on(&server, "again_").await;
    store.cut_off().await;
    let rheo = &store.rheo;
    let names = rheo.list_streams().await.unwrap();
    assert!(names.iter().map(|stream| stream.name.as_str()).eq(["s."]));
    let missing = |kind| assert_eq!(kind, ErrorKind::StreamNotFound);
    missing(rheo.partitions("s").await.unwrap_err().kind());
    missing(rheo.append("s", NewEvent::new("t", 6)).await.unwrap_err().kind());
    missing(rheo.read("s", 1, 0, 10).await.unwrap_err().kind());
    missing(rheo.list_groups("s").await.unwrap_err().kind());
    let options = GroupOptions::default();
    missing(rheo.create_group("s", "h", options).await.unwrap_err().kind());
    missing(rheo.delete_stream("s", Confirm::Yes).await.unwrap_err().kind());
    assert_eq!(store.left().await, [0, 0]);
    store.assert_neighbour_is_whole().await;
}

/// A new stream of the name begins empty, however many want it.
#[tokio::test]
async fn a_deletion_is_finished_by_a_creation() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let store = Store::on(&server, "anew_").await;
    store.cut_off().await;
    let create = |_| {
        let rheo = store.rheo.clone();
        tokio::spawn(async move { rheo.create_stream("s", 3).await })
    };
    let callers: Vec<_> = (0..8).map(create).collect();
    let mut created = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Ok(()) => created += 1,
            Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}"),
        }
    }
    assert_eq!(created, 1);
    assert_eq!(store.left().await, [1, 0]);
    assert_eq!(store.rheo.list_groups("s").await.unwrap(), []);
    let event = store.rheo.append("s", NewEvent::new("t", 6).partition(1)).await.unwrap();
    assert_eq!(event.sequence(), 1);
    store.assert_neighbour_is_whole().await;
}

/// So does an instance that starts, also where only the document is left.
#[tokio::test]
async fn a_deletion_is_finished_by_an_instance_that_starts() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let store = Store::on(&server, "start_").await;
    for events_are_gone in [false, true] {
        store.cut_off().await;
        if events_are_gone {
            store.collection("events").delete_many(doc! { "stream": "s" }).await.unwrap();
        }
        instance(&store.client, &store.database, store.prefix).await;
        assert_eq!(store.left().await, [0, 0]);
        store.assert_neighbour_is_whole().await;
        store.rheo.delete_stream("s.", Confirm::Yes).await.unwrap();
    }
}

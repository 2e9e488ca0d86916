//! What a search finds is what the matcher says, also where events are missing
//! or too large for their natural form, and a place in the log is found where
//! it is.

#![cfg(unix)]

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Collection};
use rheo_conformance::finding::{Finding, Plan};
use rheo_conformance::servers;
use rheo_core::backend::{Backend, Seek, StreamRef};
use rheo_core::{Event, ManualClock, NewEvent, Query, Rheo, StreamName, Timestamp};
use rheo_mongo::{Mongo, Options};
use serde_json::json;

/// Of few partitions, of more than one aggregation looks into, and of one that
/// is longer than a page.
const PLANS: [Plan<'static>; 3] = [
    Plan { stream: "short", partitions: 3, events: 200, queries: 200 },
    Plan { stream: "wide", partitions: 70, events: 300, queries: 30 },
    Plan { stream: "long", partitions: 1, events: 1100, queries: 30 },
];

/// A log, and the documents that it is.
struct Opened {
    _server: servers::Mongo,
    mongo: Arc<Mongo>,
    documents: Collection<Document>,
}

async fn open() -> Option<Opened> {
    let server = servers::found("mongo", servers::Mongo::start().await)?;
    let client = Client::with_uri_str(server.url()).await.unwrap();
    let database = client.default_database().unwrap();
    let prefix = format!("finding_{}_", fastrand::u64(..));
    let documents = database.collection(&format!("{prefix}events"));
    let options = Options::default().collection_prefix(&prefix);
    let mongo = Mongo::on_client(client, database.name(), options).await.unwrap();
    Some(Opened { _server: server, mongo, documents })
}

impl Opened {
    /// Deletes some events by hand.
    async fn lose_some(&self, stream: &str, stored: &mut Vec<Event>) {
        for at in (0..stored.len()).rev().step_by(20) {
            let gone = stored.remove(at);
            let sequence = i64::try_from(gone.sequence()).unwrap();
            let event = doc! {
                "stream": stream, "partition": gone.partition(), "sequence": sequence,
            };
            assert_eq!(self.documents.delete_one(event).await.unwrap().deleted_count, 1);
        }
    }

    async fn seek(&self, stream: &str, partitions: u32, seek: Seek) -> Vec<u64> {
        let stream = StreamRef { name: StreamName::new(stream).unwrap(), partitions };
        self.mongo.seek(&stream, seek).await.unwrap()
    }

    async fn seeks_find_the_places(&self, plan: &Plan<'_>, stored: &[Event]) {
        let ends = self.seek(plan.stream, plan.partitions, Seek::End).await;
        let mut instants: Vec<_> = stored.iter().map(Event::timestamp).collect();
        instants.sort_unstable();
        instants.dedup();
        instants.extend([Timestamp::MIN, Timestamp::MAX]);
        for instant in instants.into_iter().rev().step_by(3) {
            let found = self.seek(plan.stream, plan.partitions, Seek::At(instant)).await;
            assert_eq!(found, places(stored, &ends, instant), "{instant}");
        }
    }
}

/// Before the first event of each partition that is not before `instant`.
fn places(stored: &[Event], ends: &[u64], instant: Timestamp) -> Vec<u64> {
    let mut places = ends.to_vec();
    for event in stored.iter().rev().filter(|event| event.timestamp() >= instant) {
        places[event.partition() as usize] = event.sequence() - 1;
    }
    places
}

#[tokio::test]
async fn searches_and_seeks_find_what_is_there() {
    let Some(opened) = open().await else { return };
    let rheo = Rheo::builder(opened.mongo.clone()).build().await.unwrap();
    let mut finding = Finding::new("mongo", opened.mongo.clone());
    for plan in PLANS {
        let mut stored = finding.fill(&plan).await;
        opened.seeks_find_the_places(&plan, &stored).await;
        finding.try_queries(&plan, &stored).await;
        opened.lose_some(plan.stream, &mut stored).await;
        finding.try_queries(&plan, &stored).await;
        let expected = stored.iter().filter(|event| event.partition() == 0);
        let read = rheo.read(plan.stream, 0, 0, 10_000).await.unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

/// A hole that is longer than one look reaches.
#[tokio::test]
async fn a_place_is_found_beside_a_hole() {
    let Some(opened) = open().await else { return };
    let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
    let rheo = Rheo::builder(opened.mongo.clone()).clock(clock.clone()).build().await.unwrap();
    rheo.create_stream("holed", 1).await.unwrap();
    let mut stored = Vec::new();
    for _ in 0..60 {
        clock.advance(Duration::from_secs(1));
        let batch = (0..10).map(|number| NewEvent::new("n", number)).collect();
        stored.extend(rheo.append_batch("holed", batch).await.unwrap());
    }
    let hole = doc! { "stream": "holed", "sequence": { "$gt": 15, "$lt": 585 } };
    opened.documents.delete_many(hole).await.unwrap();
    for (first, place) in [(1, 0), (11, 10), (21, 584), (301, 584), (581, 584), (591, 590)] {
        let instant = stored[first - 1].timestamp();
        assert_eq!(opened.seek("holed", 1, Seek::At(instant)).await, [place], "{first}");
    }
}

#[tokio::test]
async fn what_is_too_large_for_its_natural_form_is_found() {
    let Some(opened) = open().await else { return };
    let rheo = Rheo::builder(opened.mongo.clone()).event_bytes(4 << 20).build().await.unwrap();
    rheo.create_stream("large", 1).await.unwrap();
    let many = json!(vec![json!([]); 1_300_000]);
    for (metadata, payload) in [(json!([]), &many), (many.clone(), &json!([]))] {
        let event = NewEvent::new("large", json!({"n": 7, "many": payload}));
        let event = event.metadata("producer", "shop").metadata("n", 7).metadata("many", metadata);
        rheo.append("large", event).await.unwrap();
    }
    let left_out = doc! { "exact": { "$exists": true } };
    assert_eq!(opened.documents.count_documents(left_out).await.unwrap(), 2);
    for query in
        [Query::new().payload("n", 7), Query::new().metadata("n", 7), Query::new().producer("shop")]
    {
        let found = rheo.query("large", &query).await.unwrap().len();
        assert_eq!(found, 2, "{query:?}");
    }
}

//! What a search finds is what the matcher says, also where events are missing,
//! and a place in the log is found where it is.

#![cfg(unix)]

use mongodb::Collection;
use mongodb::bson::{Document, doc};
use rheo_conformance::finding::{Finding, Plan};
use rheo_conformance::servers;
use rheo_core::backend::{Backend, Seek, StreamRef};
use rheo_core::{Event, Rheo, StreamName, Timestamp};
use rheo_mongo::{Mongo, Options};

/// Of few partitions, of more than one aggregation looks into, and of one that
/// is longer than a page.
const PLANS: [Plan<'static>; 3] = [
    Plan { stream: "short", partitions: 3, events: 200, queries: 200 },
    Plan { stream: "wide", partitions: 70, events: 300, queries: 30 },
    Plan { stream: "long", partitions: 1, events: 1100, queries: 30 },
];

/// Deletes some events by hand.
async fn lose_some(log: &Collection<Document>, stream: &str, stored: &mut Vec<Event>) {
    for at in (0..stored.len()).rev().step_by(20) {
        let gone = stored.remove(at);
        let sequence = i64::try_from(gone.sequence()).unwrap();
        let event = doc! { "stream": stream, "partition": gone.partition(), "sequence": sequence };
        assert_eq!(log.delete_one(event).await.unwrap().deleted_count, 1);
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

async fn seeks_find_the_places(mongo: &Mongo, plan: &Plan<'_>, stored: &[Event]) {
    let name = StreamName::new(plan.stream).unwrap();
    let stream = StreamRef { name, partitions: plan.partitions };
    let ends = mongo.seek(&stream, Seek::End).await.unwrap();
    let mut instants: Vec<_> = stored.iter().map(Event::timestamp).collect();
    instants.sort_unstable();
    instants.dedup();
    instants.extend([Timestamp::MIN, Timestamp::MAX]);
    for instant in instants.into_iter().step_by(3) {
        let found = mongo.seek(&stream, Seek::At(instant)).await.unwrap();
        assert_eq!(found, places(stored, &ends, instant), "{instant}");
    }
}

#[tokio::test]
async fn searches_and_seeks_find_what_is_there() {
    let Some(server) = servers::found("mongo", servers::Mongo::start().await) else { return };
    let prefix = format!("finding_{}_", fastrand::u64(..));
    let options = Options::default().collection_prefix(&prefix);
    let mongo = Mongo::connect_with(server.url(), options).await.unwrap();
    let client = mongodb::Client::with_uri_str(server.url()).await.unwrap();
    let database = client.default_database().unwrap();
    let log = database.collection(&format!("{prefix}events"));
    let rheo = Rheo::builder(mongo.clone()).build().await.unwrap();
    let mut finding = Finding::new("mongo", mongo.clone());
    for plan in PLANS {
        let mut stored = finding.fill(&plan).await;
        seeks_find_the_places(&mongo, &plan, &stored).await;
        finding.try_queries(&plan, &stored).await;
        lose_some(&log, plan.stream, &mut stored).await;
        finding.try_queries(&plan, &stored).await;
        let expected = stored.iter().filter(|event| event.partition() == 0);
        let read = rheo.read(plan.stream, 0, 0, 10_000).await.unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

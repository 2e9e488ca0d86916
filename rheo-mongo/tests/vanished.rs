//! Events that somebody deletes from the collection behind Rheo's back.

#![cfg(unix)]

use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{
    Delivery, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Position, Replay,
    ReplayOptions, Rheo,
};
use rheo_mongo::mongodb::bson::{Document, doc};
use rheo_mongo::mongodb::{Client, Collection};
use rheo_mongo::{Mongo, Options};

/// A stream `s` of five events with a group `g`, and the collection beneath.
async fn store(server: &Server, prefix: &str) -> (Rheo, Collection<Document>) {
    let client = Client::with_uri_str(server.url()).await.unwrap();
    let database = client.default_database().unwrap();
    let options = Options::default().collection_prefix(prefix);
    let mongo = Mongo::on_client(client, database.name(), options).await.unwrap();
    let rheo = Rheo::builder(mongo).build().await.unwrap();
    rheo.create_stream("s", 1).await.unwrap();
    rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    let events = (1..=5).map(|number| NewEvent::new("t", number)).collect();
    rheo.append_batch("s", events).await.unwrap();
    (rheo, database.collection(&format!("{prefix}events")))
}

async fn delete(events: &Collection<Document>, sequence: i64) {
    let deleted = events.delete_one(doc! { "stream": "s", "sequence": sequence }).await;
    assert_eq!(deleted.unwrap().deleted_count, 1);
}

async fn fetch(rheo: &Rheo) -> Vec<Delivery> {
    rheo.fetch("s", "g", 10, FetchOptions::default()).await.unwrap()
}

fn sequences(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.event.sequence()).collect()
}

/// It is never handed out, blocks nothing, and is told as what it is.
#[tokio::test]
async fn a_vanished_event_is_a_dead_letter() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let (rheo, events) = store(&server, "event_").await;
    delete(&events, 2).await;
    let deliveries = fetch(&rheo).await;
    assert_eq!(sequences(&deliveries), [1, 3, 4, 5]);
    for answer in rheo.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await {
        answer.unwrap();
    }
    let info = rheo.group_info("s", "g").await.unwrap();
    assert_eq!((info.lag(), info.leased(), info.dead_letters()), (0, 0, 1));
    let error = rheo.dead_letters("s", "g", 10, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.context().contains("0-2"), "{error}");
    let after = Some(Position::new(0, 2));
    assert_eq!(rheo.dead_letters("s", "g", 10, after).await.unwrap(), []);
}

/// A dead letter whose event vanishes hides none of the others, which can be replayed.
#[tokio::test]
async fn a_vanished_dead_letter_hides_no_other() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let (rheo, events) = store(&server, "letter_").await;
    let deliveries = fetch(&rheo).await;
    for answer in rheo.settle(deliveries.iter().map(|one| (one, Outcome::reject("no")))).await {
        answer.unwrap();
    }
    for sequence in [1, 3, 5] {
        delete(&events, sequence).await;
    }
    for (limit, after, listed) in [(1, None, vec![2]), (1, Some(2), vec![4]), (9, None, vec![2, 4])]
    {
        let after = after.map(|sequence| Position::new(0, sequence));
        let letters = rheo.dead_letters("s", "g", limit, after).await.unwrap();
        let found: Vec<_> = letters.iter().map(|letter| letter.event.sequence()).collect();
        assert_eq!(found, listed);
    }
    let last = Some(Position::new(0, 4));
    let error = rheo.dead_letters("s", "g", 9, last).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    rheo.replay("s", "g", Replay::DeadLetters, ReplayOptions::default()).await.unwrap();
    assert_eq!(sequences(&fetch(&rheo).await), [2, 4]);
    assert_eq!(rheo.group_info("s", "g").await.unwrap().dead_letters(), 3);
}

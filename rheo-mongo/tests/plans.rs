//! Every statement of the hot paths is an index scan: what Rheo sends is
//! listened to, and the server is asked how it carries that out.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mongodb::bson::{Bson, Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};
use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{
    Delivery, FetchOptions, GroupOptions, NewEvent, Outcome, Query, Replay, ReplayOptions, Rheo,
};
use rheo_mongo::{Mongo, Options, mongodb};

/// The commands that a client sent.
type Sent = Arc<Mutex<Vec<Document>>>;

/// A client whose commands are listened to.
async fn overheard(url: &str) -> (Client, Sent) {
    let sent = Sent::default();
    let hears = Arc::clone(&sent);
    let mut options = ClientOptions::parse(url).await.unwrap();
    options.command_event_handler = Some(EventHandler::callback(move |event| {
        if let CommandEvent::Started(started) = event {
            hears.lock().unwrap().push(started.command);
        }
    }));
    (Client::with_options(options).unwrap(), sent)
}

/// Some partitions and groups beside those that are looked at, so that an index
/// is worth it.
async fn fill(rheo: &Rheo) {
    for stream in ["orders", "other"] {
        rheo.create_stream(stream, 2).await.unwrap();
        for group in ["billing", "idle"] {
            rheo.create_group(stream, group, GroupOptions::default()).await.unwrap();
        }
        let event = |number| {
            let event = NewEvent::new(if number % 2 == 0 { "even" } else { "odd" }, number);
            event.key(format!("k{}", number % 7)).metadata("correlation_id", number % 5)
        };
        rheo.append_batch(stream, (0..200).map(event).collect()).await.unwrap();
    }
}

async fn fetch(rheo: &Rheo, limit: usize) -> Vec<Delivery> {
    rheo.fetch("orders", "billing", limit, FetchOptions::default()).await.unwrap()
}

async fn settle(rheo: &Rheo, deliveries: &[Delivery], outcome: Outcome) {
    let settlements = deliveries.iter().map(|delivery| (delivery, outcome.clone()));
    for answer in rheo.settle(settlements).await {
        answer.unwrap();
    }
}

/// What consumers and readers do all day.
async fn work(rheo: &Rheo) {
    rheo.append("orders", NewEvent::new("even", 7)).await.unwrap();
    let given = NewEvent::new("even", 7).id(uuid::Uuid::from_u128(7));
    rheo.append("orders", given.clone()).await.unwrap();
    rheo.append("orders", given).await.unwrap();
    let claimed = fetch(rheo, 30).await;
    for delivery in &claimed[..3] {
        rheo.renew(&delivery.lease, Duration::from_secs(60)).await.unwrap();
    }
    let scattered: Vec<_> = claimed[..10].iter().step_by(2).cloned().collect();
    settle(rheo, &scattered, Outcome::retry("again")).await;
    let rest: Vec<_> = claimed[10..].to_vec();
    settle(rheo, &rest, Outcome::Ack).await;
    let again = fetch(rheo, 3).await;
    settle(rheo, &again, Outcome::reject("no")).await;
    let replay = Replay::AfterSequence(20);
    rheo.replay("orders", "billing", replay, ReplayOptions::default()).await.unwrap();
    rheo.wait("orders", "billing", Duration::ZERO).await.unwrap();
    rheo.lag("orders", "billing").await.unwrap();
    rheo.dead_letters("orders", "billing", 10, None).await.unwrap();
    rheo.read("orders", 0, 3, 10).await.unwrap();
    for query in [
        Query::new(),
        Query::new().event_type("even"),
        Query::new().key("k3"),
        Query::new().correlation_id("3"),
    ] {
        rheo.query("orders", &query.limit(10)).await.unwrap();
    }
}

/// A command that can be explained, and those that it holds.
fn statements(command: &Document) -> Vec<Document> {
    let kind = command.keys().next().unwrap().clone();
    let own: &[&str] = match &*kind {
        "find" => &["filter", "sort", "limit", "projection"],
        "aggregate" => &["pipeline"],
        "update" => &["updates"],
        "delete" => &["deletes"],
        "findAndModify" => &["query", "update", "new"],
        _ => return Vec::new(),
    };
    // A watch is no scan.
    if command.get_str(&kind).is_err() || format!("{command}").contains("$changeStream") {
        return Vec::new();
    }
    let mut statement = doc! { &kind: command.get(&kind).unwrap().clone() };
    for part in own {
        if let Some(part_of) = command.get(part) {
            statement.insert(*part, part_of.clone());
        }
    }
    let mut all = Vec::new();
    if kind == "aggregate" {
        statement.insert("cursor", doc! {});
        for stage in command.get_array("pipeline").unwrap() {
            let stage = stage.as_document().unwrap();
            for (name, from) in [("$lookup", "from"), ("$unionWith", "coll")] {
                if let Ok(inner) = stage.get_document(name) {
                    let inner = doc! {
                        "aggregate": inner.get_str(from).unwrap(),
                        "pipeline": inner.get_array("pipeline").unwrap().clone(),
                    };
                    all.extend(statements(&inner));
                }
            }
        }
    }
    all.push(statement);
    all
}

/// All the documents inside of one that name a stage.
fn stages(plan: &Bson, found: &mut Vec<Document>) {
    match plan {
        Bson::Document(document) => {
            if document.contains_key("stage") {
                found.push(document.clone());
            }
            document.values().for_each(|value| stages(value, found));
        }
        Bson::Array(values) => values.iter().for_each(|value| stages(value, found)),
        _ => {}
    }
}

/// The names of the indexes that the server scans for a statement.
async fn indexes(database: &Database, statement: &Document) -> BTreeSet<String> {
    let explain = doc! { "explain": statement.clone(), "verbosity": "queryPlanner" };
    let explained = database.run_command(explain).await.unwrap();
    let mut found = Vec::new();
    stages(&Bson::Document(explained), &mut found);
    let mut indexes = BTreeSet::new();
    for stage in found {
        match stage.get_str("stage").unwrap() {
            "COLLSCAN" => panic!("all documents are read for {statement}"),
            "IXSCAN" => indexes.insert(stage.get_str("indexName").unwrap().to_string()),
            // By _id, which is an index as well.
            "IDHACK" => indexes.insert("_id_".to_string()),
            _ => false,
        };
    }
    assert!(!indexes.is_empty(), "no index is read for {statement}");
    indexes
}

#[tokio::test]
async fn the_hot_statements_scan_indexes_only() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let (client, sent) = overheard(server.url()).await;
    let prefix = format!("plans{:x}_", fastrand::u32(..));
    let options = Options::default().collection_prefix(&prefix).wake(false);
    let mongo = Mongo::on_client(client, "rheo", options).await.unwrap();
    let rheo = Rheo::builder(mongo).build().await.unwrap();
    fill(&rheo).await;
    sent.lock().unwrap().clear();
    work(&rheo).await;
    let commands = std::mem::take(&mut *sent.lock().unwrap());

    let plain = Client::with_uri_str(server.url()).await.unwrap();
    let database = plain.database("rheo");
    let mut lines = BTreeSet::new();
    for statement in commands.iter().flat_map(statements) {
        let indexes = indexes(&database, &statement).await;
        let (kind, collection) = statement.iter().next().unwrap();
        let collection = collection.as_str().unwrap().trim_start_matches(&prefix);
        let indexes: Vec<_> = indexes.into_iter().collect();
        lines.insert(format!("{kind} {collection}: {}", indexes.join(", ")));
    }
    lines.iter().for_each(|line| println!("{line}"));
    assert!(lines.len() > 10, "{lines:?}");
}

//! The queries of the documents, run as they stand there.

#![cfg(unix)]

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use rheo_conformance::servers;
use rheo_core::{Lineage, ManualClock, NewEvent, Rheo, Timestamp};
use rheo_mongo::{Mongo, Options};
use serde_json::json;

const PAGE: &str = include_str!("../../docs/mongo.md");

/// The queries of the page's section on the log, in their order.
fn queries() -> Vec<&'static str> {
    let (_, section) = PAGE.split_once("## Looking into the log").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```js\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().trim()).collect()
}

/// What the shell makes of `db.collection.method(argument).sort(argument)`.
fn command(query: &str) -> Document {
    let call = query.strip_prefix("db.").unwrap().strip_suffix(')').unwrap();
    let (collection, call) = call.split_once('.').unwrap();
    let (method, argument) = call.split_once('(').unwrap();
    match (method, argument.split_once(").sort(")) {
        ("find", Some((filter, sort))) => {
            doc! { "find": collection, "filter": value(filter), "sort": value(sort) }
        }
        ("aggregate", None) => {
            doc! { "aggregate": collection, "pipeline": value(argument), "cursor": {} }
        }
        _ => panic!("not understood: {query}"),
    }
}

/// A value of the shell's language, which is JSON but for names without quotes.
fn value(text: &str) -> Bson {
    let mut json = String::new();
    for (number, part) in text.split('"').enumerate() {
        let is_text = number % 2 == 1;
        json += &if is_text { format!("\"{part}\"") } else { with_quoted_names(part) };
    }
    serde_json::from_str(&json).unwrap()
}

fn with_quoted_names(text: &str) -> String {
    let quoted = |word: &str| match word.strip_suffix(':') {
        Some(name) if !name.is_empty() => format!("\"{name}\":"),
        _ => word.into(),
    };
    text.split_whitespace().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Orders, some of them today, and what came of one.
async fn fill(rheo: &Rheo, clock: &ManualClock) {
    rheo.create_stream("orders", 1).await.unwrap();
    rheo.create_stream("shipments", 1).await.unwrap();
    let order =
        |customer, total| NewEvent::new("order.placed", json!({"total": total})).key(customer);
    let checkout = Lineage::default().correlation_id("checkout-17");
    let cancelled = NewEvent::new("order.cancelled", json!({"total": 80})).key("Bob");
    for (hours, event) in [
        (0, order("Ada", 120)),
        (48, order("Bob", 80).lineage(&checkout)),
        (1, cancelled.lineage(&checkout)),
        (1, order("Cleo", 50)),
        (1, order("Dan", 51)),
    ] {
        clock.advance(Duration::from_secs(hours * 60 * 60));
        rheo.append("orders", event).await.unwrap();
    }
    let shipment = NewEvent::new("shipment.sent", json!({"to": "Bob"})).key("Bob's");
    rheo.append("shipments", shipment.lineage(&checkout)).await.unwrap();
}

/// What a query finds: keys of events, or types and how many.
async fn found(database: &Database, query: &str) -> Vec<String> {
    let cursor = database.run_cursor_command(command(query)).await.unwrap();
    let documents: Vec<Document> = futures::TryStreamExt::try_collect(cursor).await.unwrap();
    let told = |document: &Document| match document.get_str("key") {
        Ok(key) => key.to_owned(),
        Err(_) => {
            format!("{} {}", document.get_str("_id").unwrap(), document.get("count").unwrap())
        }
    };
    documents.iter().map(told).collect()
}

#[tokio::test]
async fn the_queries_of_the_page_find_what_they_say() {
    let Some(server) = servers::found("mongo", servers::Mongo::start().await) else { return };
    let client = mongodb::Client::with_uri_str(server.url()).await.unwrap();
    let database = client.database(&format!("queries_{}", fastrand::u64(..)));
    let options = Options::default();
    let mongo = Mongo::on_client(client.clone(), database.name(), options).await.unwrap();
    let clock = ManualClock::new(Timestamp::now() - Duration::from_secs(52 * 60 * 60));
    let rheo = Rheo::builder(mongo).clock(clock.clone()).build().await.unwrap();
    fill(&rheo, &clock).await;

    let mut answers = Vec::new();
    for query in queries() {
        answers.push(found(&database, query).await);
    }
    database.run_command(doc! { "dropDatabase": 1 }).await.unwrap();
    let expected: [&[&str]; 3] = [
        &["Ada", "Bob", "Dan"],
        &["Bob", "Bob", "Bob's"],
        &["order.placed 3", "order.cancelled 1"],
    ];
    assert_eq!(answers, expected);
}

//! Real input: 560 monthly closing prices of five companies, and two groups
//! that each make something else of them.
//!
//! ```sh
//! cargo run --example market
//! ```

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rheo::{
    Condition, Consumer, Delivery, Field, Filter, GroupOptions, NewEvent, Outcome, Query, Result,
    Rheo,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

const MARKET: &str = include_str!("data/market.ndjson");

/// A line of the file.
#[derive(Deserialize)]
struct Line {
    r#type: String,
    key: String,
    payload: Price,
}

#[derive(Clone, Serialize, Deserialize)]
struct Price {
    symbol: String,
    date: String,
    price: f64,
}

/// What one group knows of a symbol.
struct Summary {
    latest: Price,
    low: f64,
    high: f64,
}

type Summaries = Arc<Mutex<BTreeMap<String, Summary>>>;

#[tokio::main]
async fn main() -> Result<()> {
    let rheo = rheo::connect(&common::url("memory:")).await?;
    let stream = common::free_name(&rheo, "market").await?;
    rheo.create_stream(&stream, 4).await?;
    let count = feed(&rheo, &stream).await?;
    println!("{count} prices in 4 partitions, keyed by symbol\n");

    let summaries = Summaries::default();
    let summary = start_summary(&rheo, &stream, Arc::clone(&summaries)).await?;
    let screening = start_screening(&rheo, &stream).await?;
    for (group, consumer) in [("summary", summary), ("screening", screening)] {
        finish(&rheo, &stream, group, &consumer).await?;
    }

    print_symbols(&rheo, &stream, &summaries).await?;
    print_groups(&rheo, &stream).await?;
    print_dead_letters(&rheo, &stream).await
}

/// Appends the file in batches of a hundred.
async fn feed(rheo: &Rheo, stream: &str) -> Result<usize> {
    let mut events = Vec::new();
    for line in MARKET.lines() {
        let line: Line = serde_json::from_str(line).expect("the file is part of this example");
        events.push(NewEvent::new(line.r#type, &line.payload).key(line.key));
    }
    for batch in events.chunks(100) {
        rheo.append_batch(stream, batch.to_vec()).await?;
    }
    Ok(events.len())
}

/// The group `summary` keeps the latest price and the range of each symbol.
/// An event that comes twice, or late, changes nothing.
async fn start_summary(rheo: &Rheo, stream: &str, summaries: Summaries) -> Result<Consumer> {
    rheo.create_group(stream, "summary", GroupOptions::default()).await?;
    let handler = move |delivery: Delivery| {
        let summaries = Arc::clone(&summaries);
        async move { delivery.event.payload_as().map(|price| add(&summaries, price)) }
    };
    rheo.consumer(stream, "summary").start(handler).await
}

fn add(summaries: &Summaries, new: Price) {
    let mut summaries = summaries.lock().unwrap_or_else(PoisonError::into_inner);
    let summary = summaries.entry(new.symbol.clone()).or_insert_with(|| Summary {
        latest: new.clone(),
        low: new.price,
        high: new.price,
    });
    summary.low = summary.low.min(new.price);
    summary.high = summary.high.max(new.price);
    if new.date > summary.latest.date {
        summary.latest = new;
    }
}

/// The group `screening` has a made-up rule: no price is under 10.
async fn start_screening(rheo: &Rheo, stream: &str) -> Result<Consumer> {
    rheo.create_group(stream, "screening", GroupOptions::default()).await?;
    rheo.consumer(stream, "screening").start(screen).await
}

async fn screen(delivery: Delivery) -> Result<Outcome> {
    let Price { price, date, .. } = delivery.event.payload_as()?;
    Ok(if price < 10.0 {
        Outcome::reject(format!("{price:.2} on {date} is under 10"))
    } else {
        Outcome::Ack
    })
}

/// Waits until the group has seen everything, and ends its consumer.
async fn finish(rheo: &Rheo, stream: &str, group: &str, consumer: &Consumer) -> Result<()> {
    while rheo.lag(stream, group).await?.total() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let drained = consumer.drain(Duration::from_secs(10)).await?;
    assert!(drained.left.is_empty());
    Ok(())
}

/// What `summary` knows and what `screening` rejected, a line for each symbol.
async fn print_symbols(rheo: &Rheo, stream: &str, summaries: &Summaries) -> Result<()> {
    let dead = rheo.dead_letters(stream, "screening", 1000, None).await?;
    let summaries = summaries.lock().unwrap_or_else(PoisonError::into_inner);
    println!("symbol  latest price           lowest  highest  rejected");
    for (symbol, Summary { latest, low, high }) in &*summaries {
        let rejected = dead.iter().filter(|letter| letter.event.key() == Some(symbol)).count();
        let Price { price, date, .. } = latest;
        println!("{symbol:6}  {price:7.2} on {date}  {low:7.2}  {high:7.2}  {rejected:8}");
    }
    println!();
    Ok(())
}

/// How the two groups stand.
async fn print_groups(rheo: &Rheo, stream: &str) -> Result<()> {
    println!("group       done  lag  dead letters");
    for group in rheo.list_groups(stream).await? {
        let group = group.as_str();
        let info = rheo.group_info(stream, group).await?;
        let done: u64 = info.partitions.iter().map(|partition| partition.frontier).sum();
        println!("{group:10}  {done:4}  {:3}  {:12}", info.lag(), info.dead_letters());
    }
    println!();
    Ok(())
}

/// The first dead letters, and the same events found by a query.
async fn print_dead_letters(rheo: &Rheo, stream: &str) -> Result<()> {
    let dead = rheo.dead_letters(stream, "screening", 1000, None).await?;
    println!("{} dead letters, of which the first three:", dead.len());
    for letter in &dead[..3] {
        println!("  {}: {}", letter.event.key().unwrap_or_default(), letter.reason);
    }

    let under_10 = Filter::new(Field::payload(["price"]), Condition::Less(json!(10)));
    let query = Query::new().event_type("price").filter(under_10).limit(1000);
    let found = rheo.query(stream, &query).await?;
    println!("{} prices under 10, by a query", found.len());
    assert_eq!(found.len(), dead.len());
    Ok(())
}

//! A group's events as a `futures::Stream`, and four pipelines on it: one by
//! one, by the chunk, in windows, and several at once.
//!
//! ```sh
//! cargo run --example pipelines
//! ```

mod common;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use rheo::runtime::{Held, SubscribeOptions};
use rheo::{GroupOptions, NewEvent, Outcome, Result, Rheo, Subscription};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How many trades there are.
const TRADES: usize = 12;
/// How many the last pipeline books at once.
const AT_ONCE: usize = 4;

#[derive(Serialize, Deserialize)]
struct Trade {
    shares: u64,
    price: u64,
}

#[tokio::main]
async fn main() -> Result<()> {
    let rheo = rheo::connect(&common::url("memory:")).await?;
    let stream = common::free_name(&rheo, "trades").await?;
    rheo.create_stream(&stream, 1).await?;
    let trade = |number| Trade { shares: 10 * number, price: 100 + number * number };
    let event = |number| NewEvent::new("trade", trade(number));
    rheo.append_batch(&stream, (1..=TRADES as u64).map(event).collect()).await?;

    one_by_one(&rheo, &stream).await?;
    three_at_a_time(&rheo, &stream).await?;
    windows_of_two(&rheo, &stream).await?;
    several_at_once(&rheo, &stream).await
}

/// Takes the trades as a group of their own, so that each pipeline sees all.
async fn subscribe(rheo: &Rheo, stream: &str, group: &str) -> Result<Subscription> {
    rheo.create_group(stream, group, GroupOptions::default()).await?;
    rheo.subscribe(stream, group, SubscribeOptions::default()).await
}

/// Ends a pipeline, and shows that nothing was left undone.
async fn finish(rheo: &Rheo, trades: Subscription, stream: &str, group: &str) -> Result<()> {
    let drained = trades.drain(Duration::from_secs(10)).await?;
    assert!(drained.left.is_empty());
    let lag = rheo.lag(stream, group).await?.total();
    assert_eq!(lag, 0);
    println!("   lag {lag}\n");
    Ok(())
}

/// Each trade is acked before the next is looked at.
async fn one_by_one(rheo: &Rheo, stream: &str) -> Result<()> {
    println!("1. One by one");
    let mut trades = subscribe(rheo, stream, "each").await?;
    let mut shares = 0;
    let mut some = trades.by_ref().take(TRADES);
    while let Some(held) = some.next().await {
        shares += trade(&held)?.shares;
        held.ack().await?;
    }
    assert_eq!(shares, 780);
    println!("   {TRADES} trades, {shares} shares");
    finish(rheo, trades, stream, "each").await
}

/// Three trades become one total. They are acked when the total is stored, so
/// that a crash in between loses nothing. The total has the id of its first
/// trade: made again from the same three, it is not stored twice.
async fn three_at_a_time(rheo: &Rheo, stream: &str) -> Result<()> {
    println!("2. Reduced and settled three at a time");
    let totals = common::free_name(rheo, "totals").await?;
    rheo.create_stream(&totals, 1).await?;

    let mut trades = subscribe(rheo, stream, "threes").await?;
    let mut chunks = trades.by_ref().take(TRADES).chunks(3);
    while let Some(chunk) = chunks.next().await {
        let mut shares = 0;
        for held in &chunk {
            shares += trade(held)?.shares;
        }
        let total = NewEvent::new("total", json!({"shares": shares})).id(chunk[0].event().id());
        let stored = rheo.append(&totals, total).await?;

        let numbers: Vec<u64> = chunk.iter().map(number).collect();
        for answer in Held::settle_all(chunk, Outcome::Ack).await {
            answer?;
        }
        println!("   trades {numbers:?}: total {} is {shares} shares", stored.sequence());
    }

    let stored = rheo.read(&totals, 0, 0, 100).await?;
    let stored: Vec<_> = stored.iter().map(|total| total.payload()["shares"].as_u64()).collect();
    assert_eq!(stored, [60, 150, 240, 330].map(Some));
    finish(rheo, trades, stream, "threes").await
}

/// Each trade is compared with the one before, which is acked only when its
/// last window is done: after a crash the windows go on without a gap.
async fn windows_of_two(rheo: &Rheo, stream: &str) -> Result<()> {
    println!("3. Windows of two");
    let mut trades = subscribe(rheo, stream, "pairs").await?;
    let mut changes = Vec::new();
    let mut earlier: Option<Held> = None;
    let mut some = trades.by_ref().take(TRADES);
    while let Some(later) = some.next().await {
        if let Some(earlier) = earlier {
            changes.push(trade(&later)?.price - trade(&earlier)?.price);
            earlier.ack().await?;
        }
        earlier = Some(later);
    }
    if let Some(last) = earlier {
        last.ack().await?;
    }
    assert_eq!(changes, [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]);
    println!("   the price rose by {changes:?}");
    finish(rheo, trades, stream, "pairs").await
}

/// Four trades are booked at once, each settled by what came of it. Trade 5 is
/// retried once, trade 7 is rejected.
async fn several_at_once(rheo: &Rheo, stream: &str) -> Result<()> {
    println!("4. Several at once, with retry and reject");
    let mut trades = subscribe(rheo, stream, "booking").await?;
    // One more than there are trades: one of them comes twice.
    let deliveries = trades.by_ref().take(TRADES + 1);
    deliveries
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, async |held| {
            let outcome = book(number(&held), held.lease().attempt()).await;
            if outcome != Outcome::Ack {
                let (number, attempt) = (number(&held), held.lease().attempt());
                println!("   trade {number}, attempt {attempt}: {}", outcome.as_str());
            }
            held.settle(outcome).await
        })
        .await?;

    let counts = trades.health().counts;
    assert_eq!((counts.acked, counts.retried, counts.rejected), (11, 1, 1));
    println!("   acked {}, retried {}, rejected {}", counts.acked, counts.retried, counts.rejected);
    for letter in rheo.dead_letters(stream, "booking", 10, None).await? {
        println!("   dead letter: trade {}, {}", letter.event.sequence(), letter.reason);
    }
    finish(rheo, trades, stream, "booking").await
}

/// Books a trade somewhere slow and not always well.
async fn book(number: u64, attempt: u32) -> Outcome {
    tokio::time::sleep(Duration::from_millis(5)).await;
    match (number, attempt) {
        (5, 1) => Outcome::retry("the ledger was busy"),
        (7, _) => Outcome::reject("no such account"),
        _ => Outcome::Ack,
    }
}

fn trade(held: &Held) -> Result<Trade> {
    held.event().payload_as()
}

/// A trade's number is its sequence: the stream has one partition.
fn number(held: &Held) -> u64 {
    held.event().sequence()
}

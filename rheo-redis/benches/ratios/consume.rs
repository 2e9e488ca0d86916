//! Claiming and settling, against XREADGROUP and XACK.

use rheo_core::{Delivery, FetchOptions, Outcome, Rheo};
use tokio::time::Instant;

use crate::append::fill_bare;
use crate::bare::Bare;
use crate::events::{BATCH, fill};
use crate::place::Place;
use crate::table::{ROUNDS, Row, rate};

/// How many batches a round has.
const BATCHES: u64 = 300;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("consume").await, place.bare().await);
    let log = place.bare_log("consume");
    bare.create(&log).await;
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS as u64 {
        fill_bare(&mut bare, &log, BATCHES * BATCH).await;
        fill(&rheo, "consume", round * BATCHES * BATCH, BATCHES * BATCH).await;
        let theirs = bare_round(&mut bare, &log).await;
        pairs.push((theirs, our_round(&rheo, "consume").await));
    }
    let name = "claim and settle 100";
    Row { name, unit: "events/s", target: "0.6" }.print(&pairs[1..]);
}

async fn our_round(rheo: &Rheo, stream: &str) -> f64 {
    let begun = Instant::now();
    for _ in 0..BATCHES {
        assert_eq!(claim_and_settle(rheo, stream, "group").await, BATCH);
    }
    rate(BATCHES * BATCH, begun.elapsed())
}

async fn bare_round(bare: &mut Bare, log: &str) -> f64 {
    let begun = Instant::now();
    for _ in 0..BATCHES {
        assert_eq!(claim_and_ack(bare, log).await, BATCH);
    }
    rate(BATCHES * BATCH, begun.elapsed())
}

/// Claims a batch and acks it; how many there were.
pub(crate) async fn claim_and_settle(rheo: &Rheo, stream: &str, group: &str) -> u64 {
    let deliveries = claim(rheo, stream, group, BATCH).await;
    let acks = deliveries.iter().map(|delivery| (delivery, Outcome::Ack));
    for answer in rheo.settle(acks).await {
        answer.expect("settled");
    }
    deliveries.len() as u64
}

pub(crate) async fn claim(rheo: &Rheo, stream: &str, group: &str, count: u64) -> Vec<Delivery> {
    let options = FetchOptions::default();
    rheo.fetch(stream, group, count as usize, options).await.expect("fetched")
}

/// The same with the bare driver.
pub(crate) async fn claim_and_ack(bare: &mut Bare, log: &str) -> u64 {
    let entries = bare.claim(log, BATCH).await;
    bare.ack(log, &entries).await
}

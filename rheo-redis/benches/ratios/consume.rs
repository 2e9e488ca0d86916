//! Claiming and settling, against XREADGROUP and XACK.

use rheo_core::{Delivery, FetchOptions, Outcome, Rheo};

use crate::bare::Bare;
use crate::events::{BATCH, fill, fill_bare};
use crate::place::Place;
use crate::table::{ROUNDS, Row, micros, rates, take_turns};

/// How many batches a round has.
const BATCHES: u64 = 200;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("consume").await, place.bare().await);
    let log = place.bare_log("consume");
    let count = BATCHES * BATCH * (ROUNDS as u64 + 1);
    bare.create(&log).await;
    fill_bare(&mut bare, &log, count).await;
    fill(&rheo, "consume", count).await;
    let theirs = async || whole(micros(claim_and_ack(&mut bare, &log)).await);
    let ours = async || whole(micros(claim_and_settle(&rheo, "consume", "group")).await);
    let pairs = take_turns(BATCHES as usize, theirs, ours).await;
    let row = Row { name: "claim and settle 100", unit: "events/s", target: "0.6" };
    row.print(&rates(BATCH, &pairs));
}

/// How long it took to get a whole batch.
pub(crate) fn whole((spent, count): (f64, u64)) -> f64 {
    assert_eq!(count, BATCH);
    spent
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

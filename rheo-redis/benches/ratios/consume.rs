//! Claiming and settling, against XREADGROUP and XACK.

use ratios::{BATCH, ROUNDS, Row, claim_and_settle, fill, micros, rates, take_turns, whole};

use crate::bare::Bare;
use crate::events::fill_bare;
use crate::place::Place;

/// How many batches a round has.
const BATCHES: u64 = 200;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("consume").await, place.bare().await);
    let log = place.bare_log("consume");
    let count = BATCHES * BATCH * (ROUNDS as u64 + 1);
    bare.create(&log).await;
    fill_bare(&mut bare, &log, count).await;
    fill(&rheo, "consume", 1, count).await;
    let theirs = async || whole(micros(claim_and_ack(&mut bare, &log)).await);
    let ours = async || whole(micros(claim_and_settle(&rheo, "consume", "group")).await);
    let pairs = take_turns(BATCHES as usize, theirs, ours).await;
    let row = Row { name: "claim and settle 100", unit: "events/s", target: "0.6" };
    row.print(&rates(BATCH, &pairs));
}

/// Claims a batch and acks it with the bare driver; how many there were.
pub(crate) async fn claim_and_ack(bare: &mut Bare, log: &str) -> u64 {
    let entries = bare.claim(log, BATCH).await;
    bare.ack(log, &entries).await
}

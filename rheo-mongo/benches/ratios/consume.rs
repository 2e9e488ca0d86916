//! Claiming and settling, against what is written by hand: a document for each
//! batch is leased, the batch is read, and the document is deleted.

use ratios::{BATCH, ROUNDS, Row, claim_and_settle, fill, micros, one_round, rates, whole};

use crate::bare::Log;
use crate::place::{Place, create, delete};

/// How many batches a round has, in a queue of its own.
const BATCHES: u64 = 15;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let stream = format!("consume-{round}");
        let log = place.bare_log(&stream).await;
        create(&rheo, &stream).await;
        log.fill(BATCHES, BATCH).await;
        fill(&rheo, &stream, 1, BATCHES * BATCH).await;
        let theirs = async || whole(micros(claim_and_delete(&log)).await);
        let ours = async || whole(micros(claim_and_settle(&rheo, &stream, "group")).await);
        pairs.push(one_round(BATCHES as usize, theirs, ours).await);
        log.drop().await;
        delete(&rheo, &stream).await;
    }
    let row = Row { name: "claim and settle 100", unit: "events/s", target: "none" };
    row.print(&rates(BATCH, &pairs[1..]));
}

/// Claims a batch and settles it with the bare driver; how many there were.
async fn claim_and_delete(log: &Log) -> u64 {
    let (claim, events) = log.claim().await;
    assert!(log.settle(&claim).await);
    events.len() as u64
}

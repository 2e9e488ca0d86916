//! What is done with the events through a handle.

use rheo_core::{Delivery, FetchOptions, Outcome, Rheo};

use crate::{BATCH, events, side_by_side};

/// How many microseconds callers take at once, each for so many batches; the
/// partitions go round.
pub async fn append_batches(
    rheo: &Rheo,
    stream: &str,
    partitions: u32,
    callers: u32,
    each: u64,
) -> f64 {
    let task = |caller: u32| {
        let (rheo, stream) = (rheo.clone(), stream.to_string());
        let batch = |batch| events(batch * BATCH, BATCH, caller % partitions);
        let batches: Vec<_> = (0..each).map(batch).collect();
        async move {
            for batch in batches {
                rheo.append_batch(&stream, batch).await.expect("appended");
            }
        }
    };
    let tasks: Vec<_> = (0..callers).map(task).collect();
    side_by_side(tasks).await
}

/// How many microseconds callers take at once that wait for each of their
/// events, all for the first partition.
pub async fn append_singly(rheo: &Rheo, stream: &str, callers: u64, each: u64) -> f64 {
    let task = |caller: u64| {
        let (rheo, stream) = (rheo.clone(), stream.to_string());
        let events = events(caller * each, each, 0);
        async move {
            for event in events {
                rheo.append(&stream, event).await.expect("appended");
            }
        }
    };
    let tasks: Vec<_> = (0..callers).map(task).collect();
    side_by_side(tasks).await
}

/// Claims up to so many events.
pub async fn claim(rheo: &Rheo, stream: &str, group: &str, count: u64) -> Vec<Delivery> {
    let options = FetchOptions::default();
    rheo.fetch(stream, group, count as usize, options).await.expect("fetched")
}

/// Claims a batch and acks it; how many there were.
pub async fn claim_and_settle(rheo: &Rheo, stream: &str, group: &str) -> u64 {
    let deliveries = claim(rheo, stream, group, BATCH).await;
    let acks = deliveries.iter().map(|delivery| (delivery, Outcome::Ack));
    for answer in rheo.settle(acks).await {
        answer.expect("settled");
    }
    deliveries.len() as u64
}

/// How long it took to get a whole batch.
#[must_use]
pub fn whole((spent, count): (f64, u64)) -> f64 {
    assert_eq!(count, BATCH);
    spent
}

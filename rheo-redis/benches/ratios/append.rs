//! Appending batches, against pipelined XADD with the same fields.

use std::time::Duration;

use rheo_core::{NewEvent, Rheo};

use crate::bare::Bare;
use crate::events::{BATCH, BareEvent, bare_events, events};
use crate::place::Place;
use crate::table::{ROUNDS, Row, rate, side_by_side};

/// How many batches a round has for each client.
const BATCHES: u64 = 200;

pub(crate) async fn measure(place: &Place) {
    for clients in [1, 4] {
        let stream = format!("append-{clients}");
        let (rheo, bare) = (place.rheo_with(&stream).await, place.bare().await);
        let count = clients * BATCHES * BATCH;
        let mut pairs = Vec::new();
        for _ in 0..=ROUNDS {
            let theirs = with_bare(&bare, &place.bare_log(&stream), clients).await;
            pairs.push((rate(count, theirs), rate(count, ours(&rheo, &stream, clients).await)));
        }
        let name = format!("append of 100, callers at once: {clients}");
        Row { name: &name, unit: "events/s", target: "0.9" }.print(&pairs[1..]);
    }
}

async fn ours(rheo: &Rheo, stream: &str, clients: u64) -> Duration {
    let task = |client: u64| {
        let (rheo, stream) = (rheo.clone(), stream.to_string());
        let batches: Vec<Vec<NewEvent>> =
            (0..BATCHES).map(|batch| events((client * BATCHES + batch) * BATCH, BATCH)).collect();
        async move {
            for batch in batches {
                rheo.append_batch(&stream, batch).await.expect("appended");
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(task).collect();
    side_by_side(tasks).await
}

async fn with_bare(bare: &Bare, log: &str, clients: u64) -> Duration {
    let task = |client: u64| {
        let (mut bare, log) = (bare.clone(), log.to_string());
        let batches: Vec<Vec<BareEvent>> = (0..BATCHES)
            .map(|batch| bare_events((client * BATCHES + batch) * BATCH, BATCH))
            .collect();
        async move {
            for batch in batches {
                bare.append(&log, &batch).await;
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(task).collect();
    side_by_side(tasks).await
}

/// Appends that many events with the bare driver, outside any measurement.
pub(crate) async fn fill_bare(bare: &mut Bare, log: &str, count: u64) {
    const CHUNK: u64 = 1000;
    for first in (0..count).step_by(CHUNK as usize) {
        bare.append(log, &bare_events(first, CHUNK.min(count - first))).await;
    }
}

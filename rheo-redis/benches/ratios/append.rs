//! Appending batches, against pipelined XADD with the same fields.

use ratios::{BATCH, Row, append_batches, rates, side_by_side, take_turns};

use crate::bare::Bare;
use crate::events::bare_events;
use crate::place::Place;

/// How many turns a round has.
const TURNS: usize = 40;
/// How many batches each caller appends in a turn.
const EACH: u64 = 5;

pub(crate) async fn measure(place: &Place) {
    for callers in [1, 4] {
        let stream = format!("append-{callers}");
        let (rheo, bare) = (place.rheo_with(&stream).await, place.bare().await);
        let log = place.bare_log(&stream);
        let theirs = async || with_bare(&bare, &log, callers).await;
        let ours = async || append_batches(&rheo, &stream, 1, callers, EACH).await;
        let pairs = take_turns(TURNS, theirs, ours).await;
        let name = format!("append of 100, callers at once: {callers}");
        let row = Row { name: &name, unit: "events/s", target: "0.9" };
        row.print(&rates(u64::from(callers) * EACH * BATCH, &pairs));
    }
}

async fn with_bare(bare: &Bare, log: &str, callers: u32) -> f64 {
    let task = |_| {
        let (mut bare, log) = (bare.clone(), log.to_string());
        let batches: Vec<_> = (0..EACH).map(|batch| bare_events(batch * BATCH, BATCH)).collect();
        async move {
            for batch in batches {
                bare.append(&log, &batch).await;
            }
        }
    };
    let tasks: Vec<_> = (0..callers).map(task).collect();
    side_by_side(tasks).await
}

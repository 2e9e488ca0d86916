//! Claiming and settling, against a queue with a row for each event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratios::{Row, claim_and_settle, fill, rate, side_by_side};
use rheo_core::{GroupOptions, Rheo};

use crate::ROUNDS;
use crate::place::Place;
use crate::queue;

pub(crate) async fn measure(place: &Place) {
    match place.store {
        "postgres" => {
            against_queue(place, Case::new(4, 4, 100_000, 100_000, "3")).await;
            against_queue(place, Case::new(4, 1, 100_000, 100_000, "3")).await;
        }
        "sqlite" => against_queue(place, Case::new(1, 1, 20_000, 2000, "10")).await,
        _ => against_queue(place, Case::new(4, 4, 20_000, 2000, "")).await,
    }
}

struct Case {
    clients: u32,
    partitions: u32,
    /// How many events each side works off in a round.
    ours: u64,
    theirs: u64,
    target: &'static str,
}

impl Case {
    fn new(clients: u32, partitions: u32, ours: u64, theirs: u64, target: &'static str) -> Self {
        Self { clients, partitions, ours, theirs, target }
    }
}

async fn against_queue(place: &Place, case: Case) {
    let Case { clients, partitions, ours, theirs, target } = case;
    let rheo = place.rheo().await;
    let stream = format!("consume-{clients}-{partitions}");
    rheo.create_stream(&stream, partitions).await.expect("a new stream");
    rheo.create_group(&stream, "group", GroupOptions::default()).await.expect("a new group");
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let bare = rate(theirs, queue::work_off(place, clients, theirs).await);
        fill(&rheo, &stream, partitions, ours).await;
        pairs.push((bare, rate(ours, consume(&rheo, &stream, clients, ours).await)));
    }
    let queue = if place.store == "postgres" { "SKIP LOCKED" } else { "one event each" };
    let name = format!(
        "claim and settle 100, {clients} clients, {partitions} partitions, against {queue}"
    );
    Row { name: &name, unit: "events/s", target }.print(&pairs[1..]);
}

/// How many microseconds clients take to claim and settle this many events of `group`.
async fn consume(rheo: &Rheo, stream: &str, clients: u32, count: u64) -> f64 {
    let done = Arc::new(AtomicU64::new(0));
    let task = |_| {
        let (rheo, stream, done) = (rheo.clone(), stream.to_string(), Arc::clone(&done));
        async move {
            while done.load(Ordering::Relaxed) < count {
                let events = claim_and_settle(&rheo, &stream, "group").await;
                done.fetch_add(events, Ordering::Relaxed);
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(task).collect();
    side_by_side(tasks).await
}

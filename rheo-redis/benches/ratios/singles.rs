//! One event for each call: the round trip, and many at once.

use rheo_core::Rheo;
use tokio::time::Instant;

use crate::append::fill_bare;
use crate::bare::Bare;
use crate::consume::claim;
use crate::events::{BATCH, bare_events, events, fill};
use crate::place::Place;
use crate::table::{ROUNDS, Row, rate, side_by_side};

/// How many calls a round has.
const CALLS: u64 = 1000;
const CLIENTS: u64 = 64;
/// How many of them each client makes.
const EACH: u64 = 200;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("singles").await, place.bare().await);
    rheo.create_stream("crowd", 1).await.expect("a new stream");
    let log = place.bare_log("singles");
    bare.create(&log).await;
    let mut appends = Vec::new();
    let mut settles = Vec::new();
    let mut crowds = Vec::new();
    for _ in 0..=ROUNDS {
        appends.push((bare_append(&mut bare, &log).await, our_append(&rheo, "singles").await));
        settles.push((bare_settle(&mut bare, &log).await, our_settle(&rheo, "singles").await));
        let alone = crowd(&rheo, "crowd", 1, CALLS).await;
        crowds.push((alone, crowd(&rheo, "crowd", CLIENTS, EACH).await));
    }
    let row = |name, unit, target| Row { name, unit, target };
    row("single append", "µs", "at most 1.2").print(&appends[1..]);
    row("single settle", "µs", "at most 1.2").print(&settles[1..]);
    let name = "single appends, 64 at once, against one after another";
    row(name, "events/s", "8").print(&crowds[1..]);
}

/// How long one XADD takes, in microseconds.
async fn bare_append(bare: &mut Bare, log: &str) -> f64 {
    let events = bare_events(0, CALLS);
    let begun = Instant::now();
    for event in &events {
        bare.append_one(log, event).await;
    }
    begun.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

/// How long one append takes, in microseconds.
async fn our_append(rheo: &Rheo, stream: &str) -> f64 {
    let events = events(0, CALLS);
    let begun = Instant::now();
    for event in events {
        rheo.append(stream, event).await.expect("appended");
    }
    begun.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

/// How long one XACK takes, in microseconds.
async fn bare_settle(bare: &mut Bare, log: &str) -> f64 {
    fill_bare(bare, log, CALLS).await;
    let mut spent = 0.0;
    for _ in 0..CALLS / BATCH {
        let entries = bare.claim(log, BATCH).await;
        let begun = Instant::now();
        for entry in entries.chunks(1) {
            assert_eq!(bare.ack(log, entry).await, 1);
        }
        spent += begun.elapsed().as_secs_f64();
    }
    spent * 1e6 / CALLS as f64
}

/// How long one settle takes, in microseconds.
async fn our_settle(rheo: &Rheo, stream: &str) -> f64 {
    fill(rheo, stream, 0, CALLS).await;
    let mut spent = 0.0;
    for _ in 0..CALLS / BATCH {
        let deliveries = claim(rheo, stream, "group", BATCH).await;
        let begun = Instant::now();
        for delivery in &deliveries {
            rheo.ack(delivery).await.expect("settled");
        }
        spent += begun.elapsed().as_secs_f64();
    }
    spent * 1e6 / CALLS as f64
}

/// How many events a second clients append that wait for each one.
async fn crowd(rheo: &Rheo, stream: &str, clients: u64, each: u64) -> f64 {
    let task = |client: u64| {
        let (rheo, stream) = (rheo.clone(), stream.to_string());
        let events = events(client * each, each);
        async move {
            for event in events {
                rheo.append(&stream, event).await.expect("appended");
            }
        }
    };
    let tasks: Vec<_> = (0..clients).map(task).collect();
    rate(clients * each, side_by_side(tasks).await)
}

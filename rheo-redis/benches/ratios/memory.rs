//! What the server holds, in bytes: for each event, and for a group that has
//! caught up.

use ratios::{BATCH, Row, claim_and_settle, fill};
use redis::cmd;
use rheo_core::{Confirm, GroupOptions, Rheo};

use crate::bare::Bare;
use crate::events::fill_bare;
use crate::place::Place;

const EVENTS: u64 = 100_000;
const SHORT: u64 = 10_000;
const LONG: u64 = 1_000_000;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo().await, place.bare().await);
    rheo.create_stream("memory", 1).await.expect("a new stream");
    let log = place.bare_log("memory");
    fill_bare(&mut bare, &log, EVENTS).await;
    fill(&rheo, "memory", 1, EVENTS).await;
    let each = |bytes: u64| bytes as f64 / EVENTS as f64;
    let pair = (each(bare.bytes_of(&log).await), each(held(&mut bare, place, "memory").await));
    Row { name: "an event retained", unit: "bytes", target: "at most 1.1" }.print(&[pair]);

    let short = caught_up(&rheo, &mut bare, place, SHORT).await;
    let long = caught_up(&rheo, &mut bare, place, LONG).await;
    let name = "a group caught up with 10⁶ events, against 10⁴";
    Row { name, unit: "bytes", target: "constant" }.print(&[(short, long)]);
}

/// How many bytes a group takes that has settled all of so many events.
async fn caught_up(rheo: &Rheo, bare: &mut Bare, place: &Place, count: u64) -> f64 {
    let stream = format!("memory-{count}");
    rheo.create_stream(&stream, 1).await.expect("a new stream");
    fill(rheo, &stream, 1, count).await;
    let before = held(bare, place, &stream).await;
    let options = GroupOptions::default();
    rheo.create_group(&stream, "group", options).await.expect("a new group");
    for _ in 0..count / BATCH {
        assert_eq!(claim_and_settle(rheo, &stream, "group").await, BATCH);
    }
    let after = held(bare, place, &stream).await;
    rheo.delete_stream(&stream, Confirm::Yes).await.expect("deleted");
    after as f64 - before as f64
}

/// How many bytes all keys of a stream take.
async fn held(bare: &mut Bare, place: &Place, stream: &str) -> u64 {
    let keys: Vec<String> = bare.run(cmd("KEYS").arg(place.log(stream) + "*")).await;
    let mut bytes = 0;
    for key in keys {
        bytes += bare.bytes_of(&key).await;
    }
    bytes
}

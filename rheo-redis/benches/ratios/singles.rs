//! One event for each call: the round trip, and many at once.

use ratios::{ROUNDS, Row, append_singly, claim, events, fill, micros, rates, take_turns};
use rheo_core::Rheo;

use crate::bare::Bare;
use crate::events::{bare_events, fill_bare};
use crate::place::Place;

/// How many calls a round has, all settled of one claim.
const CALLS: u64 = 500;

const CLIENTS: u64 = 64;
/// How many calls each of them makes in a turn.
const EACH: u64 = 10;
const TURNS: usize = 10;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("singles").await, place.bare().await);
    let log = place.bare_log("singles");
    bare.create(&log).await;
    appends(&rheo, &mut bare, &log).await;
    settles(&rheo, &mut bare, &log).await;
    crowd(&rheo).await;
}

async fn appends(rheo: &Rheo, bare: &mut Bare, log: &str) {
    let theirs = async || {
        let event = bare_events(0, 1).remove(0);
        micros(bare.append_one(log, &event)).await.0
    };
    let ours = async || {
        let event = events(0, 1, 0).remove(0);
        let (spent, appended) = micros(rheo.append("singles", event)).await;
        appended.expect("appended");
        spent
    };
    let pairs = take_turns(CALLS as usize, theirs, ours).await;
    Row { name: "single append", unit: "µs", target: "at most 1.2" }.print(&pairs);
}

async fn settles(rheo: &Rheo, bare: &mut Bare, log: &str) {
    let count = CALLS * (ROUNDS as u64 + 1);
    fill_bare(bare, log, count).await;
    fill(rheo, "singles", 1, count).await;
    let mut entries = bare.claim(log, count).await.into_iter();
    let mut deliveries = Vec::new();
    for _ in 0..=ROUNDS {
        deliveries.extend(claim(rheo, "singles", "group", CALLS).await);
    }
    let mut deliveries = deliveries.iter();
    let theirs = async || {
        let entry = entries.next().expect("another entry");
        let (spent, acked) = micros(bare.ack(log, &[entry])).await;
        assert_eq!(acked, 1);
        spent
    };
    let ours = async || {
        let (spent, settled) = micros(rheo.ack(deliveries.next().expect("another one"))).await;
        settled.expect("settled");
        spent
    };
    let pairs = take_turns(CALLS as usize, theirs, ours).await;
    Row { name: "single settle", unit: "µs", target: "at most 1.2" }.print(&pairs);
}

async fn crowd(rheo: &Rheo) {
    rheo.create_stream("crowd", 1).await.expect("a new stream");
    let alone = async || append_singly(rheo, "crowd", 1, EACH).await;
    let together = async || append_singly(rheo, "crowd", CLIENTS, EACH).await / CLIENTS as f64;
    let pairs = take_turns(TURNS, alone, together).await;
    let name = "single appends, 64 at once, against one after another";
    Row { name, unit: "events/s", target: "8" }.print(&rates(EACH, &pairs));
}

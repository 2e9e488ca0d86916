//! One event for each call: the round trip, and many at once.

use ratios::{
    ROUNDS, Row, append_singly, claim, events, fill, micros, one_round, rates, take_turns,
};
use rheo_core::Rheo;

use crate::place::{Place, create, delete};

/// How many calls a round has.
const CALLS: u64 = 50;

const CLIENTS: u64 = 64;
/// How many calls each of them makes in a turn.
const EACH: u64 = 10;
const TURNS: usize = 5;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    appends(place, &rheo).await;
    settles(place, &rheo).await;
    crowd(&rheo).await;
}

async fn appends(place: &Place, rheo: &Rheo) {
    let log = place.bare_log("singles").await;
    create(rheo, "singles").await;
    let theirs = async || {
        let event = log.events(1).remove(0);
        micros(log.append_one(&event)).await.0
    };
    let ours = async || {
        let event = events(0, 1, 0).remove(0);
        let (spent, appended) = micros(rheo.append("singles", event)).await;
        appended.expect("appended");
        spent
    };
    let pairs = take_turns(CALLS as usize, theirs, ours).await;
    Row { name: "single append", unit: "µs", target: "none" }.print(&pairs);
    log.drop().await;
    delete(rheo, "singles").await;
}

/// Rheo settles one after another of what it claimed at once; the bare driver
/// claimed one by one.
async fn settles(place: &Place, rheo: &Rheo) {
    let mut pairs = Vec::new();
    for round in 0..=ROUNDS {
        let stream = format!("settles-{round}");
        let log = place.bare_log(&stream).await;
        create(rheo, &stream).await;
        log.fill(CALLS, 1).await;
        fill(rheo, &stream, 1, CALLS).await;
        let deliveries = claim(rheo, &stream, "group", CALLS).await;
        let mut deliveries = deliveries.iter();
        let theirs = async || {
            let (claim, _) = log.claim().await;
            let (spent, settled) = micros(log.settle(&claim)).await;
            assert!(settled);
            spent
        };
        let ours = async || {
            let (spent, settled) = micros(rheo.ack(deliveries.next().expect("another one"))).await;
            settled.expect("settled");
            spent
        };
        pairs.push(one_round(CALLS as usize, theirs, ours).await);
        log.drop().await;
        delete(rheo, &stream).await;
    }
    Row { name: "single settle", unit: "µs", target: "none" }.print(&pairs[1..]);
}

async fn crowd(rheo: &Rheo) {
    create(rheo, "crowd").await;
    let alone = async || append_singly(rheo, "crowd", 1, EACH).await;
    let together = async || append_singly(rheo, "crowd", CLIENTS, EACH).await / CLIENTS as f64;
    let pairs = take_turns(TURNS, alone, together).await;
    let name = "single appends, 64 at once, against one after another";
    Row { name, unit: "events/s", target: "none" }.print(&rates(EACH, &pairs));
    delete(rheo, "crowd").await;
}

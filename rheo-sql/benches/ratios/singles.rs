//! Single appends: many at once, against one after another.

use ratios::{Row, append_singly, rate};
use rheo_core::Rheo;

use crate::ROUNDS;
use crate::place::Place;

const CLIENTS: u64 = 32;
/// How many events each client appends in a round.
const EACH: u64 = 100;
const ALONE: u64 = 500;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    rheo.create_stream("singles", 1).await.expect("a new stream");
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let alone = singles(&rheo, "singles", 1, ALONE).await;
        pairs.push((alone, singles(&rheo, "singles", CLIENTS, EACH).await));
    }
    let name = "single appends, 32 at once, against one after another";
    Row { name, unit: "events/s", target: "8" }.print(&pairs[1..]);
}

/// How many events a second clients append that wait for each one.
pub(crate) async fn singles(rheo: &Rheo, stream: &str, clients: u64, each: u64) -> f64 {
    rate(clients * each, append_singly(rheo, stream, clients, each).await)
}

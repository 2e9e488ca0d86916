//! Appends of many, with waking and without.

use ratios::Row;
use rheo_sql::Options;

use crate::ROUNDS;
use crate::place::Place;
use crate::singles::singles;

const CLIENTS: u64 = 64;
const EACH: u64 = 200;

pub(crate) async fn measure(place: &Place) {
    let waking = place.rheo().await;
    let silent = place.rheo_with(Options::default().wake(false)).await;
    waking.create_stream("waking", 1).await.expect("a new stream");
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let without = singles(&silent, "waking", CLIENTS, EACH).await;
        pairs.push((without, singles(&waking, "waking", CLIENTS, EACH).await));
    }
    let name = "64 appenders, waking on, against off";
    Row { name, unit: "events/s", target: "0.85" }.print(&pairs[1..]);
}

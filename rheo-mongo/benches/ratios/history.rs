//! What a claim costs where much lies behind it.

use ratios::{BATCH, ROUNDS, Row, claim_and_settle, events, fill, micros, one_round, whole};
use rheo_core::{GroupOptions, Rheo, Start};

use crate::place::{Place, delete};

/// How many claims a round has, on streams of its own.
const CLAIMS: usize = 5;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    let (few, many) = if place.stops_early() { (1000, 10_000) } else { (100, 1000) };
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        for (stream, count) in [("few", few), ("many", many)] {
            rheo.create_stream(stream, 1).await.expect("a new stream");
            fill(&rheo, stream, 1, count).await;
            let options = GroupOptions::default().start(Start::End);
            rheo.create_group(stream, "tail", options).await.expect("a new group");
        }
        let after_few = async || tail_claim(&rheo, "few").await;
        pairs.push(one_round(CLAIMS, after_few, async || tail_claim(&rheo, "many").await).await);
        delete(&rheo, "few").await;
        delete(&rheo, "many").await;
    }
    let name = format!("claim and settle 100 after {many} events, against {few}");
    Row { name: &name, unit: "µs", target: "at most 1.2" }.print(&pairs[1..]);
}

async fn tail_claim(rheo: &Rheo, stream: &str) -> f64 {
    rheo.append_batch(stream, events(0, BATCH, 0)).await.expect("appended");
    whole(micros(claim_and_settle(rheo, stream, "tail")).await)
}

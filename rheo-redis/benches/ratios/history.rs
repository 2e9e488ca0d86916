//! What a claim costs where much lies behind it, and where much lies ahead.

use ratios::{BATCH, Row, claim_and_settle, events, fill, median, micros, take_turns, whole};
use rheo_core::{GroupOptions, Rheo, Start};

use crate::place::Place;

const SHORT: u64 = 10_000;
const LONG: u64 = 1_000_000;
const CLAIMS_OF_A_ROUND: usize = 100;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    for (stream, count) in [("short", SHORT), ("long", LONG)] {
        rheo.create_stream(stream, 1).await.expect("a new stream");
        fill(&rheo, stream, 1, count).await;
        let options = GroupOptions::default().start(Start::End);
        rheo.create_group(stream, "tail", options).await.expect("a new group");
    }
    through_a_backlog(&rheo).await;
    at_the_tail(&rheo).await;
}

async fn at_the_tail(rheo: &Rheo) {
    let short = async || tail_claim(rheo, "short").await;
    let pairs = take_turns(CLAIMS_OF_A_ROUND, short, async || tail_claim(rheo, "long").await).await;
    let name = "claim and settle 100 after 10⁶ events, against 10⁴";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&pairs);
}

async fn tail_claim(rheo: &Rheo, stream: &str) -> f64 {
    rheo.append_batch(stream, events(0, BATCH, 0)).await.expect("appended");
    whole(micros(claim_and_settle(rheo, stream, "tail")).await)
}

/// The first and the last tenth of a backlog.
async fn through_a_backlog(rheo: &Rheo) {
    rheo.create_group("long", "behind", GroupOptions::default()).await.expect("a new group");
    let mut claims = Vec::new();
    for _ in 0..LONG / BATCH {
        claims.push(whole(micros(claim_and_settle(rheo, "long", "behind")).await));
    }
    let tenth = claims.len() / 10;
    let first = median(claims[..tenth].to_vec());
    let last = median(claims[claims.len() - tenth..].to_vec());
    let name = "claim and settle 100, last tenth of a backlog of 10⁶, against the first";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&[(first, last)]);
}

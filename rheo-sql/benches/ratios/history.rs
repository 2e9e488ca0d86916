//! What a claim costs where much lies behind it, and where much lies ahead.

use ratios::{BATCH, Row, claim_and_settle, events, fill, median, micros, whole};
use rheo_core::{GroupOptions, Rheo, Start};

use crate::place::Place;

const SHORT: u64 = 10_000;
const LONG: u64 = 1_000_000;
const BACKLOG: u64 = 200_000;
const PARTS: usize = 5;
const CLAIMS_OF_A_PART: usize = 60;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    for (stream, count) in [("short", SHORT), ("long", LONG)] {
        rheo.create_stream(stream, 1).await.expect("a new stream");
        fill(&rheo, stream, 1, count).await;
        let options = GroupOptions::default().start(Start::End);
        rheo.create_group(stream, "tail", options).await.expect("a new group");
    }
    at_the_tail(&rheo).await;
    through_a_backlog(&rheo).await;
}

/// Both tails take turns, claim by claim.
async fn at_the_tail(rheo: &Rheo) {
    let mut pairs = Vec::new();
    for _ in 0..=PARTS {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for _ in 0..CLAIMS_OF_A_PART {
            short.push(tail_claim(rheo, "short").await);
            long.push(tail_claim(rheo, "long").await);
        }
        pairs.push((median(short), median(long)));
    }
    let name = "claim and settle 100 after 10⁶ events, against 10⁴";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&pairs[1..]);
}

async fn tail_claim(rheo: &Rheo, stream: &str) -> f64 {
    rheo.append_batch(stream, events(0, BATCH, 0)).await.expect("appended");
    timed_claim(rheo, stream, "tail").await
}

async fn timed_claim(rheo: &Rheo, stream: &str, group: &str) -> f64 {
    whole(micros(claim_and_settle(rheo, stream, group)).await)
}

/// The first and the last tenth of a backlog.
async fn through_a_backlog(rheo: &Rheo) {
    let end = LONG + (PARTS as u64 + 1) * CLAIMS_OF_A_PART as u64 * BATCH;
    let options = GroupOptions::default().start(Start::AfterSequence(end - BACKLOG));
    rheo.create_group("long", "behind", options).await.expect("a new group");
    let mut claims = Vec::new();
    for _ in 0..BACKLOG / BATCH {
        claims.push(timed_claim(rheo, "long", "behind").await);
    }
    let tenth = claims.len() / 10;
    let first = median(claims[..tenth].to_vec());
    let last = median(claims[claims.len() - tenth..].to_vec());
    let name = "claim and settle, last tenth of a backlog of 200 000, against the first";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&[(first, last)]);
}

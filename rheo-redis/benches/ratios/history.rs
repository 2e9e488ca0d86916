//! What a claim costs where much lies behind it, and where much lies ahead.

use rheo_core::{GroupOptions, Rheo, Start};

use crate::consume::claim_and_settle;
use crate::events::{BATCH, events, fill};
use crate::place::Place;
use crate::table::{ROUNDS, Row, median, micros};

const SHORT: u64 = 10_000;
const LONG: u64 = 1_000_000;
const CLAIMS_OF_A_ROUND: usize = 100;

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    for (stream, count) in [("short", SHORT), ("long", LONG)] {
        rheo.create_stream(stream, 1).await.expect("a new stream");
        fill(&rheo, stream, 0, count).await;
        let options = GroupOptions::default().start(Start::End);
        rheo.create_group(stream, "tail", options).await.expect("a new group");
    }
    through_a_backlog(&rheo).await;
    at_the_tail(&rheo).await;
}

/// Both tails take turns, claim by claim.
async fn at_the_tail(rheo: &Rheo) {
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for _ in 0..CLAIMS_OF_A_ROUND {
            short.push(tail_claim(rheo, "short").await);
            long.push(tail_claim(rheo, "long").await);
        }
        pairs.push((median(short), median(long)));
    }
    let name = "claim and settle 100 after 10⁶ events, against 10⁴";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&pairs[1..]);
}

async fn tail_claim(rheo: &Rheo, stream: &str) -> f64 {
    rheo.append_batch(stream, events(0, BATCH)).await.expect("appended");
    timed_claim(rheo, stream, "tail").await
}

async fn timed_claim(rheo: &Rheo, stream: &str, group: &str) -> f64 {
    let claim = async { assert_eq!(claim_and_settle(rheo, stream, group).await, BATCH) };
    micros(claim).await
}

/// The first and the last tenth of a backlog.
async fn through_a_backlog(rheo: &Rheo) {
    rheo.create_group("long", "behind", GroupOptions::default()).await.expect("a new group");
    let mut claims = Vec::new();
    for _ in 0..LONG / BATCH {
        claims.push(timed_claim(rheo, "long", "behind").await);
    }
    let tenth = claims.len() / 10;
    let first = median(claims[..tenth].to_vec());
    let last = median(claims[claims.len() - tenth..].to_vec());
    let name = "claim and settle 100, last tenth of a backlog of 10⁶, against the first";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&[(first, last)]);
}

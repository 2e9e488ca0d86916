//! One expired lease among many that are not.

use std::time::Duration;

use ratios::{Row, fill, micros, take_turns};
use rheo_core::{Delivery, FetchOptions, GroupOptions, Rheo};
use tokio::time::sleep;

use crate::place::Place;

const PENDING: u64 = 200_000;
const CLAIMED_AT_ONCE: u64 = 1000;
const CLAIMS_OF_A_ROUND: usize = 50;

const LONG: Duration = Duration::from_secs(10_000);
const SHORT: Duration = Duration::from_millis(1);

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    pending(&rheo, "alone", 0).await;
    pending(&rheo, "crowded", PENDING).await;
    let alone = async || {
        sleep(2 * SHORT).await;
        reclaimed(&rheo, "alone", 1).await
    };
    let crowded = async || reclaimed(&rheo, "crowded", PENDING / 2 + 1).await;
    let pairs = take_turns(CLAIMS_OF_A_ROUND, alone, crowded).await;
    let name = "claim of one expired lease in the middle of 200 000, against one alone";
    Row { name, unit: "µs", target: "at most 1.2" }.print(&pairs);
}

/// A stream of so many events that are leased for long, and one more in their
/// middle whose lease has run out.
async fn pending(rheo: &Rheo, stream: &str, count: u64) {
    rheo.create_stream(stream, 1).await.expect("a new stream");
    let options = GroupOptions::default().max_attempts(u32::MAX);
    rheo.create_group(stream, "group", options).await.expect("a new group");
    fill(rheo, stream, 1, count + 1).await;
    let is_middle = |delivery: &Delivery| delivery.event.sequence() == count / 2 + 1;
    let mut middle = None;
    for _ in 0..=count / CLAIMED_AT_ONCE {
        let deliveries = claim(rheo, stream, CLAIMED_AT_ONCE, LONG).await;
        middle = middle.or(deliveries.into_iter().find(is_middle));
    }
    rheo.renew(middle.expect("it was claimed"), SHORT).await.expect("renewed");
}

/// How long it takes to claim the event of that sequence.
async fn reclaimed(rheo: &Rheo, stream: &str, sequence: u64) -> f64 {
    let (spent, deliveries) = micros(claim(rheo, stream, 1, SHORT)).await;
    assert_eq!(deliveries[0].event.sequence(), sequence);
    spent
}

async fn claim(rheo: &Rheo, stream: &str, count: u64, lease: Duration) -> Vec<Delivery> {
    let options = FetchOptions::default().lease(lease);
    rheo.fetch(stream, "group", count as usize, options).await.expect("fetched")
}

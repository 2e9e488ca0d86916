//! The events as the bare driver writes them.

use ratios::{event_type, key, payload};
use rheo_core::Timestamp;
use uuid::Uuid;

use crate::bare::Bare;

/// An event: the fields and their values.
pub(crate) type BareEvent = [(&'static str, String); 6];

pub(crate) fn bare_events(first: u64, count: u64) -> Vec<BareEvent> {
    let event = |number: u64| {
        [
            ("id", Uuid::now_v7().to_string()),
            ("at", Timestamp::now().as_micros().to_string()),
            ("type", event_type(number)),
            ("key", key(number)),
            ("metadata", "{}".into()),
            ("payload", payload(number).to_string()),
        ]
    };
    (first..first + count).map(event).collect()
}

/// How many events go in one call where nothing is measured.
const CHUNK: u64 = 1000;

/// Appends so many events with the bare driver.
pub(crate) async fn fill_bare(bare: &mut Bare, log: &str, count: u64) {
    for first in (0..count).step_by(CHUNK as usize) {
        bare.append(log, &bare_events(first, CHUNK.min(count - first))).await;
    }
}

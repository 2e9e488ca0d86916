//! The events: JSON objects of 200 bytes.

use rheo_core::{NewEvent, Rheo, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::bare::Bare;

const PAYLOAD_BYTES: usize = 200;

/// How many events go in one call.
pub(crate) const BATCH: u64 = 100;

fn payload(number: u64) -> serde_json::Value {
    let currency = ["EUR", "USD", "CHF", "GBP"][(number % 4) as usize];
    let mut payload = json!({
        "order": number,
        "customer": key(number),
        "currency": currency,
        "price": (number % 977) as f64 + 0.25,
        "note": "",
    });
    let rest = PAYLOAD_BYTES.saturating_sub(payload.to_string().len());
    let digits =
        format!("{:032x}", u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060));
    payload["note"] = digits.repeat(rest / digits.len() + 1)[..rest].into();
    payload
}

fn event_type(number: u64) -> String {
    format!("type-{}", number % 10)
}

fn key(number: u64) -> String {
    format!("customer-{}", number % 5000)
}

/// Events with the numbers from `first`, for the only partition.
pub(crate) fn events(first: u64, count: u64) -> Vec<NewEvent> {
    let event =
        |number| NewEvent::new(event_type(number), payload(number)).key(key(number)).partition(0);
    (first..first + count).map(event).collect()
}

/// An event as the bare driver writes it: the fields and their values.
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

/// Appends so many events.
pub(crate) async fn fill(rheo: &Rheo, stream: &str, count: u64) {
    for first in (0..count).step_by(CHUNK as usize) {
        let events = events(first, CHUNK.min(count - first));
        rheo.append_batch(stream, events).await.expect("appended");
    }
}

/// Appends so many events with the bare driver.
pub(crate) async fn fill_bare(bare: &mut Bare, log: &str, count: u64) {
    for first in (0..count).step_by(CHUNK as usize) {
        bare.append(log, &bare_events(first, CHUNK.min(count - first))).await;
    }
}

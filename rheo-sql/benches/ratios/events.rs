//! The events: JSON objects of 200 bytes.

use rheo_core::{NewEvent, Rheo};
use serde_json::json;
use uuid::Uuid;

const PAYLOAD_BYTES: usize = 200;

/// How many events go in one call.
pub(crate) const BATCH: u64 = 100;

/// An event's payload as JSON, and its type and key.
pub(crate) fn payload(number: u64) -> serde_json::Value {
    let currency = ["EUR", "USD", "CHF", "GBP"][(number % 4) as usize];
    let mut payload = json!({
        "order": number,
        "customer": format!("customer-{}", number % 5000),
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

pub(crate) fn event_type(number: u64) -> String {
    format!("type-{}", number % 10)
}

pub(crate) fn key(number: u64) -> String {
    format!("customer-{}", number % 5000)
}

/// Events with the numbers from `first`, for one partition.
pub(crate) fn events(first: u64, count: u64, partition: u32) -> Vec<NewEvent> {
    let event = |number| {
        NewEvent::new(event_type(number), payload(number)).key(key(number)).partition(partition)
    };
    (first..first + count).map(event).collect()
}

/// An event as the bare driver writes it.
pub(crate) struct BareEvent {
    pub(crate) id: Uuid,
    pub(crate) timestamp: i64,
    pub(crate) event_type: String,
    pub(crate) key: String,
    pub(crate) payload: String,
}

pub(crate) fn bare_events(first: u64, count: u64) -> Vec<BareEvent> {
    let event = |number: u64| BareEvent {
        id: Uuid::now_v7(),
        timestamp: number.cast_signed(),
        event_type: event_type(number),
        key: key(number),
        payload: payload(number).to_string(),
    };
    (first..first + count).map(event).collect()
}

/// Appends this many events, spread over the partitions.
pub(crate) async fn fill(rheo: &Rheo, stream: &str, partitions: u32, count: u64) {
    const CHUNK: u64 = 1000;
    for (turn, first) in (0..count).step_by(CHUNK as usize).enumerate() {
        let partition = turn as u32 % partitions;
        let events = events(first, CHUNK.min(count - first), partition);
        rheo.append_batch(stream, events).await.expect("appended");
    }
}

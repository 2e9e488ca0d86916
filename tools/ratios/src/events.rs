//! The events: JSON objects of 200 bytes.

use rheo_core::{NewEvent, Rheo};
use serde_json::{Value, json};

const PAYLOAD_BYTES: usize = 200;

/// How many events go in one call.
pub const BATCH: u64 = 100;

/// How many events go in one call where nothing is measured.
const CHUNK: u64 = 1000;

/// The payload of the event of that number.
#[must_use]
pub fn payload(number: u64) -> Value {
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

/// The type of the event of that number.
#[must_use]
pub fn event_type(number: u64) -> String {
    format!("type-{}", number % 10)
}

/// The key of the event of that number.
#[must_use]
pub fn key(number: u64) -> String {
    format!("customer-{}", number % 5000)
}

/// Events with the numbers from `first`, for one partition.
#[must_use]
pub fn events(first: u64, count: u64, partition: u32) -> Vec<NewEvent> {
    let event = |number| {
        NewEvent::new(event_type(number), payload(number)).key(key(number)).partition(partition)
    };
    (first..first + count).map(event).collect()
}

/// Appends so many events, spread over the partitions.
pub async fn fill(rheo: &Rheo, stream: &str, partitions: u32, count: u64) {
    for (turn, first) in (0..count).step_by(CHUNK as usize).enumerate() {
        let partition = turn as u32 % partitions;
        let events = events(first, CHUNK.min(count - first), partition);
        rheo.append_batch(stream, events).await.expect("appended");
    }
}

//! The events: JSON objects of 200 bytes, the same in every run.

use fastrand::Rng;
use rheo::{NewEvent, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

/// What all that is random comes from.
pub(crate) const SEED: u64 = 42;

/// How long a payload is.
pub(crate) const PAYLOAD_BYTES: usize = 200;

/// How many events go in one call where they go together.
pub(crate) const BATCH: u64 = 100;

/// How many different keys there are.
const KEYS: u64 = 5000;

/// An event as the bare driver writes it.
pub(crate) struct Plain {
    pub(crate) id: Uuid,
    /// In microseconds.
    pub(crate) at: i64,
    pub(crate) event_type: String,
    pub(crate) key: String,
    pub(crate) payload: String,
}

/// Events with the numbers from `first`, for Rheo.
pub(crate) fn events(first: u64, count: u64, partition: u32) -> Vec<NewEvent> {
    let event = |number| {
        let (event_type, key, payload) = content(number);
        NewEvent::new(event_type, payload).key(key).partition(partition)
    };
    (first..first + count).map(event).collect()
}

/// The same for the bare driver.
pub(crate) fn plain(first: u64, count: u64) -> Vec<Plain> {
    let event = |number| {
        let (event_type, key, payload) = content(number);
        let (id, at) = (Uuid::now_v7(), Timestamp::now().as_micros());
        Plain { id, at, event_type, key, payload: payload.to_string() }
    };
    (first..first + count).map(event).collect()
}

/// The type, the key and the payload of the event of that number.
fn content(number: u64) -> (String, String, Value) {
    let mut random = Rng::with_seed(SEED.wrapping_add(number));
    let event_type = format!("type-{}", random.u8(0..10));
    let key = format!("customer-{}", random.u64(0..KEYS));
    let currency = ["EUR", "USD", "CHF", "GBP"][random.usize(0..4)];
    let mut payload = json!({
        "order": number,
        "customer": key,
        "currency": currency,
        "price": f64::from(random.u16(0..4000)) / 4.0,
        "note": "",
    });
    let rest = PAYLOAD_BYTES.saturating_sub(payload.to_string().len());
    let note: String = (0..rest).map(|_| random.alphanumeric()).collect();
    payload["note"] = note.into();
    (event_type, key, payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_number_is_always_the_same() {
        for number in [0, 1, 99_999] {
            assert_eq!(content(number), content(number));
            assert_eq!(content(number).2.to_string().len(), PAYLOAD_BYTES);
        }
        assert_ne!(content(0), content(1));
    }
}

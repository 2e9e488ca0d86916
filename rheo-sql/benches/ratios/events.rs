//! The events as the bare driver writes them.

use ratios::{event_type, key, payload};
use uuid::Uuid;

/// An event: its columns.
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

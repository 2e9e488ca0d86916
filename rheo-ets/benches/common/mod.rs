//! The events that the benchmarks append: 200 bytes each.

use rheo_core::NewEvent;

const TYPE: &str = "order.placed";
const ENCODED_BYTES: usize = 200;

/// How many events go in one call.
pub(crate) const BATCH: u64 = 100;

/// The `number`th batch, with one of `keys` keys on each event.
pub(crate) fn batch(number: u64, keys: u64) -> Vec<NewEvent> {
    let event = |number: u64| {
        // Scattered, as the keys of a real stream are.
        let key = format!("{:016x}", (number % keys).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let rest = TYPE.len() + key.len() + "{}\"\"".len();
        NewEvent::new(TYPE, "x".repeat(ENCODED_BYTES - rest)).key(key)
    };
    (number * BATCH..(number + 1) * BATCH).map(event).collect()
}

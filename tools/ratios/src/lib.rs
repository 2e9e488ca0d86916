//! Measures Rheo beside a bare driver, as ratios inside one run: the events,
//! what is done with them through the handle, the measuring, and the table.
//!
//! Both sides of a row take turns on one server, so that whatever slows one down
//! slows the other down too. Nothing here asserts a time.

mod events;
mod measuring;
mod table;
mod work;

pub use events::{BATCH, event_type, events, fill, key, payload};
pub use measuring::{ROUNDS, median, micros, one_round, rate, rates, side_by_side, take_turns};
pub use table::{Row, begin};
pub use work::{append_batches, append_singly, claim, claim_and_settle, whole};

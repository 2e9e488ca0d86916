//! What adapters have in common: for their authors, no application needs it.
//!
//! Nothing here knows a store, and no adapter has to use it. [`Bells`] and
//! [`wait_for_work`] are for waiting, [`Bounds`] and [`Spans`] for searching,
//! [`Leases`] and [`widened`] for settling and replay, and the rest reads the options in a URL.

mod bells;
mod bounds;
mod leases;
mod spans;
mod values;
mod waiting;

pub use bells::{Bells, Listener};
pub use bounds::Bounds;
pub use leases::{Leases, widened};
pub use spans::Spans;
pub use values::{config, decoded, millis, number, switch};
pub use waiting::wait_for_work;

//! Running consumers: what fetches, renews and settles, so that applications
//! only handle events.
//!
//! Two forms of one thing. A [`Consumer`] calls a [`Handler`] for each event
//! and settles by its outcome. A [`Subscription`] is a `futures::Stream` of
//! [`Held`] events, which the application settles itself. Both claim ahead up
//! to `max_demand`, renew every lease at half its time until it is settled,
//! gather settles into batches, back off and come back when the store is away,
//! and drain.
//!
//! An instance runs one of them for each group; more concurrency or more
//! processes do more work at once.

mod backoff;
mod builder;
mod consumer;
mod engine;
mod feed;
mod handler;
mod health;
mod held;
mod ledger;
mod options;
mod owner;
mod renew;
mod settle;
mod stopwatch;
mod subscription;

pub use builder::{ConsumerBuilder, DEFAULT_CONCURRENCY};
pub use consumer::Consumer;
pub use engine::Drained;
pub use handler::{Handler, IntoOutcome};
pub use health::{Counts, Health};
pub use held::Held;
pub use options::{DEFAULT_POLL_INTERVAL, SubscribeOptions};
pub use subscription::Subscription;

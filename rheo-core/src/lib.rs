//! The core of Rheo: an append-only, searchable, replayable event log with
//! durable consumer groups, over stores that people already run.
//!
//! This crate knows no store. It holds what all backends share: the values,
//! the [`Error`], the [`Capabilities`], the [`Backend`](backend::Backend) trait
//! for adapters and what they have in common ([`adapter`]), the [`Rheo`] handle
//! for applications, the consumer runtime, and the pure state machine
//! ([`progress`]) that says what a group's delivery means. Applications depend on the facade crate `rheo`, which re-exports
//! this one beside the backends.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
//! use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
//! use serde_json::json;
//!
//! let rheo = Rheo::builder(rheo_ets::Memory::new()).build().await?;
//! rheo.create_stream("orders", 1).await?;
//! rheo.create_group("orders", "billing", GroupOptions::default()).await?;
//!
//! rheo.append("orders", NewEvent::new("order.placed", json!({"total": 12.5}))).await?;
//! for delivery in rheo.fetch("orders", "billing", 10, FetchOptions::default()).await? {
//!     println!("{} {}", delivery.event.sequence(), delivery.event.payload());
//!     rheo.ack(&delivery).await?;
//! }
//! assert_eq!(rheo.lag("orders", "billing").await?.total(), 0);
//! # Ok(()) }
//! ```

pub mod adapter;
pub mod backend;
mod capabilities;
mod clock;
mod error;
mod event;
mod group;
mod handle;
mod lease;
mod name;
mod outcome;
mod position;
pub mod progress;
mod query;
pub mod runtime;
mod time;
mod token;

pub use backend::Now;
pub use capabilities::{Capabilities, Guarantee, Guarantees, Limits, Mechanism, Mechanisms};
pub use clock::{Clock, ManualClock};
pub use error::{Effect, Error, ErrorKind, Result, Retry};
pub use event::{
    Event, EventBody, EventParts, Lineage, MAX_KEY_BYTES, MAX_TYPE_BYTES, NewEvent,
    partition_for_key,
};
pub use group::{
    DEFAULT_MAX_ATTEMPTS, DeadLetter, GroupInfo, GroupOptions, GroupSettings, PartitionProgress,
    Start,
};
pub use handle::{
    Builder, Confirm, DEFAULT_EVENT_BYTES, DEFAULT_LEASE, DEFAULT_MAX_DEMAND, DEFAULT_TIMEOUT,
    FetchOptions, Lag, MAX_BATCH, MAX_PARTITIONS, Replay, ReplayOptions, Rheo,
};
pub use lease::{Delivery, Granting, Lease};
pub use name::{ConsumerId, GroupName, MAX_NAME_BYTES, StreamName};
pub use outcome::{MAX_REASON_BYTES, Outcome, stored_reason};
pub use position::Position;
pub use query::{Condition, Cursor, Field, Filter, Order, Page, Query};
pub use runtime::{Consumer, Handler, Subscription};
pub use time::Timestamp;
pub use token::{Fence, LeaseId, Receipt, Token};

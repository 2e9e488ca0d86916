//! A complete backend of Rheo, built as an outsider would build one: it sees
//! `rheo-core`, and `rheo-conformance` for its test, and nothing else of Rheo.
//!
//! It keeps everything in memory behind one mutex. That is slow when many use
//! it and gone with its process, but every law of the contract holds, and the
//! whole suite passes. Read it in this order:
//!
//! 1. `capabilities`: what this backend promises, and what it does not;
//! 2. `log`: the events of a stream, and how they are found;
//! 3. `group`: what a group has done; [`Progress`](rheo_core::progress::Progress)
//!    does the thinking;
//! 4. `store`: streams, groups, and how a request finds them;
//! 5. `backend`: the trait, method by method, each hardly more than a lock and
//!    a call.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
//! use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
//! use toy_backend::Toy;
//!
//! let rheo = Rheo::builder(Toy::new()).build().await?;
//! rheo.create_stream("orders", 1).await?;
//! rheo.create_group("orders", "billing", GroupOptions::default()).await?;
//! rheo.append("orders", NewEvent::new("order.placed", 7)).await?;
//!
//! let deliveries = rheo.fetch("orders", "billing", 10, FetchOptions::default()).await?;
//! rheo.ack(&deliveries[0]).await?;
//! assert_eq!(rheo.lag("orders", "billing").await?.total(), 0);
//! # Ok(()) }
//! ```

mod backend;
mod capabilities;
mod group;
mod log;
mod store;

pub use backend::Toy;

/// The guide's code is compiled and run with this crate's tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-backend.md")]
struct Guide;

//! Rheo on Redis and Valkey: durable consumer groups on Redis Streams, on a
//! single server, a replica set behind one address, or a cluster.
//!
//! Each partition is one stream key, and an event's entry id is its sequence:
//! `0-17` is event 17. Each group is a consumer group of the server, whose
//! pending list shows what is leased or waits. Whatever changes more than one
//! thing is one function inside the server.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> rheo_core::Result<()> {
//! use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
//! use rheo_redis::{Index, Options, Redis};
//!
//! let options = Options::default().prefix("shop:").index([Index::Key]);
//! let redis = Redis::connect_with("redis://localhost", options).await?;
//! let rheo = Rheo::builder(redis).build().await?;
//! rheo.create_stream("orders", 4).await?;
//! rheo.create_group("orders", "billing", GroupOptions::default()).await?;
//!
//! rheo.append("orders", NewEvent::new("order.placed", 7)).await?;
//! for delivery in rheo.fetch("orders", "billing", 10, FetchOptions::default()).await? {
//!     assert_eq!(delivery.lease.receipt().to_string(), "0-1");
//!     rheo.ack(&delivery).await?;
//! }
//! # Ok(()) }
//! ```
//!
//! The functions are loaded by connecting, and again where a server has lost
//! them. In a cluster each partition is a slot, and a batch is whole in each
//! partition by itself; on a single server it is whole altogether.

mod append;
mod backend;
mod call;
mod claim;
mod codec;
mod config;
mod connect;
mod error;
mod functions;
mod group;
mod inspect;
mod keys;
mod link;
mod read;
mod replay;
mod search;
mod seek;
mod settle;
mod store;
mod stream;
mod wake;

use std::sync::Arc;

pub use config::{Index, Options};

pub(crate) use store::Store;

/// A log and its groups on Redis: the backend to build a
/// [`Rheo`](rheo_core::Rheo) on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {
    store: Arc<Store>,
}

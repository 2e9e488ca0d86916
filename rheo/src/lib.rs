//! Durable consumer groups over the stores you already run.
//!
//! Rheo is an append-only, searchable, replayable event log with consumer
//! groups on top: leases with fencing tokens, ack, retry, reject, dead
//! letters, partitions with a contiguous frontier, lag, and replay without
//! copying. Delivery is at least once, and fenced. It is embedded: add the
//! crate, pick a backend by feature or URL, write one handler, and swap the
//! backend later without touching the handler.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo::Result<()> {
//! use rheo::{FetchOptions, GroupOptions, NewEvent};
//! use serde_json::json;
//!
//! let rheo = rheo::connect("memory:").await?;
//! rheo.create_stream("orders", 4).await?;
//! rheo.create_group("orders", "billing", GroupOptions::default()).await?;
//!
//! let order = NewEvent::new("order.placed", json!({"id": 7, "total": 12.5})).key("customer-7");
//! rheo.append("orders", order).await?;
//!
//! for delivery in rheo.fetch("orders", "billing", 10, FetchOptions::default()).await? {
//!     println!("{}", delivery.event.payload());
//!     rheo.ack(&delivery).await?;
//! }
//! assert_eq!(rheo.lag("orders", "billing").await?.total(), 0);
//! # Ok(()) }
//! ```
//!
//! # Features
//!
//! Each backend is a feature, and has URLs of its own; [`BACKENDS`] lists them.
//!
//! | feature | URL | what it is |
//! |---|---|---|
//! | `memory` (default) | `memory:` | in this process, gone with it |
//! | `sqlite` | `sqlite:rheo.db` | a file, which processes of one machine can share |
//! | `postgres` | `postgres://user@host/database` | PostgreSQL, from version 13 |
//! | `mysql` | `mysql://user@host/database` | MySQL from 8.0, MariaDB from 10.6 |
//! | `redis` | `redis://host`, `redis+cluster://host` | Redis from 7.0 or Valkey, one server or a cluster |
//! | `mongo` | `mongodb://host/database` | MongoDB from 5.0, a replica set of one member or more |

mod backends;

pub use backends::{BACKENDS, BackendInfo, open};
pub use rheo_core::*;

/// The in-memory backend, for instances that several clients share.
#[cfg(feature = "memory")]
pub use rheo_ets as memory;

/// The SQL backends, for instances on a pool of yours, and for appending and
/// settling within your own transactions.
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
pub use rheo_sql as sql;

/// The MongoDB backend, for instances on a client of yours, and for appending
/// and settling within your own transactions.
#[cfg(feature = "mongo")]
pub use rheo_mongo as mongo;

/// The Redis backend, for instances with options of yours.
#[cfg(feature = "redis")]
pub use rheo_redis as redis;

/// Connects to the store that a URL names, and starts an instance with
/// default settings.
///
/// # Errors
/// Those of [`open`] and of [`Builder::build`].
pub async fn connect(url: &str) -> Result<Rheo> {
    builder(url).await?.build().await
}

/// Connects to the store that a URL names, and begins an instance to be set up.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo::Result<()> {
/// use std::time::Duration;
///
/// let rheo = rheo::builder("memory:").await?.lease(Duration::from_secs(5)).build().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of [`open`].
pub async fn builder(url: &str) -> Result<Builder> {
    Ok(Rheo::builder(open(url).await?))
}

/// The code in the documents of the repository is compiled and run.
#[cfg(all(doctest, feature = "memory"))]
mod documents {
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../README.md")]
    struct Readme;

    #[doc = include_str!("../../docs/semantics.md")]
    struct Semantics;

    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../docs/sql.md")]
    struct Sql;

    #[cfg(feature = "mongo")]
    #[doc = include_str!("../../docs/mongo.md")]
    struct Mongo;

    #[cfg(feature = "redis")]
    #[doc = include_str!("../../docs/redis.md")]
    struct Redis;
}

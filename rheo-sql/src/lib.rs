//! Rheo on SQLite, PostgreSQL and MySQL/MariaDB: durable consumer groups in the
//! database that is there already.
//!
//! Each database is a feature: `sqlite`, `postgres`, `mysql`. A log is found by
//! its URL, or lives on a pool that the host owns:
//!
//! ```
//! # #[cfg(feature = "sqlite")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> rheo_core::Result<()> {
//! use rheo_core::{NewEvent, Rheo};
//! use rheo_sql::{InTransaction, Options, Sql, sqlx};
//!
//! let one = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
//! let pool = one.connect("sqlite::memory:").await.unwrap();
//! let rheo = Rheo::builder(Sql::on_pool(pool.clone(), Options::default()).await?).build().await?;
//! rheo.create_stream("orders", 1).await?;
//! # rheo.append("orders", NewEvent::new("order.placed", 6)).await?;
//!
//! // The event is there if and only if the transaction commits.
//! let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
//! let event = NewEvent::new("order.placed", 7);
//! let event = rheo.append_in(&mut transaction, "orders", event).await?;
//! transaction.commit().await.unwrap();
//! assert_eq!(rheo.read("orders", 0, event.sequence() - 1, 1).await?, [event]);
//! # Ok(()) }
//! # #[cfg(not(feature = "sqlite"))]
//! # fn main() {}
//! ```
//!
//! The tables are Rheo's own, made by `prepare` or from the SQL that
//! [`schema_sql`] prints; the view `rheo_log` shows the log to people.

#![cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]

mod append;
mod backend;
mod claim;
mod codec;
mod config;
mod connect;
mod db;
mod dialect;
mod error;
mod group;
#[cfg(feature = "postgres")]
mod hot;
mod inspect;
mod migrate;
mod operation;
mod pool;
mod read;
mod replay;
mod search;
mod seek;
mod settle;
mod state;
mod statements;
mod store;
mod stream;
mod transaction;
mod trouble;
mod wake;

use std::sync::Arc;

pub use config::Options;
pub use connect::HostPool;
pub use db::Conn;
pub use dialect::Dialect;
pub use migrate::schema_sql;
pub use transaction::InTransaction;

/// The driver, in the version whose pools and transactions are meant here.
pub use sqlx;

pub(crate) use store::Store;

/// A log and its groups in a SQL database: the backend to build a
/// [`Rheo`](rheo_core::Rheo) on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sql {
    store: Arc<Store>,
}

//! Rheo on SQLite, PostgreSQL and MySQL/MariaDB.

mod append;
mod backend;
mod bounds;
#[cfg(feature = "postgres")]
mod candidates;
mod claim;
mod codec;
mod config;
mod connect;
mod content;
mod db;
mod dialect;
mod error;
mod group;
#[cfg(feature = "postgres")]
mod hot;
mod inspect;
mod migrate;
#[cfg(feature = "mysql")]
mod open_mysql;
#[cfg(feature = "postgres")]
mod open_postgres;
#[cfg(feature = "sqlite")]
mod open_sqlite;
mod operation;
mod pool;
mod pushdown;
mod read;
mod replay;
mod search;
mod seek;
mod settle;
mod spans;
mod state;
mod statements;
mod store;
mod stream;
mod transaction;
mod trouble;
mod version;
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

/// A log and its groups in a SQL database.
#[derive(Clone, Debug)]
pub struct Sql {
    store: Arc<Store>,
}

//! SQLite by sqlx: one connection, as durable as Rheo's.

use std::sync::Arc;
use std::time::Duration;

use rheo::sql::sqlx::ConnectOptions;
use rheo::sql::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use tokio::sync::Mutex;

use super::sql::{Connection, Dialect, Log};
use super::told;
use crate::failure::Failure;

/// How long it waits for the writer before it.
const PATIENCE: Duration = Duration::from_secs(30);

const DIALECT: Dialect = Dialect {
    create: "CREATE TABLE LOG (part INTEGER NOT NULL, sequence INTEGER NOT NULL, \
        id BLOB NOT NULL, at INTEGER NOT NULL, event_type TEXT NOT NULL, event_key TEXT NOT NULL, \
        metadata TEXT NOT NULL, payload TEXT NOT NULL, PRIMARY KEY (part, sequence)) WITHOUT ROWID;
        CREATE INDEX LOG_type ON LOG (event_type, part, sequence);
        CREATE INDEX LOG_key ON LOG (event_key, part, sequence);
        CREATE INDEX LOG_at ON LOG (part, at, sequence);
        CREATE TABLE LOG_done (part INTEGER PRIMARY KEY, sequence INTEGER NOT NULL)",
    mark: |_, _| "?".into(),
    payload: "payload",
    bytes: Some(
        "SELECT (page_count - freelist_count) * page_size \
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    ),
};

pub(super) async fn open(url: &str, log: &str) -> Result<Log, Failure> {
    let options: SqliteConnectOptions = url.parse().map_err(told)?;
    let options = options
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(PATIENCE);
    let connected = options.connect().await.map_err(told)?;
    let connection = Connection::Sqlite(Arc::new(Mutex::new(connected)));
    Ok(Log::new(&DIALECT, connection, (url, log)))
}

//! Opening a SQLite file, or a database in memory.

use std::path::Path;
use std::time::Duration;

use rheo_core::Result;
use rheo_core::adapter::config;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};
use tokio::time::Instant;

use crate::Dialect;
use crate::config::{Options, take_options};
use crate::connect::{Opened, cannot_connect, unreadable};
use crate::error::Failure;
use crate::pool::{Pool, SqlitePools};

/// How long SQLite itself waits for a lock before it says that it is busy.
const BUSY: Duration = Duration::from_secs(5);

pub(crate) async fn open(url: &str, options: Options) -> Result<Opened> {
    let (url, options) = take_options(Dialect::Sqlite, url, options, &["mode", "vfs"])?;
    let example = "sqlite:path or sqlite::memory:";
    let connect: SqliteConnectOptions = url.parse().map_err(|error| unreadable(example, error))?;
    let (address, query) = url.split_once('?').unwrap_or((&url, ""));
    let connect = connect
        .busy_timeout(BUSY)
        .synchronous(SqliteSynchronous::Full)
        .statement_cache_capacity(crate::connect::STATEMENTS)
        .shared_cache(false);
    if address.ends_with(":memory:") {
        let pool = one(&options).connect_lazy_with(connect);
        let pools = SqlitePools::new(pool.clone(), pool);
        return Ok(Opened { pool: Pool::Sqlite(pools), options, place: "SQLite".into() });
    }
    if query.contains("mode=") && !query.contains("mode=rw") {
        return Err(config("Rheo writes: the modes of a SQLite file are rw and rwc"));
    }
    let connect =
        connect.create_if_missing(!query.contains("mode=rw") || query.contains("mode=rwc"));
    let place = format!("SQLite file {:?}", connect.get_filename());
    check_path(connect.get_filename())?;
    use_wal(&connect, options.connect_timeout)
        .await
        .map_err(|failure| cannot_connect(&place, failure))?;
    let readers = SqlitePoolOptions::new()
        .max_connections(options.max_connections)
        .acquire_timeout(options.connect_timeout)
        .test_before_acquire(false)
        .connect_lazy_with(connect.clone());
    let writer = one(&options).connect_lazy_with(connect);
    Ok(Opened { pool: Pool::Sqlite(SqlitePools::new(readers, writer)), options, place })
}

/// One connection for good: a database in memory is gone with it, and a
/// writer's keeps the file's pages at hand.
fn one(options: &Options) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(options.statement_timeout)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
}

fn check_path(path: &Path) -> Result<()> {
    if path.as_os_str().is_empty() {
        return Err(config("the URL names no file: sqlite:path or sqlite::memory: is wanted"));
    }
    if path.is_dir() {
        return Err(config(format!("{path:?} is a directory: a SQLite file is wanted")));
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !parent.is_dir() => {
            Err(config(format!("the directory {parent:?} of the SQLite file does not exist")))
        }
        _ => Ok(()),
    }
}

/// Readers and the writer do not wait for each other in a write-ahead log.
/// The file keeps the mode. Whoever turns it on needs the file to himself,
/// and SQLite does not wait for that by itself.
async fn use_wal(connect: &SqliteConnectOptions, patience: Duration) -> Result<(), Failure> {
    let deadline = Instant::now() + patience;
    loop {
        let failure = match turn_on_wal(connect).await {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(config(format!(
                    "SQLite cannot keep a write-ahead log there (it stays in mode {mode})"
                ))
                .into());
            }
            Err(error) => Failure::from(error),
        };
        if !failure.is_conflict() || Instant::now() >= deadline {
            return Err(failure);
        }
        tokio::time::sleep(Duration::from_micros(fastrand::u64(1000..20_000))).await;
    }
}

async fn turn_on_wal(connect: &SqliteConnectOptions) -> Result<String, sqlx::Error> {
    let mut conn = connect.connect().await?;
    let mode = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut conn).await?;
    conn.close().await?;
    Ok(mode)
}

//! How a [`Sql`] comes about: from a URL, or on a pool that the host owns.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
pub(crate) mod version;

use std::sync::{Arc, Mutex};
#[cfg(any(feature = "postgres", feature = "mysql"))]
use std::time::Duration;

use rheo_core::adapter::{Bells, config};
use rheo_core::{Effect, Error, ErrorKind, Result};
use tokio::time::timeout;

use crate::config::Options;
use crate::connect::version::{ServerFacts, read_facts};
use crate::error::Failure;
use crate::pool::{Pool, Use};
use crate::statements::Statements;
use crate::trouble::{cause, trouble};
use crate::wake::Waking;
use crate::{Sql, Store};

/// How many prepared statements a connection keeps: all of Rheo's and the
/// usual forms of its queries.
pub(crate) const STATEMENTS: usize = 256;

/// How long a connection may lie idle before it is asked whether it still lives.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const IDLE: Duration = Duration::from_secs(1);

/// A connection pool of the host's, which Rheo borrows and never closes.
#[derive(Clone, Debug)]
pub struct HostPool(Pool);

#[cfg(feature = "sqlite")]
impl From<sqlx::SqlitePool> for HostPool {
    fn from(pool: sqlx::SqlitePool) -> Self {
        Self(Pool::Sqlite(crate::pool::SqlitePools::new(pool.clone(), pool)))
    }
}

#[cfg(feature = "postgres")]
impl From<sqlx::PgPool> for HostPool {
    fn from(pool: sqlx::PgPool) -> Self {
        Self(Pool::Postgres(pool))
    }
}

#[cfg(feature = "mysql")]
impl From<sqlx::MySqlPool> for HostPool {
    fn from(pool: sqlx::MySqlPool) -> Self {
        Self(Pool::MySql(pool))
    }
}

impl Sql {
    /// Connects to the database that a URL names: `sqlite:path`,
    /// `sqlite::memory:`, `postgres://user:password@host/database` or
    /// `mysql://user:password@host/database`. [`Options`] may stand after a
    /// question mark.
    ///
    /// # Errors
    /// `Config` where the URL, an option, the login or the server is not what
    /// it must be; `Unavailable` where no server answers.
    pub async fn connect(url: &str) -> Result<Arc<Self>> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects to the database that a URL names, with these options; those
    /// in the URL prevail.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: Options) -> Result<Arc<Self>> {
        let opened = match url.split(':').next().unwrap_or_default() {
            #[cfg(feature = "sqlite")]
            "sqlite" => crate::connect::sqlite::open(url, options).await?,
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => crate::connect::postgres::open(url, options).await?,
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => crate::connect::mysql::open(url, options).await?,
            scheme => return Err(unknown_scheme(scheme)),
        };
        start(opened, true).await
    }

    /// Works on a pool that the host owns, which is never closed here. The
    /// host's transactions and Rheo's can then be one.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn on_pool(pool: impl Into<HostPool>, options: Options) -> Result<Arc<Self>> {
        let HostPool(pool) = pool.into();
        let place = format!("{:?}", pool.dialect());
        let options = options.checked(pool.dialect())?;
        start(Opened { pool, options, place }, false).await
    }

    /// Closes the connections, once what runs on them has ended. Does nothing
    /// where the host owns the pool. Later operations fail as `Unavailable`.
    pub async fn close(&self) {
        if self.store.owns_pool {
            self.store.pool.close().await;
        }
    }
}

/// A pool, not yet used.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) options: Options,
    /// Which server it leads to, for people.
    pub(crate) place: String,
}

async fn start(opened: Opened, owns_pool: bool) -> Result<Arc<Sql>> {
    let Opened { pool, options, place } = opened;
    let reading = timeout(options.connect_timeout, look_at(&pool));
    let facts = reading.await.unwrap_or(Err(Failure::Late));
    let mut facts = facts.map_err(|failure| cannot_connect(&place, failure))?;
    facts.lone_statements &= !options.transaction_pooling;
    let statements = Statements::new(pool.dialect(), &options);
    let waking = waking(&pool, &options, &facts);
    let turns = Mutex::default();
    let store = Arc::new(Store { pool, owns_pool, statements, options, facts, waking, turns });
    Ok(Arc::new(Sql { store }))
}

/// Instances on one SQLite file wake each other; PostgreSQL tells other processes.
fn waking(pool: &Pool, options: &Options, facts: &ServerFacts) -> Waking {
    let bells = match &facts.file {
        Some(file) if options.wake => Bells::shared(&file.to_string_lossy()),
        _ => Arc::default(),
    };
    let waking = Waking::new(bells, options.poll);
    match pool {
        #[cfg(feature = "postgres")]
        Pool::Postgres(pool) if options.wake => waking.with_channel(pool, &options.names.prefix),
        _ => waking,
    }
}

async fn look_at(pool: &Pool) -> Result<ServerFacts, Failure> {
    let mut taken = pool.take(Use::Reading).await?;
    let facts = read_facts(&mut taken.conn()).await;
    if let Err(failure) = &facts {
        taken.recover(failure.is_lost()).await;
    }
    facts
}

/// Opens a pool on a server that answers.
#[cfg(any(feature = "postgres", feature = "mysql"))]
pub(crate) async fn open_pool<DB: sqlx::Database>(
    connect: <DB::Connection as sqlx::Connection>::Options,
    options: &Options,
    place: &str,
) -> Result<sqlx::Pool<DB>> {
    use sqlx::{ConnectOptions, Connection};

    // The pool would try again and again, and could not say why it failed.
    match timeout(options.connect_timeout, connect.connect()).await {
        Ok(Ok(conn)) => drop(conn.close().await),
        Ok(Err(error)) => return Err(cannot_connect(place, error.into())),
        Err(_) => return Err(cannot_connect(place, Failure::Late)),
    }
    let pool = sqlx::pool::PoolOptions::new()
        .max_connections(options.max_connections)
        .acquire_timeout(options.connect_timeout)
        .test_before_acquire(false)
        .before_acquire(|conn: &mut DB::Connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE {
                    conn.ping().await?;
                }
                Ok(true)
            })
        });
    Ok(pool.connect_lazy_with(connect))
}

/// Why there is no connection to `place`.
pub(crate) fn cannot_connect(place: &str, failure: Failure) -> Error {
    match failure {
        Failure::Driver(error) => {
            let (kind, sentence) = trouble(&error).explained();
            let context = format!("{place}: {sentence}");
            Error::new(kind, "connect", context).with_source(cause(error))
        }
        Failure::Late => {
            Error::new(ErrorKind::Unavailable, "connect", format!("{place}: no answer in time"))
        }
        failure => failure.into_error("connect", Effect::NotApplied),
    }
}

/// The driver cannot read the URL. Neither can this say what in it is wrong
/// without showing what may be secret.
pub(crate) fn unreadable(example: &str, error: sqlx::Error) -> Error {
    config(format!("the URL is not like {example}")).with_source(cause(error))
}

fn unknown_scheme(scheme: &str) -> Error {
    let known = [
        #[cfg(feature = "sqlite")]
        "sqlite:path",
        #[cfg(feature = "postgres")]
        "postgres://…",
        #[cfg(feature = "mysql")]
        "mysql://…",
    ];
    config(format!("{scheme:?} is no scheme of a database here: there are {}", known.join(", ")))
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    async fn told(url: &str) -> String {
        let error = Sql::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.context().into()
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_url_is_told() {
        assert!(told("sqlite:/nowhere/a.db").await.contains("directory \"/nowhere\""));
        let directory = std::env::temp_dir();
        assert!(told(&format!("sqlite:{}", directory.display())).await.contains("is a directory"));
        assert!(told("sqlite:").await.contains("names no file"));
        assert!(told("sqlite:a.db?mode=ro").await.contains("rw and rwc"));
        assert!(told("sqlite::memory:?schema=a").await.contains("PostgreSQL alone"));
        assert!(told("cassette:a").await.contains("\"cassette\" is no scheme"));
    }

    #[tokio::test]
    async fn a_pool_of_the_host_is_used_and_left_open() {
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let sql = Sql::on_pool(pool.clone(), Options::default()).await.unwrap();
        sql.store.prepare().await.unwrap();
        sql.close().await;
        let tables = sqlx::query_scalar("SELECT COUNT(*) FROM rheo_streams");
        let count: i64 = tables.fetch_one(&pool).await.unwrap();
        assert_eq!(count, 0);
    }
}

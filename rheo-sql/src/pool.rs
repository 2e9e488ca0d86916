//! [`Pool`]: where connections come from, and the transactions on them.

use std::fmt;
#[cfg(feature = "sqlite")]
use std::sync::Arc;

use rheo_core::Result;
use sqlx::pool::PoolConnection;
use sqlx::{Connection, Transaction};
#[cfg(feature = "sqlite")]
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::Dialect;
use crate::db::Conn;
use crate::error::Failure;

/// What a connection is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Statements that change something, in one transaction.
    Transaction,
    /// One statement that may change something.
    Statement,
    /// Statements that change nothing.
    Reading,
}

/// The connections to one database.
#[derive(Clone)]
pub(crate) enum Pool {
    #[cfg(feature = "sqlite")]
    Sqlite(SqlitePools),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::PgPool),
    #[cfg(feature = "mysql")]
    MySql(sqlx::MySqlPool),
}

/// SQLite has one writer at a time: those of this process stand in line, which
/// is fair, and cheaper than trying again and again.
#[cfg(feature = "sqlite")]
#[derive(Clone)]
pub(crate) struct SqlitePools {
    readers: sqlx::SqlitePool,
    writer: sqlx::SqlitePool,
    line: Arc<Mutex<()>>,
}

#[cfg(feature = "sqlite")]
impl SqlitePools {
    pub(crate) fn new(readers: sqlx::SqlitePool, writer: sqlx::SqlitePool) -> Self {
        Self { readers, writer, line: Arc::default() }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.dialect()).finish()
    }
}

impl Pool {
    /// Which database it connects to.
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => Dialect::Sqlite,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Dialect::Postgres,
            #[cfg(feature = "mysql")]
            Self::MySql(_) => Dialect::MySql,
        }
    }

    /// Takes a connection out of it.
    pub(crate) async fn take(
        &self,
        #[cfg_attr(
            not(feature = "sqlite"),
            expect(unused_variables, reason = "elsewhere all connections are alike")
        )]
        usage: Use,
    ) -> Result<Taken, Failure> {
        Ok(match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(pools) if usage == Use::Reading => {
                Taken::Sqlite(pools.readers.acquire().await?, None)
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite(pools) => {
                let turn = Arc::clone(&pools.line).lock_owned().await;
                Taken::Sqlite(pools.writer.acquire().await?, Some(turn))
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(pool) => Taken::Postgres(pool.acquire().await?),
            #[cfg(feature = "mysql")]
            Self::MySql(pool) => Taken::MySql(pool.acquire().await?),
        })
    }

    /// Closes its connections, once they are back.
    pub(crate) async fn close(&self) {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(pools) => {
                pools.readers.close().await;
                pools.writer.close().await;
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(pool) => pool.close().await,
            #[cfg(feature = "mysql")]
            Self::MySql(pool) => pool.close().await,
        }
    }
}

/// A connection out of the pool; dropped, it goes back there.
pub(crate) enum Taken {
    #[cfg(feature = "sqlite")]
    Sqlite(PoolConnection<sqlx::Sqlite>, Option<OwnedMutexGuard<()>>),
    #[cfg(feature = "postgres")]
    Postgres(PoolConnection<sqlx::Postgres>),
    #[cfg(feature = "mysql")]
    MySql(PoolConnection<sqlx::MySql>),
}

impl Taken {
    /// The connection, outside any transaction.
    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn, _) => Conn::Sqlite(conn),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => Conn::Postgres(conn),
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => Conn::MySql(conn),
        }
    }

    /// Begins a transaction that sees, in each statement, what was committed
    /// before, whatever the session's defaults are.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>, Failure> {
        Ok(match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn, _) => Tx::Sqlite(conn.begin_with("BEGIN IMMEDIATE").await?),
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => {
                const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
                Tx::Postgres(conn.begin_with(BEGIN).await?)
            }
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => {
                const BEGIN: &str =
                    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION READ WRITE";
                Tx::MySql(conn.begin_with(BEGIN).await?)
            }
        })
    }

    /// Leaves nothing behind of a failed operation: a connection that is `lost`,
    /// broken or without an answer, is closed, as the pool would wait for it.
    pub(crate) async fn recover(
        self,
        #[cfg_attr(
            not(any(feature = "postgres", feature = "mysql")),
            expect(unused_variables, reason = "there is no server to lose")
        )]
        lost: bool,
    ) {
        match self {
            // Where SQLite ended a transaction by itself, as when the disk is full, the driver
            // does not know, and would take the next for a nested one.
            #[cfg(feature = "sqlite")]
            Self::Sqlite(mut conn, _turn) => {
                let unfit = conn.ping().await.is_err() || conn.is_in_transaction();
                if unfit {
                    drop(conn.detach());
                }
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) if lost => drop(conn.detach()),
            #[cfg(feature = "mysql")]
            Self::MySql(conn) if lost => drop(conn.detach()),
            #[cfg(any(feature = "postgres", feature = "mysql"))]
            _ => {}
        }
    }
}

/// A transaction; dropped, it is rolled back.
pub(crate) enum Tx<'c> {
    #[cfg(feature = "sqlite")]
    Sqlite(Transaction<'c, sqlx::Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Transaction<'c, sqlx::Postgres>),
    #[cfg(feature = "mysql")]
    MySql(Transaction<'c, sqlx::MySql>),
}

impl Tx<'_> {
    /// The connection, within the transaction.
    pub(crate) fn conn(&mut self) -> Conn<'_> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(tx) => Conn::Sqlite(tx),
            #[cfg(feature = "postgres")]
            Self::Postgres(tx) => Conn::Postgres(tx),
            #[cfg(feature = "mysql")]
            Self::MySql(tx) => Conn::MySql(tx),
        }
    }

    pub(crate) async fn commit(self) -> Result<(), Failure> {
        let committed = match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(tx) => tx.commit().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(tx) => tx.commit().await,
            #[cfg(feature = "mysql")]
            Self::MySql(tx) => tx.commit().await,
        };
        Ok(committed?)
    }

    /// Undoes it, unless that is done already.
    pub(crate) async fn roll_back(self) {
        let _ = match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(mut tx) => {
                // Fails, unless SQLite ended the transaction by itself: then there is one to end.
                let _ = sqlx::query("BEGIN").execute(&mut *tx).await;
                tx.rollback().await
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(tx) => tx.rollback().await,
            #[cfg(feature = "mysql")]
            Self::MySql(tx) => tx.rollback().await,
        };
    }
}

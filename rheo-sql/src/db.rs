//! The thin layer over the drivers: [`Conn`], [`Arg`] and [`Row`], so that all
//! else is written once.

use std::fmt;

use rheo_core::Result;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::Dialect;
use crate::error::{Failure, corrupt};
use crate::statements::Statement;

/// A connection of any of the databases, borrowed: one that is used as it is,
/// or within the caller's transaction.
pub enum Conn<'c> {
    /// SQLite's.
    #[cfg(feature = "sqlite")]
    Sqlite(&'c mut sqlx::SqliteConnection),
    /// PostgreSQL's.
    #[cfg(feature = "postgres")]
    Postgres(&'c mut sqlx::PgConnection),
    /// MySQL's or MariaDB's.
    #[cfg(feature = "mysql")]
    MySql(&'c mut sqlx::MySqlConnection),
}

impl fmt::Debug for Conn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Conn").field(&self.dialect()).finish()
    }
}

/// An argument of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Int(i64),
    OptInt(Option<i64>),
    Text(String),
    OptText(Option<String>),
    Uuid(Uuid),
    #[cfg(feature = "postgres")]
    Ints(Vec<i64>),
    #[cfg(feature = "postgres")]
    OptInts(Option<Vec<i64>>),
    #[cfg(feature = "postgres")]
    Texts(Vec<String>),
    #[cfg(feature = "postgres")]
    OptTexts(Vec<Option<String>>),
    #[cfg(feature = "postgres")]
    Uuids(Vec<Uuid>),
}

impl From<i64> for Arg {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl From<u32> for Arg {
    fn from(int: u32) -> Self {
        Self::Int(int.into())
    }
}

/// Sequences beyond what the database counts to do not exist.
impl From<u64> for Arg {
    fn from(int: u64) -> Self {
        Self::Int(i64::try_from(int).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Arg {
    fn from(int: usize) -> Self {
        Self::from(int as u64)
    }
}

impl From<&str> for Arg {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Arg {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Makes the arguments of a statement.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Arg::from($value)),*] };
}
pub(crate) use args;

/// A row that a statement returned.
pub(crate) enum Row {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlx::sqlite::SqliteRow),
    #[cfg(feature = "postgres")]
    Postgres(sqlx::postgres::PgRow),
    #[cfg(feature = "mysql")]
    MySql(sqlx::mysql::MySqlRow),
}

/// Declares how an argument is bound to a driver's query.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
macro_rules! bind {
    ($name:ident, $database:ty, $arguments:ty) => {
        fn $name(
            query: sqlx::query::Query<'_, $database, $arguments>,
            arg: Arg,
        ) -> sqlx::query::Query<'_, $database, $arguments> {
            match arg {
                Arg::Int(value) => query.bind(value),
                Arg::OptInt(value) => query.bind(value),
                Arg::Text(value) => query.bind(value),
                Arg::OptText(value) => query.bind(value),
                Arg::Uuid(value) => query.bind(value),
                // Only PostgreSQL's own statements are given arrays.
                #[cfg(feature = "postgres")]
                _ => query,
            }
        }
    };
}

#[cfg(feature = "sqlite")]
bind!(bind_sqlite, sqlx::Sqlite, sqlx::sqlite::SqliteArguments);
#[cfg(feature = "mysql")]
bind!(bind_mysql, sqlx::MySql, sqlx::mysql::MySqlArguments);

#[cfg(feature = "postgres")]
type PgQuery<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

#[cfg(feature = "postgres")]
fn bind_postgres(query: PgQuery<'_>, arg: Arg) -> PgQuery<'_> {
    match arg {
        Arg::Int(value) => query.bind(value),
        Arg::OptInt(value) => query.bind(value),
        Arg::Text(value) => query.bind(value),
        Arg::OptText(value) => query.bind(value),
        Arg::Uuid(value) => query.bind(value),
        Arg::Ints(values) => query.bind(values),
        Arg::OptInts(values) => query.bind(values),
        Arg::Texts(values) => query.bind(values),
        Arg::OptTexts(values) => query.bind(values),
        Arg::Uuids(values) => query.bind(values),
    }
}

/// Makes a driver's query of a statement and its arguments.
macro_rules! query {
    ($statement:expr, $args:expr, $bind:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($statement.text.clone()));
        query = query.persistent($statement.kept);
        match &$statement.order {
            None => {
                for arg in $args {
                    query = $bind(query, arg);
                }
            }
            Some(order) => {
                for &index in order.iter() {
                    query = $bind(query, $args[index].clone());
                }
            }
        }
        query
    }};
}

impl Conn<'_> {
    /// Which database it speaks to.
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

    /// Runs a statement and returns its rows.
    pub(crate) async fn rows(
        &mut self,
        statement: &Statement,
        args: Vec<Arg>,
    ) -> Result<Vec<Row>, Failure> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => {
                let query = query!(statement, args, bind_sqlite);
                let rows = query.fetch_all(&mut **conn).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => {
                let query = query!(statement, args, bind_postgres);
                let rows = query.fetch_all(&mut **conn).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => {
                let query = query!(statement, args, bind_mysql);
                let rows = query.fetch_all(&mut **conn).await?;
                Ok(rows.into_iter().map(Row::MySql).collect())
            }
        }
    }

    /// Runs a statement and returns its first row.
    pub(crate) async fn row(
        &mut self,
        statement: &Statement,
        args: Vec<Arg>,
    ) -> Result<Option<Row>, Failure> {
        Ok(self.rows(statement, args).await?.into_iter().next())
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(
        &mut self,
        statement: &Statement,
        args: Vec<Arg>,
    ) -> Result<u64, Failure> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(conn) => {
                let query = query!(statement, args, bind_sqlite);
                Ok(query.execute(&mut **conn).await?.rows_affected())
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(conn) => {
                let query = query!(statement, args, bind_postgres);
                Ok(query.execute(&mut **conn).await?.rows_affected())
            }
            #[cfg(feature = "mysql")]
            Self::MySql(conn) => {
                let query = query!(statement, args, bind_mysql);
                Ok(query.execute(&mut **conn).await?.rows_affected())
            }
        }
    }
}

/// Reads a column of any driver's row.
macro_rules! column {
    ($row:expr, $index:expr, $type:ty) => {
        match $row {
            #[cfg(feature = "sqlite")]
            Row::Sqlite(row) => row.try_get_unchecked::<$type, _>($index),
            #[cfg(feature = "postgres")]
            Row::Postgres(row) => row.try_get_unchecked::<$type, _>($index),
            #[cfg(feature = "mysql")]
            Row::MySql(row) => row.try_get_unchecked::<$type, _>($index),
        }
    };
}

/// Columns by position, from 0. What is not what Rheo wrote is `Corrupt`.
impl Row {
    pub(crate) fn int(&self, index: usize) -> Result<i64, Failure> {
        column!(self, index, i64).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn opt_int(&self, index: usize) -> Result<Option<i64>, Failure> {
        column!(self, index, Option<i64>).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn u64(&self, index: usize) -> Result<u64, Failure> {
        let int = self.int(index)?;
        u64::try_from(int).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn u32(&self, index: usize) -> Result<u32, Failure> {
        let int = self.int(index)?;
        u32::try_from(int).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn uuid(&self, index: usize) -> Result<Uuid, Failure> {
        column!(self, index, Uuid).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn opt_uuid(&self, index: usize) -> Result<Option<Uuid>, Failure> {
        column!(self, index, Option<Uuid>).map_err(|error| corrupt(index, error))
    }

    pub(crate) fn text(&self, index: usize) -> Result<String, Failure> {
        self.opt_text(index)?.ok_or_else(|| corrupt(index, "it is null"))
    }

    /// MySQL's names are byte strings.
    pub(crate) fn opt_text(&self, index: usize) -> Result<Option<String>, Failure> {
        let bytes = column!(self, index, Option<Vec<u8>>).map_err(|error| corrupt(index, error))?;
        bytes
            .map(|bytes| String::from_utf8(bytes).map_err(|error| corrupt(index, error)))
            .transpose()
    }
}

/// Makes connections of a driver's connections and transactions.
macro_rules! conn_from {
    ($feature:literal, $database:ty, $connection:ty, $variant:ident) => {
        #[cfg(feature = $feature)]
        impl<'c> From<&'c mut $connection> for Conn<'c> {
            fn from(connection: &'c mut $connection) -> Self {
                Self::$variant(connection)
            }
        }

        #[cfg(feature = $feature)]
        impl<'c> From<&'c mut sqlx::Transaction<'_, $database>> for Conn<'c> {
            fn from(transaction: &'c mut sqlx::Transaction<'_, $database>) -> Self {
                Self::$variant(transaction)
            }
        }
    };
}

conn_from!("sqlite", sqlx::Sqlite, sqlx::SqliteConnection, Sqlite);
conn_from!("postgres", sqlx::Postgres, sqlx::PgConnection, Postgres);
conn_from!("mysql", sqlx::MySql, sqlx::MySqlConnection, MySql);

//! The tables: how they are made, by Rheo or by the host, and brought up to date.

use std::sync::Arc;

use rheo_core::{Error, ErrorKind, Result};
use sqlx::AssertSqlSafe;

use crate::config::Options;
use crate::db::{Conn, args};
use crate::error::Failure;
use crate::operation::Operation;
use crate::statements::Statements;
use crate::{Dialect, Store};

/// The SQL that makes the tables, for a host that runs it itself, with the
/// table prefix and the schema of `options`. [`prepare`] then finds nothing to
/// do, and needs no right to create anything.
///
/// [`prepare`]: rheo_core::backend::Backend::prepare
///
/// # Errors
/// `Config` where the prefix or the schema's name is not allowed.
pub fn schema_sql(dialect: Dialect, options: Options) -> Result<String> {
    let options = options.checked(dialect)?;
    let mut sql = String::new();
    if let Some(schema) = &options.names.schema {
        sql = format!("CREATE SCHEMA IF NOT EXISTS {schema};\n\n");
    }
    let statements = Statements::new(dialect, &options);
    sql.push_str(&format!("{};\n\n", statements.get("keep_versions").text));
    for (version, migration) in (1..).zip(dialect.migrations()) {
        let put =
            statements.adapt(&format!("INSERT INTO {{p}}schema (version) VALUES ({version})"));
        sql.push_str(&format!("{}\n{};\n", statements.adapt(migration).text, put.text));
    }
    Ok(sql)
}

/// Which version the tables have, 0 where there are none.
struct FindVersion;

/// Makes the tables, or brings them up to date.
struct Migrate;

impl Operation for FindVersion {
    const NAME: &'static str = "prepare";
    type Output = usize;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<usize, Failure> {
        match conn.row(&store.sql("found_version"), Vec::new()).await {
            Ok(row) => version(row.map_or(Ok(0), |row| row.int(0))?),
            Err(failure) if failure.lacks_tables() => Ok(0),
            Err(failure) => Err(failure),
        }
    }
}

impl Operation for Migrate {
    const NAME: &'static str = "prepare";
    type Output = ();

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        lock(store, conn).await?;
        let result = migrate(store, conn).await;
        unlock(store, conn).await?;
        result
    }
}

impl Store {
    /// Makes the tables, brings them up to date, or finds them so.
    pub(crate) async fn prepare(self: &Arc<Self>) -> Result<()> {
        let found = self.read(FindVersion).await?;
        let known = self.statements.dialect().migrations().len();
        if found > known {
            let context = format!(
                "the tables were made by a newer Rheo (schema {found}; this one knows {known}): \
                 upgrade this program"
            );
            return Err(Error::new(ErrorKind::Config, "prepare", context));
        }
        if found < known {
            self.write(Migrate).await?;
        }
        Ok(())
    }
}

/// Runs the migrations that are missing, of which others may have run some meanwhile.
async fn migrate(store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
    make_schema(store, conn).await?;
    conn.execute(&store.sql("keep_versions"), Vec::new()).await?;
    let row = conn.row(&store.sql("found_version"), Vec::new()).await?;
    let found = version(row.map_or(Ok(0), |row| row.int(0))?)?;
    for (number, migration) in (1..).zip(conn.dialect().migrations()).skip(found) {
        script(conn, &store.statements.adapt(migration).text).await?;
        conn.execute(&store.sql("put_version"), args![number as i64]).await?;
    }
    Ok(())
}

fn version(found: i64) -> Result<usize, Failure> {
    usize::try_from(found).map_err(|error| crate::error::corrupt(0, error))
}

/// Makes PostgreSQL's schema, which only those may try who may create any.
async fn make_schema(store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
    let Some(schema) = &store.options.names.schema else { return Ok(()) };
    let exists = store
        .statements
        .adapt("SELECT count(*) FROM information_schema.schemata WHERE schema_name = $1");
    let found = conn.row(&exists, args![schema.as_str()]).await?;
    if found.map_or(Ok(0), |row| row.int(0))? == 0 {
        script(conn, &format!("CREATE SCHEMA {schema}")).await?;
    }
    Ok(())
}

/// Runs statements that take no arguments and return no rows.
async fn script(conn: &mut Conn<'_>, text: &str) -> Result<(), Failure> {
    let script = sqlx::raw_sql(AssertSqlSafe(text));
    match conn {
        #[cfg(feature = "sqlite")]
        Conn::Sqlite(conn) => script.execute(&mut **conn).await.map(drop)?,
        #[cfg(feature = "postgres")]
        Conn::Postgres(conn) => script.execute(&mut **conn).await.map(drop)?,
        #[cfg(feature = "mysql")]
        Conn::MySql(conn) => script.execute(&mut **conn).await.map(drop)?,
    }
    Ok(())
}

/// Keeps others from migrating the same tables.
async fn lock(store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
    let Some((lock, _)) = locks(conn.dialect()) else { return Ok(()) };
    let row = conn.row(&store.statements.adapt(lock), Vec::new()).await?;
    if row.map_or(Ok(None), |row| row.opt_int(0))? == Some(1) {
        return Ok(());
    }
    let context = "another process keeps migrating the tables";
    Err(Error::new(ErrorKind::Conflict, Migrate::NAME, context).into())
}

async fn unlock(store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
    if let Some((_, Some(unlock))) = locks(conn.dialect()) {
        conn.execute(&store.statements.adapt(unlock), Vec::new()).await?;
    }
    Ok(())
}

/// How to lock, and how to unlock where the end of the transaction does not.
const fn locks(dialect: Dialect) -> Option<(&'static str, Option<&'static str>)> {
    match dialect {
        // Its transaction has locked the database already.
        #[cfg(feature = "sqlite")]
        Dialect::Sqlite => None,
        #[cfg(feature = "postgres")]
        Dialect::Postgres => {
            let lock =
                "SELECT 1::bigint FROM pg_advisory_xact_lock(hashtextextended('{p}schema', 0))";
            Some((lock, None))
        }
        // Its data definitions end the transaction.
        #[cfg(feature = "mysql")]
        Dialect::MySql => {
            let lock = "SELECT GET_LOCK(MD5(CONCAT(DATABASE(), '.{p}schema')), 20)";
            let unlock = "DO RELEASE_LOCK(MD5(CONCAT(DATABASE(), '.{p}schema')))";
            Some((lock, Some(unlock)))
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::Sql;

    #[tokio::test]
    async fn tables_are_made_once_and_newer_ones_refused() {
        let sql = Sql::connect("sqlite::memory:?table_prefix=a_").await.unwrap();
        assert_eq!(sql.store.read(FindVersion).await.unwrap(), 0);
        sql.store.prepare().await.unwrap();
        sql.store.prepare().await.unwrap();
        assert_eq!(sql.store.read(FindVersion).await.unwrap(), 1);

        sql.store.write(Newer).await.unwrap();
        let error = sql.store.prepare().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.context().contains("newer Rheo (schema 2; this one knows 1)"), "{error}");
    }

    #[tokio::test]
    async fn many_can_begin_at_once_on_one_file() {
        let file = std::env::temp_dir().join(format!("rheo-begin-{}.db", std::process::id()));
        let url = format!("sqlite:{}", file.display());
        let begin = || async {
            let sql = Sql::connect(&url).await.unwrap();
            sql.store.prepare().await.unwrap();
        };
        tokio::join!(begin(), begin(), begin(), begin());
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
    }

    #[tokio::test]
    async fn what_the_host_ran_is_found() {
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect("sqlite::memory:").await.unwrap();
        let options = Options::default().table_prefix("b_");
        let sql = schema_sql(Dialect::Sqlite, options.clone()).unwrap();
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        let sql = Sql::on_pool(pool, options).await.unwrap();
        assert_eq!(sql.store.read(FindVersion).await.unwrap(), 1);
        sql.store.prepare().await.unwrap();
    }

    struct Newer;

    impl Operation for Newer {
        const NAME: &'static str = "test";
        type Output = u64;

        async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<u64, Failure> {
            conn.execute(&store.sql("put_version"), args![2_i64]).await
        }
    }
}

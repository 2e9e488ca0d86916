//! Removing what the suite has left in a store.

use std::error::Error;
use std::sync::atomic::Ordering;

use rheo::Confirm;
use rheo::mongo::mongodb;
use rheo::sql::sqlx::mysql::MySqlConnection;
use rheo::sql::sqlx::postgres::PgConnection;
use rheo::sql::sqlx::sqlite::SqliteConnection;
use rheo::sql::sqlx::{AssertSqlSafe, Connection, Executor, raw_sql};
use rheo::sql::{Dialect, Options, schema_sql};

use super::live::Live;
use crate::failure::{Failure, Outcome};

type Removed = Result<(), Box<dyn Error + Send + Sync>>;

impl Live {
    /// Removes what the cases have made, tables and collections included.
    pub(super) async fn remove(&self) -> Outcome {
        if self.is_in_process() || !self.reached.load(Ordering::Relaxed) {
            return Ok(());
        }
        let opened = self.spaces.lock().await.len();
        let removed = match self.store {
            "sqlite" => {
                let address = self.url.split('?').next().unwrap_or_default();
                let drops = self.drops(Dialect::Sqlite, opened)?;
                execute::<SqliteConnection>(address, drops).await
            }
            "postgres" => {
                let drops = self.drops(Dialect::Postgres, opened)?;
                execute::<PgConnection>(&self.url, drops).await
            }
            "mysql" => {
                let drops = self.drops(Dialect::MySql, opened)?;
                execute::<MySqlConnection>(&self.url, drops).await
            }
            "mongo" => self.drop_collections().await,
            _ if self.url.contains("+cluster:") => self.delete_streams(opened).await,
            _ => self.unlink_keys().await,
        };
        removed.map_err(|error| {
            Failure::new(format!("what begins with {:?} was left behind: {error}", self.prefix))
        })
    }

    /// The statements that undo what makes the tables, the last one first.
    fn drops(&self, dialect: Dialect, opened: usize) -> Result<Vec<String>, Failure> {
        let mut drops = Vec::new();
        for space in 0..opened {
            let mut options = Options::default().table_prefix(self.prefix_of(space));
            if let Some(schema) = crate::commands::migrate::option(&self.url, "schema") {
                options = options.schema(schema);
            }
            let sql = schema_sql(dialect, options)?;
            let made: Vec<_> = sql.lines().filter_map(drop_of).collect();
            drops.extend(made.into_iter().rev());
        }
        Ok(drops)
    }

    async fn drop_collections(&self) -> Removed {
        let client = mongodb::Client::with_uri_str(drivers_url(&self.url)).await?;
        let database = client.default_database().ok_or("the URL names no database")?;
        for name in database.list_collection_names().await? {
            if name.starts_with(&self.prefix) {
                database.collection::<mongodb::bson::Document>(&name).drop().await?;
            }
        }
        Ok(())
    }

    /// A deleted stream leaves small marks behind, which stay on a cluster.
    async fn delete_streams(&self, opened: usize) -> Removed {
        for space in 0..opened {
            let rheo = rheo::connect(&self.url_of(space)).await?;
            for stream in rheo.list_streams().await? {
                rheo.delete_stream(stream.name.as_str(), Confirm::Yes).await?;
            }
        }
        Ok(())
    }

    async fn unlink_keys(&self) -> Removed {
        let address = self.url.split('?').next().unwrap_or_default();
        let client = redis::Client::open(address.replacen("valkey", "redis", 1))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let mut from: u64 = 0;
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(from).arg("MATCH").arg(format!("{}*", self.prefix)).arg("COUNT").arg(1000);
            let keys: Vec<Vec<u8>>;
            (from, keys) = scan.query_async(&mut connection).await?;
            if !keys.is_empty() {
                redis::cmd("UNLINK").arg(keys).exec_async(&mut connection).await?;
            }
            if from == 0 {
                return Ok(());
            }
        }
    }
}

/// `DROP TABLE name` for `CREATE TABLE name (`, and the same for a view.
fn drop_of(line: &str) -> Option<String> {
    let made = line.strip_prefix("CREATE ")?;
    let made = made.strip_prefix("OR REPLACE ").unwrap_or(made);
    let (kind, rest) =
        made.split_once(' ').filter(|(kind, _)| matches!(*kind, "TABLE" | "VIEW"))?;
    let name = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest).split([' ', '(']).next()?;
    Some(format!("DROP {kind} IF EXISTS {name}"))
}

async fn execute<C>(url: &str, statements: Vec<String>) -> Removed
where
    C: Connection,
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
{
    let mut connection = C::connect(url).await?;
    for statement in statements {
        raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

/// A URL without Rheo's own options, which are those with a `_`.
fn drivers_url(url: &str) -> String {
    let Some((address, query)) = url.split_once('?') else { return url.into() };
    let theirs = |pair: &&str| !pair.split('=').next().unwrap_or_default().contains('_');
    let query: Vec<_> = query.split('&').filter(theirs).collect();
    format!("{address}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_made_is_dropped_in_reverse() {
        let live = Live::new("postgres://host/database?schema=own");
        let drops = live.drops(Dialect::Postgres, 1).unwrap();
        let prefix = format!("\"own\".{}0_", live.prefix);
        assert_eq!(drops[0], format!("DROP VIEW IF EXISTS {prefix}log"));
        assert_eq!(drops.last(), Some(&format!("DROP TABLE IF EXISTS {prefix}schema")));
        for dialect in [Dialect::Sqlite, Dialect::MySql] {
            let drops = Live::new("sqlite:a").drops(dialect, 2).unwrap();
            assert_eq!(drops.len() % 2, 0);
            assert!(drops.len() > 20, "{drops:?}");
        }
    }

    #[test]
    fn the_driver_gets_its_own_options() {
        assert_eq!(drivers_url("mongodb://h/d"), "mongodb://h/d");
        let url = "mongodb://h/d?directConnection=true&poll_ms=5&w=1";
        assert_eq!(drivers_url(url), "mongodb://h/d?directConnection=true&w=1");
    }
}

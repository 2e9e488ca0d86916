//! [`ServerFacts`]: what the live server says of itself, and whether Rheo can work with it.

#[cfg(feature = "mysql")]
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rheo_core::Result;
#[cfg(any(feature = "postgres", feature = "mysql"))]
use rheo_core::adapter::config;
use rheo_core::backend::Server;

use crate::Store;
use crate::db::{Conn, Row};
use crate::error::Failure;
use crate::operation::Operation;
use crate::statements::Statement;

/// What the server said when Rheo connected to it.
#[derive(Clone, Debug)]
pub(crate) struct ServerFacts {
    pub(crate) server: Server,
    /// Whether a commit survives a crash of the server, with the settings it has.
    pub(crate) durable: bool,
    /// The largest event that fits.
    pub(crate) event_bytes: usize,
    /// Whether a statement outside a transaction runs as Rheo's transactions do.
    pub(crate) lone_statements: bool,
    /// SQLite's file, by its full path; none where the database is in memory.
    pub(crate) file: Option<PathBuf>,
}

impl ServerFacts {
    /// Whether it is SQLite without a file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.server.product == "SQLite" && self.file.is_none()
    }
}

/// A sign of life of the server.
struct Ping;

impl Operation for Ping {
    const NAME: &'static str = "ping";
    type Output = Server;

    async fn run(&self, _: &Store, conn: &mut Conn<'_>) -> Result<Server, Failure> {
        Ok(read_facts(conn).await?.server)
    }
}

impl Store {
    /// Asks the server who it is.
    pub(crate) async fn ping(self: &Arc<Self>) -> Result<Server> {
        self.read(Ping).await
    }
}

/// Asks the server what Rheo must know, and refuses one that is too old or set
/// up in a way that Rheo cannot work with.
pub(crate) async fn read_facts(conn: &mut Conn<'_>) -> Result<ServerFacts, Failure> {
    match conn {
        #[cfg(feature = "sqlite")]
        Conn::Sqlite(_) => read_sqlite(conn).await,
        #[cfg(feature = "postgres")]
        Conn::Postgres(_) => read_postgres(conn).await,
        #[cfg(feature = "mysql")]
        Conn::MySql(_) => read_mysql(conn).await,
    }
}

async fn ask(conn: &mut Conn<'_>, text: &'static str) -> Result<Vec<Row>, Failure> {
    let statement = Statement { text: text.into(), order: None, kept: false };
    conn.rows(&statement, Vec::new()).await
}

#[cfg(feature = "sqlite")]
async fn read_sqlite(conn: &mut Conn<'_>) -> Result<ServerFacts, Failure> {
    let facts = "SELECT sqlite_version(), (SELECT file FROM pragma_database_list \
        WHERE name = 'main'), (SELECT synchronous FROM pragma_synchronous)";
    let rows = ask(conn, facts).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let file = row.opt_text(1)?.filter(|file| !file.is_empty()).map(PathBuf::from);
    Ok(ServerFacts {
        server: Server { product: "SQLite".into(), version: row.text(0)? },
        // 2 is FULL: every commit is flushed to the disk.
        durable: file.is_some() && row.int(2)? >= 2,
        event_bytes: 256 << 20,
        lone_statements: true,
        file,
    })
}

#[cfg(feature = "postgres")]
async fn read_postgres(conn: &mut Conn<'_>) -> Result<ServerFacts, Failure> {
    let facts = "SELECT version(), current_setting('server_version'), \
        current_setting('server_encoding'), \
        (current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' \
            AND current_setting('synchronous_commit') <> 'off')::int::bigint, \
        (current_setting('default_transaction_isolation') = 'read committed' \
            AND current_setting('default_transaction_read_only') = 'off')::int::bigint";
    let rows = ask(conn, facts).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let (banner, encoding) = (row.text(0)?, row.text(2)?);
    let version = row.text(1)?.split(' ').next().unwrap_or_default().to_string();
    let product = banner.split(' ').next().unwrap_or_default().to_string();
    if product != "PostgreSQL" {
        return Err(config(format!("{product} is not PostgreSQL, which Rheo needs here")).into());
    }
    check_version("PostgreSQL", &version, "13")?;
    if encoding != "UTF8" {
        return Err(
            config(format!("the database's encoding is {encoding}: Rheo needs UTF8")).into()
        );
    }
    Ok(ServerFacts {
        server: Server { product, version },
        durable: row.int(3)? != 0,
        event_bytes: 64 << 20,
        lone_statements: row.int(4)? != 0,
        file: None,
    })
}

#[cfg(feature = "mysql")]
async fn read_mysql(conn: &mut Conn<'_>) -> Result<ServerFacts, Failure> {
    let facts = "SHOW VARIABLES WHERE Variable_name IN ('version', 'max_allowed_packet', \
        'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format', \
        'character_set_client', 'character_set_results', 'autocommit')";
    let mut variables = HashMap::new();
    for row in ask(conn, facts).await? {
        variables.insert(row.text(0)?.to_lowercase(), row.text(1)?);
    }
    let variable = |name: &str| variables.get(name).map_or("", String::as_str);
    let server = mysql_server(variable("version"))?;
    check_mysql_session(&variable)?;
    let flushes = variable("innodb_flush_log_at_trx_commit") == "1";
    let logs_safely = variable("log_bin") != "ON" || variable("sync_binlog") == "1";
    // MySQL's redo log takes no value above a tenth of its size.
    let most = if server.product == "MySQL" { 8 << 20 } else { usize::MAX };
    let packet: usize = variable("max_allowed_packet").parse().unwrap_or(1 << 20);
    Ok(ServerFacts {
        server,
        durable: flushes && logs_safely,
        event_bytes: packet.saturating_sub(64 << 10).min(most),
        // Its sessions begin with repeatable reads.
        lone_statements: false,
        file: None,
    })
}

#[cfg(feature = "mysql")]
fn check_mysql_session<'a>(variable: &impl Fn(&str) -> &'a str) -> Result<()> {
    for name in ["character_set_client", "character_set_results"] {
        let set = variable(name);
        if set != "utf8mb4" {
            return Err(config(format!("{name} is {set}: Rheo needs utf8mb4")));
        }
    }
    if variable("autocommit") != "ON" {
        return Err(config("autocommit is off: Rheo needs it on"));
    }
    if variable("log_bin") == "ON" && variable("binlog_format") == "STATEMENT" {
        return Err(config("binlog_format is STATEMENT: Rheo needs ROW or MIXED"));
    }
    Ok(())
}

/// Which server it is, by a version such as `10.11.4-MariaDB-1` or `8.0.36`.
#[cfg(feature = "mysql")]
fn mysql_server(version: &str) -> Result<Server> {
    let maria = version.contains("MariaDB");
    // Old drivers were told that MariaDB is MySQL 5.5.5.
    let version = version.strip_prefix("5.5.5-").filter(|_| maria).unwrap_or(version);
    let version = version.split('-').next().unwrap_or_default();
    let (product, least) = if maria { ("MariaDB", "10.6") } else { ("MySQL", "8.0") };
    check_version(product, version, least)?;
    Ok(Server { product: product.into(), version: version.into() })
}

#[cfg(any(feature = "postgres", feature = "mysql"))]
fn check_version(product: &str, version: &str, least: &str) -> Result<()> {
    // What follows the digits is a release name, as in 17beta1.
    let digits = |part: &str| -> u32 {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        part[..end].parse().unwrap_or_default()
    };
    let numbers = |version: &str| {
        let mut parts = version.split('.').map(digits);
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    };
    if numbers(version) < numbers(least) {
        return Err(config(format!("{product} {version} is too old: Rheo needs {least} or newer")));
    }
    Ok(())
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_by_their_versions() {
        let server = |version| {
            let Server { product, version } = mysql_server(version).unwrap();
            format!("{product} {version}")
        };
        assert_eq!(server("10.11.14-MariaDB-0+deb12u2"), "MariaDB 10.11.14");
        assert_eq!(server("5.5.5-10.6.1-MariaDB-log"), "MariaDB 10.6.1");
        assert_eq!(server("8.4.0"), "MySQL 8.4.0");
    }

    #[test]
    fn old_servers_are_refused_by_name_and_version() {
        let told = |result: Result<_>| result.unwrap_err().context().to_string();
        assert_eq!(
            told(mysql_server("5.7.44-log").map(drop)),
            "MySQL 5.7.44 is too old: Rheo needs 8.0 or newer"
        );
        assert_eq!(
            told(mysql_server("10.5.2-MariaDB").map(drop)),
            "MariaDB 10.5.2 is too old: Rheo needs 10.6 or newer"
        );
        assert_eq!(
            told(check_version("PostgreSQL", "12.3", "13")),
            "PostgreSQL 12.3 is too old: Rheo needs 13 or newer"
        );
        assert!(check_version("PostgreSQL", "17beta1", "13").is_ok());
    }
}

//! Connecting to MySQL or MariaDB.

use rheo_core::Result;
use rheo_core::adapter::config;
use sqlx::mysql::MySqlConnectOptions;

use crate::Dialect;
use crate::config::{Options, take_options};
use crate::connect::{Opened, STATEMENTS, open_pool, unreadable};
use crate::pool::Pool;

/// What the driver knows in a URL.
const KEYS: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslca",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "socket",
    "charset",
    "collation",
    "timezone",
    "time-zone",
];

pub(crate) async fn open(url: &str, options: Options) -> Result<Opened> {
    let (url, options) = take_options(Dialect::MySql, url, options, KEYS)?;
    let example = "mysql://user:password@host:3306/database";
    let mut connect: MySqlConnectOptions =
        url.parse().map_err(|error| unreadable(example, error))?;
    let Some(database) = connect.get_database() else {
        return Err(config(format!("the URL names no database: {example} does")));
    };
    let place = place(&connect, database);
    if options.transaction_pooling {
        connect = connect.statement_cache_capacity(0);
    } else if !url.contains("statement-cache-capacity") {
        connect = connect.statement_cache_capacity(STATEMENTS);
    }
    let pool = open_pool(connect, &options, &place).await?;
    Ok(Opened { pool: Pool::MySql(pool), options, place })
}

fn place(connect: &MySqlConnectOptions, database: &str) -> String {
    match connect.get_socket() {
        Some(socket) => format!("the server at {}, database {database:?}", socket.display()),
        None => {
            let (host, port) = (connect.get_host(), connect.get_port());
            format!("the server at {host}:{port}, database {database:?}")
        }
    }
}

//! Connecting to MySQL or MariaDB.

use rheo_core::Result;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;

use crate::config::{Options, config, take_options};
use crate::connect::{IDLE, Opened, STATEMENTS, cannot_connect, unreadable};
use crate::error::Failure;
use crate::pool::Pool;

/// What the driver knows in a URL.
const KEYS: &[&str] = &[
    "sslmode", "ssl-mode", "sslca", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key",
    "statement-cache-capacity", "socket", "charset", "collation", "timezone", "time-zone",
];

pub(crate) async fn open(url: &str, options: Options) -> Result<Opened> {
    let (url, options) = take_options(url, options, KEYS)?;
    let example = "mysql://user:password@host:3306/database";
    let mut connect: MySqlConnectOptions =
        url.parse().map_err(|error| unreadable(example, error))?;
    let Some(database) = connect.get_database() else {
        return Err(config(format!("the URL names no database: {example} does")));
    };
    if options.names.schema.is_some() {
        return Err(config("schema is for PostgreSQL: here the URL names the database"));
    }
    let place = place(&connect, database);
    if options.transaction_pooling {
        connect = connect.statement_cache_capacity(0);
    } else if !url.contains("statement-cache-capacity") {
        connect = connect.statement_cache_capacity(STATEMENTS);
    }
    // The pool would try again and again, and could not say why it failed.
    let first = timeout(options.connect_timeout, connect.connect());
    match first.await {
        Ok(Ok(conn)) => drop(conn.close().await),
        Ok(Err(error)) => return Err(cannot_connect(&place, error.into())),
        Err(_) => return Err(cannot_connect(&place, Failure::Late)),
    }
    let pool = MySqlPoolOptions::new()
        .max_connections(options.max_connections)
        .acquire_timeout(options.connect_timeout)
        .test_before_acquire(false)
        .before_acquire(|conn, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE {
                    conn.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(connect);
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

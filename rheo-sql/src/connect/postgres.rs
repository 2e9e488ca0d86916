//! Connecting to PostgreSQL.

use rheo_core::Result;
use sqlx::postgres::PgConnectOptions;

use crate::Dialect;
use crate::config::{Options, take_options};
use crate::connect::{Opened, STATEMENTS, open_pool, unreadable};
use crate::pool::Pool;

/// What the driver knows in a URL.
const KEYS: &[&str] = &[
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

pub(crate) async fn open(url: &str, options: Options) -> Result<Opened> {
    let (url, options) = take_options(Dialect::Postgres, url, options, KEYS)?;
    let example = "postgres://user:password@host:5432/database";
    let mut connect: PgConnectOptions = url.parse().map_err(|error| unreadable(example, error))?;
    if options.transaction_pooling {
        connect = connect.statement_cache_capacity(0);
    } else if !url.contains("statement-cache-capacity") {
        connect = connect.statement_cache_capacity(STATEMENTS);
    }
    if connect.get_application_name().is_none() {
        connect = connect.application_name("rheo");
    }
    let place = place(&connect);
    let pool = open_pool(connect, &options, &place).await?;
    Ok(Opened { pool: Pool::Postgres(pool), options, place })
}

fn place(connect: &PgConnectOptions) -> String {
    let database = connect.get_database().unwrap_or(connect.get_username());
    match connect.get_socket() {
        Some(socket) => format!("PostgreSQL at {}, database {database:?}", socket.display()),
        None => {
            let (host, port) = (connect.get_host(), connect.get_port());
            format!("PostgreSQL at {host}:{port}, database {database:?}")
        }
    }
}

//! MySQL and MariaDB by sqlx, a connection for each client.

use std::sync::Arc;

use rheo::sql::sqlx::{Connection as _, MySqlConnection};
use tokio::sync::Mutex;

use super::sql::{Connection, Dialect, Log};
use super::told;
use crate::failure::Failure;

/// Its files grow by the megabyte, and its own counts are estimates.
const DIALECT: Dialect = Dialect {
    create: "CREATE TABLE LOG (part BIGINT NOT NULL, sequence BIGINT NOT NULL, \
        id BINARY(16) NOT NULL, at BIGINT NOT NULL, event_type VARBINARY(255) NOT NULL, \
        event_key VARBINARY(512) NOT NULL, metadata LONGTEXT NOT NULL, payload LONGTEXT NOT NULL, \
        PRIMARY KEY (part, sequence), KEY LOG_type (event_type, part, sequence), \
        KEY LOG_key (event_key, part, sequence), KEY LOG_at (part, at, sequence)) \
        ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
        CREATE TABLE LOG_done (part BIGINT PRIMARY KEY, sequence BIGINT NOT NULL) ENGINE=InnoDB",
    mark: |_, _| "?".into(),
    payload: "payload",
    bytes: None,
};

pub(super) async fn open(url: &str, log: &str) -> Result<Log, Failure> {
    // The driver knows one of the names only.
    let url = url.replacen("mariadb:", "mysql:", 1);
    let connected = MySqlConnection::connect(&url).await.map_err(told)?;
    let connection = Connection::MySql(Arc::new(Mutex::new(connected)));
    Ok(Log::new(&DIALECT, connection, (&url, log)))
}

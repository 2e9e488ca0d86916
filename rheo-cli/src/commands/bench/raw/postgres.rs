//! PostgreSQL by sqlx, a connection for each client.

use std::sync::Arc;

use rheo::sql::sqlx::{Connection as _, PgConnection};
use tokio::sync::Mutex;

use super::sql::{Connection, Dialect, Log};
use super::told;
use crate::failure::Failure;

const DIALECT: Dialect = Dialect {
    create: "CREATE TABLE LOG (part BIGINT NOT NULL, sequence BIGINT NOT NULL, id UUID NOT NULL, \
        at BIGINT NOT NULL, event_type TEXT COLLATE \"C\" NOT NULL, \
        event_key TEXT COLLATE \"C\" NOT NULL, metadata JSONB NOT NULL, payload JSONB NOT NULL, \
        PRIMARY KEY (part, sequence));
        CREATE INDEX LOG_type ON LOG (event_type, part, sequence);
        CREATE INDEX LOG_key ON LOG (event_key, part, sequence);
        CREATE INDEX LOG_at ON LOG (part, at, sequence);
        CREATE INDEX LOG_metadata ON LOG USING gin (metadata jsonb_path_ops);
        CREATE INDEX LOG_payload ON LOG USING gin (payload jsonb_path_ops);
        CREATE TABLE LOG_done (part BIGINT PRIMARY KEY, sequence BIGINT NOT NULL)",
    mark: |number, is_json| format!("${number}{}", if is_json { "::jsonb" } else { "" }),
    payload: "payload::text",
    bytes: Some(
        "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class \
         WHERE relkind = 'r' AND relnamespace NOT IN \
            ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)",
    ),
};

pub(super) async fn open(url: &str, log: &str) -> Result<Log, Failure> {
    let connected = PgConnection::connect(url).await.map_err(told)?;
    let connection = Connection::Postgres(Arc::new(Mutex::new(connected)));
    Ok(Log::new(&DIALECT, connection, (url, log)))
}

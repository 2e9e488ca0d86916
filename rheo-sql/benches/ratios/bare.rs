//! A connection of the bare driver, and what it appends with.

use std::time::Duration;

use sqlx::mysql::MySqlConnection;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use crate::events::BareEvent;

/// A connection of the bare driver.
pub(crate) enum Bare {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

const COLUMNS: usize = 10;

impl Bare {
    pub(crate) async fn connect(url: &str) -> Self {
        match url.split(':').next() {
            Some("sqlite") => {
                let options: SqliteConnectOptions = url.parse().expect("a URL");
                let options = options
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(Duration::from_secs(60));
                Self::Sqlite(options.connect().await.expect("connected"))
            }
            Some("postgres") => {
                Self::Postgres(PgConnection::connect(url).await.expect("connected"))
            }
            _ => Self::MySql(MySqlConnection::connect(url).await.expect("connected")),
        }
    }

    /// Runs statements that return nothing.
    pub(crate) async fn run(&mut self, text: &str) {
        let query = sqlx::raw_sql(AssertSqlSafe(text.to_string()));
        let done = match self {
            Self::Sqlite(conn) => query.execute(conn).await.map(drop),
            Self::Postgres(conn) => query.execute(conn).await.map(drop),
            Self::MySql(conn) => query.execute(conn).await.map(drop),
        };
        done.unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// The first column of what a statement returns, as text.
    pub(crate) async fn lines(&mut self, text: &str) -> Vec<String> {
        let query = sqlx::raw_sql(AssertSqlSafe(text.to_string()));
        let lines = match self {
            Self::Sqlite(conn) => query.fetch_all(conn).await.map(|rows| {
                let column = rows.first().map_or(0, |row| row.len().saturating_sub(1));
                rows.iter().map(|row| row.get_unchecked(column)).collect()
            }),
            Self::Postgres(conn) => query
                .fetch_all(conn)
                .await
                .map(|rows| rows.iter().map(|row| row.get_unchecked(0)).collect()),
            Self::MySql(conn) => query
                .fetch_all(conn)
                .await
                .map(|rows| rows.iter().map(|row| row.get_unchecked(0)).collect()),
        };
        lines.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The statement that inserts this many events, a row of values each.
    pub(crate) fn insert_text(&self, count: usize) -> String {
        let mut text = match self {
            Self::MySql(_) => INSERT.replace('"', "`"),
            _ => INSERT.to_string(),
        };
        text.push_str("VALUES ");
        for row in 0..count {
            let mark = |column: usize| match self {
                Self::Postgres(_) if column > 8 => format!("${}::jsonb", row * COLUMNS + column),
                Self::Postgres(_) => format!("${}", row * COLUMNS + column),
                _ => "?".into(),
            };
            let marks: Vec<_> = (1..=COLUMNS).map(mark).collect();
            text.push_str(if row == 0 { "(" } else { ", (" });
            text.push_str(&marks.join(", "));
            text.push(')');
        }
        text
    }

    /// Inserts events of one partition, in one statement.
    pub(crate) async fn insert(
        &mut self,
        text: &str,
        place: (i64, i64),
        first: i64,
        events: &[BareEvent],
    ) {
        let (stream, partition) = place;
        macro_rules! insert {
            ($conn:expr) => {{
                let mut query = sqlx::query(AssertSqlSafe(text.to_string()));
                for (sequence, event) in (first..).zip(events) {
                    query = query
                        .bind(stream)
                        .bind(partition)
                        .bind(sequence)
                        .bind(event.id)
                        .bind(event.timestamp)
                        .bind(event.timestamp)
                        .bind(&event.event_type)
                        .bind(&event.key)
                        .bind("{}")
                        .bind(&event.payload);
                }
                query.execute($conn).await.expect("inserted");
            }};
        }
        match self {
            Self::Sqlite(conn) => insert!(conn),
            Self::Postgres(conn) => insert!(conn),
            Self::MySql(conn) => insert!(conn),
        }
    }

    /// The same with arrays, on PostgreSQL.
    pub(crate) async fn insert_arrays(
        &mut self,
        place: (i64, i64),
        first: i64,
        events: &[BareEvent],
    ) {
        let Self::Postgres(conn) = self else { return };
        let sequences: Vec<i64> = (first..).take(events.len()).collect();
        let ids: Vec<_> = events.iter().map(|event| event.id).collect();
        let timestamps: Vec<_> = events.iter().map(|event| event.timestamp).collect();
        let types: Vec<_> = events.iter().map(|event| event.event_type.as_str()).collect();
        let keys: Vec<_> = events.iter().map(|event| event.key.as_str()).collect();
        let metadata = vec!["{}"; events.len()];
        let payloads: Vec<_> = events.iter().map(|event| event.payload.as_str()).collect();
        let query = sqlx::query(INSERT_ARRAYS).bind(place.0).bind(place.1).bind(sequences);
        let query = query.bind(ids).bind(timestamps).bind(types).bind(keys);
        query.bind(metadata).bind(payloads).execute(conn).await.expect("inserted");
    }
}

const INSERT: &str = r#"INSERT INTO rheo_events
    (stream_id, "partition", sequence, id, timestamp, latest, type, "key", metadata, payload) "#;

const INSERT_ARRAYS: &str = r#"INSERT INTO rheo_events
    (stream_id, "partition", sequence, id, timestamp, latest, type, "key", metadata, payload)
SELECT $1, $2, s, i, t, t, y, k, m::jsonb, p::jsonb
FROM unnest($3::bigint[], $4::uuid[], $5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[])
    AS x(s, i, t, y, k, m, p)"#;

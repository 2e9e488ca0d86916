//! What the bare drivers of SQL databases share: one statement for an append,
//! and two to consume.

use std::sync::Arc;

use async_trait::async_trait;
use rheo::sql::sqlx::{
    self, AssertSqlSafe, Connection as _, MySqlConnection, PgConnection, Row, SqliteConnection,
};
use tokio::sync::Mutex;

use super::{Raw, told};
use crate::commands::bench::events::Plain;
use crate::failure::{Failure, Outcome};

/// How a database writes it.
pub(super) struct Dialect {
    /// Makes the table `LOG`, its indexes, and `LOG_done`.
    pub(super) create: &'static str,
    /// The parameter of that number, in a column of JSON or not.
    pub(super) mark: fn(usize, bool) -> String,
    /// How a column of JSON is read as text.
    pub(super) payload: &'static str,
    /// Asks how much the database holds.
    pub(super) bytes: Option<&'static str>,
}

/// A connection, which clients share where the database has one writer only.
#[derive(Clone)]
pub(super) enum Connection {
    Sqlite(Arc<Mutex<SqliteConnection>>),
    Postgres(Arc<Mutex<PgConnection>>),
    MySql(Arc<Mutex<MySqlConnection>>),
}

/// A table of events.
pub(super) struct Log {
    pub(super) dialect: &'static Dialect,
    pub(super) connection: Connection,
    pub(super) url: String,
    pub(super) name: String,
    partition: i64,
    next: i64,
}

const COLUMNS: usize = 8;
const FIRST_JSON_COLUMN: usize = 7;

/// Does something with the connection, whatever its type is.
macro_rules! on {
    ($log:expr, $conn:ident => $work:expr) => {
        match &$log.connection {
            Connection::Sqlite(shared) => {
                let mut held = shared.lock().await;
                let $conn = &mut *held;
                $work
            }
            Connection::Postgres(shared) => {
                let mut held = shared.lock().await;
                let $conn = &mut *held;
                $work
            }
            Connection::MySql(shared) => {
                let mut held = shared.lock().await;
                let $conn = &mut *held;
                $work
            }
        }
    };
}

impl Log {
    pub(super) fn new(
        dialect: &'static Dialect,
        connection: Connection,
        (url, name): (&str, &str),
    ) -> Self {
        Self { dialect, connection, url: url.into(), name: name.into(), partition: 0, next: 1 }
    }

    /// Runs statements that return nothing, one after another.
    async fn run(&self, text: &str) -> Outcome {
        for statement in text.split(';').map(str::trim).filter(|text| !text.is_empty()) {
            let text = statement.replace("LOG", &self.name);
            let query = sqlx::raw_sql(AssertSqlSafe(text));
            on!(self, conn => query.execute(conn).await.map(drop)).map_err(told)?;
        }
        Ok(())
    }

    /// The statement that inserts so many events, a row of values each.
    fn insert_text(&self, count: usize) -> String {
        let mut text = format!("INSERT INTO {} VALUES ", self.name);
        for row in 0..count {
            let mark =
                |column| (self.dialect.mark)(row * COLUMNS + column, column >= FIRST_JSON_COLUMN);
            let marks: Vec<_> = (1..=COLUMNS).map(mark).collect();
            text.push_str(if row == 0 { "(" } else { ", (" });
            text.push_str(&marks.join(", "));
            text.push(')');
        }
        text
    }

    /// The statement that reads what comes after what is done. The range has two
    /// ends, so that every planner keeps to the primary key, however large the
    /// table is.
    fn select_text(&self, size: u64) -> String {
        let (name, payload) = (&self.name, self.dialect.payload);
        let [first, second, third] = [1, 2, 3].map(|number| (self.dialect.mark)(number, false));
        let done = |partition: String| {
            format!("(SELECT sequence FROM {name}_done WHERE part = {partition})")
        };
        format!(
            "SELECT sequence, id, at, event_type, event_key, {payload} FROM {name} \
             WHERE part = {first} AND sequence > {} AND sequence <= {} + {size} ORDER BY sequence",
            done(second),
            done(third)
        )
    }

    /// The statement that says how far all is done.
    fn done_text(&self) -> String {
        let (name, mark) = (&self.name, self.dialect.mark);
        format!(
            "UPDATE {name}_done SET sequence = {} WHERE part = {}",
            mark(1, false),
            mark(2, false)
        )
    }
}

#[async_trait]
impl Raw for Log {
    async fn create(&mut self) -> Outcome {
        self.run(self.dialect.create).await?;
        self.run("INSERT INTO LOG_done VALUES (0, 0)").await
    }

    async fn another(&mut self, partition: u32) -> Result<Box<dyn Raw>, Failure> {
        let connection = match &self.connection {
            Connection::Sqlite(shared) => Connection::Sqlite(Arc::clone(shared)),
            Connection::Postgres(_) => {
                let connected = PgConnection::connect(&self.url).await.map_err(told)?;
                Connection::Postgres(Arc::new(Mutex::new(connected)))
            }
            Connection::MySql(_) => {
                let connected = MySqlConnection::connect(&self.url).await.map_err(told)?;
                Connection::MySql(Arc::new(Mutex::new(connected)))
            }
        };
        let names = (&*self.url, &*self.name);
        let log = Self::new(self.dialect, connection, names);
        Ok(Box::new(Self { partition: partition.into(), ..log }))
    }

    async fn append(&mut self, events: &[Plain]) -> Outcome {
        let text = self.insert_text(events.len());
        let inserted = on!(self, conn => {
            let mut query = sqlx::query(AssertSqlSafe(text));
            for (sequence, event) in (self.next..).zip(events) {
                query = query
                    .bind(self.partition)
                    .bind(sequence)
                    .bind(event.id)
                    .bind(event.at)
                    .bind(&event.event_type)
                    .bind(&event.key)
                    .bind("{}")
                    .bind(&event.payload);
            }
            query.execute(conn).await.map(drop)
        });
        inserted.map_err(told)?;
        self.next += events.len() as i64;
        Ok(())
    }

    async fn consume(&mut self, size: u64) -> Result<u64, Failure> {
        let (select, done) = (self.select_text(size), self.done_text());
        let consumed = on!(self, conn => {
            let query = sqlx::query(AssertSqlSafe(select)).bind(self.partition);
            let query = query.bind(self.partition).bind(self.partition);
            let rows = query.fetch_all(&mut *conn).await.map_err(told)?;
            let payloads = rows.iter().map(|row| row.get::<String, _>(5).len());
            let last = rows.last().map(|row| row.get::<i64, _>(0));
            // What is read is looked at, as a consumer would.
            let read = if payloads.sum::<usize>() > 0 { rows.len() as u64 } else { 0 };
            if let Some(last) = last {
                let query = sqlx::query(AssertSqlSafe(done)).bind(last).bind(self.partition);
                query.execute(&mut *conn).await.map_err(told)?;
            }
            read
        });
        Ok(consumed)
    }

    async fn rewind(&mut self) -> Outcome {
        self.run("UPDATE LOG_done SET sequence = 0").await
    }

    async fn delete(&mut self) -> Outcome {
        self.run("DROP TABLE LOG; DROP TABLE LOG_done").await
    }

    async fn bytes(&mut self) -> Result<Option<u64>, Failure> {
        let Some(text) = self.dialect.bytes else { return Ok(None) };
        let bytes = on!(self, conn => sqlx::query_scalar::<_, i64>(text).fetch_one(conn).await);
        Ok(Some(bytes.map_err(told)?.max(0).cast_unsigned()))
    }
}

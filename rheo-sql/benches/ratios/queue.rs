//! The queue that Rheo is compared with: a row for each event, claimed by
//! moving its time on, and deleted when it is done.

use ratios::{BATCH, event_type, key, payload, side_by_side};
use sqlx::{AssertSqlSafe, Row};

use crate::bare::Bare;
use crate::place::Place;

impl Bare {
    /// Makes the table, empty.
    async fn make_queue(&mut self) {
        let (id, time, document, now) = match self {
            Self::Sqlite(_) => ("INTEGER PRIMARY KEY", "INTEGER", "TEXT", "0"),
            Self::Postgres(_) => (
                "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
                "TIMESTAMPTZ",
                "JSONB",
                "clock_timestamp()",
            ),
            Self::MySql(_) => {
                ("BIGINT AUTO_INCREMENT PRIMARY KEY", "DATETIME(6)", "LONGTEXT", "NOW(6)")
            }
        };
        self.run("DROP TABLE IF EXISTS queue").await;
        self.run(&format!(
            "CREATE TABLE queue (id {id}, run_at {time} NOT NULL DEFAULT {now}, \
             attempt BIGINT NOT NULL DEFAULT 0, type VARCHAR(255) NOT NULL, name VARCHAR(255), \
             payload {document} NOT NULL)"
        ))
        .await;
        self.run("CREATE INDEX queue_due ON queue (run_at, id)").await;
    }

    async fn fill_queue(&mut self, count: u64) {
        for first in (0..count).step_by(BATCH as usize) {
            let row = |number| {
                let (kind, name) = (event_type(number), key(number));
                format!("('{kind}', '{name}', '{}')", payload(number))
            };
            let rows: Vec<_> = (first..first + BATCH).map(row).collect();
            let text =
                format!("INSERT INTO queue (type, name, payload) VALUES {}", rows.join(", "));
            self.run(&text).await;
        }
        if matches!(self, Self::Postgres(_)) {
            self.run("VACUUM ANALYZE queue").await;
        }
    }

    /// Claims a batch and deletes it; how many there were. PostgreSQL only.
    async fn work_off_batch(&mut self) -> u64 {
        let Self::Postgres(conn) = self else { return 0 };
        let rows = sqlx::query(CLAIM).fetch_all(&mut *conn).await.expect("claimed");
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        let payloads = rows.iter().map(|row| row.get::<&str, _>(3).len());
        assert!(payloads.sum::<usize>() >= rows.len());
        let query = sqlx::query("DELETE FROM queue WHERE id = ANY($1)").bind(ids);
        query.execute(conn).await.expect("deleted").rows_affected()
    }

    /// Takes one event away in a transaction; whether there was one.
    async fn work_off_one(&mut self) -> bool {
        let lock = if matches!(self, Self::MySql(_)) { "FOR UPDATE SKIP LOCKED" } else { "" };
        let now = if lock.is_empty() { "unixepoch()" } else { "NOW(6)" };
        let take = format!(
            "SELECT id, type, name, payload FROM queue WHERE run_at <= {now} \
             ORDER BY run_at, id LIMIT 1 {lock}"
        );
        macro_rules! work_off {
            ($conn:expr, $begin:expr) => {{
                sqlx::raw_sql($begin).execute(&mut *$conn).await.expect("begun");
                let query = sqlx::query(AssertSqlSafe(take));
                let row = query.fetch_optional(&mut *$conn).await.expect("found");
                if let Some(row) = &row {
                    let delete = sqlx::query("DELETE FROM queue WHERE id = ?");
                    let delete = delete.bind(row.get::<i64, _>(0));
                    delete.execute(&mut *$conn).await.expect("deleted");
                }
                sqlx::raw_sql("COMMIT").execute(&mut *$conn).await.expect("committed");
                row.is_some()
            }};
        }
        match self {
            Self::Sqlite(conn) => work_off!(conn, "BEGIN IMMEDIATE"),
            Self::MySql(conn) => work_off!(conn, "START TRANSACTION"),
            Self::Postgres(_) => false,
        }
    }
}

/// How many microseconds clients of the bare driver take to work off a queue of this many.
/// On PostgreSQL they take batches, elsewhere one after another.
pub(crate) async fn work_off(place: &Place, clients: u32, count: u64) -> f64 {
    let mut bare = place.bare().await;
    bare.make_queue().await;
    bare.fill_queue(count).await;
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let mut bare = place.bare().await;
        let in_batches = place.store == "postgres";
        tasks.push(async move {
            if in_batches {
                while bare.work_off_batch().await > 0 {}
            } else {
                while bare.work_off_one().await {}
            }
        });
    }
    side_by_side(tasks).await
}

const CLAIM: &str = "UPDATE queue \
    SET run_at = clock_timestamp() + INTERVAL '30 seconds', attempt = attempt + 1 \
    WHERE id = ANY(ARRAY(SELECT id FROM queue WHERE run_at <= now() \
        ORDER BY run_at, id LIMIT 100 FOR UPDATE SKIP LOCKED)) \
    RETURNING id, type, name, payload::text, attempt";

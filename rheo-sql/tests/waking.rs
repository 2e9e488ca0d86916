//! Waking other processes through PostgreSQL, also after the connection that
//! listens was cut.

#![cfg(all(unix, feature = "postgres"))]

use std::time::Duration;

use rheo_conformance::servers;
use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo, Timestamp};
use rheo_sql::{Options, Sql};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

const HOUR: Duration = Duration::from_secs(3600);
/// Far less than the waits here.
const SOON: Duration = Duration::from_secs(20);

async fn instance(url: &str, prefix: &str) -> Rheo {
    // Nobody polls here.
    let options = Options::default().poll(HOUR).table_prefix(prefix);
    let sql = Sql::connect_with(url, options).await.unwrap();
    Rheo::builder(sql).build().await.unwrap()
}

/// The server as an administrator sees it.
struct Admin {
    connection: PgConnection,
    /// The query for the backends that listen.
    listening: String,
    /// The query for those that looked for work, and found none.
    looked: String,
}

impl Admin {
    fn new(connection: PgConnection, prefix: &str) -> Self {
        let backends = "SELECT pid FROM pg_stat_activity WHERE state = 'idle' AND query LIKE";
        let looked = format!("{backends} 'SELECT g.id, t.instant%{prefix}streams%'");
        let listening = format!("{backends} 'LISTEN \"{prefix}%'");
        Self { connection, listening, looked }
    }

    async fn now(&mut self) -> String {
        let query = sqlx::query_scalar("SELECT clock_timestamp()::text");
        query.fetch_one(&mut self.connection).await.unwrap()
    }

    /// Returns once there are as many such backends.
    async fn sees(&mut self, query: String, count: usize) {
        loop {
            let query = sqlx::query(AssertSqlSafe(query.clone()));
            if query.fetch_all(&mut self.connection).await.unwrap().len() == count {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn sees_listening(&mut self, count: usize) {
        self.sees(self.listening.clone(), count).await;
    }

    /// Returns once somebody has looked for work after that time.
    async fn sees_a_look(&mut self, after: &str) {
        let look = format!("{} AND query_start > '{after}'", self.looked);
        self.sees(format!("SELECT 1 WHERE EXISTS ({look})"), 1).await;
    }

    async fn cut(&mut self) {
        let cut = format!("SELECT pg_terminate_backend(pid) FROM ({}) AS l", self.listening);
        sqlx::raw_sql(AssertSqlSafe(cut)).execute(&mut self.connection).await.unwrap();
    }
}

/// Waits with one instance until an append of another wakes it.
async fn assert_woken(waiting: &Rheo, appending: &Rheo, admin: &mut Admin) {
    let begun = admin.now().await;
    let wait = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.wait("s", "g", HOUR).await }
    });
    admin.sees_listening(1).await;
    // From here on only a signal makes it look again.
    admin.sees_a_look(&begun).await;
    appending.append("s", NewEvent::new("t", 1)).await.unwrap();
    wait.await.unwrap().unwrap();
    assert_eq!(waiting.fetch("s", "g", 10, FetchOptions::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_cut_connection_comes_back_and_wakes_again() {
    let started = servers::Postgres::start().await;
    let Some(server) = servers::found("postgres", started) else { return };
    let prefix = format!("w{:x}_", Timestamp::now().as_micros());
    let connection = PgConnection::connect(server.url()).await.unwrap();
    let mut admin = Admin::new(connection, &prefix);
    let waiting = instance(server.url(), &prefix).await;
    let appending = instance(server.url(), &prefix).await;
    waiting.create_stream("s", 1).await.unwrap();
    waiting.create_group("s", "g", GroupOptions::default()).await.unwrap();
    admin.sees_listening(0).await;
    let test = async {
        for _ in 0..3 {
            assert_woken(&waiting, &appending, &mut admin).await;
            admin.cut().await;
        }
        assert_woken(&waiting, &appending, &mut admin).await;
        drop(waiting);
        admin.sees_listening(0).await;
    };
    tokio::time::timeout(SOON, test)
        .await
        .expect("it is woken, and listens no longer than it lives");
}

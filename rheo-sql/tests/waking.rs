//! Waking other processes through PostgreSQL, also after the connection that
//! listens was cut.

#![cfg(all(unix, feature = "postgres"))]

mod servers;

use std::time::Duration;

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
}

impl Admin {
    /// Returns once as many connections listen.
    async fn sees_listening(&mut self, count: usize) {
        loop {
            let query = sqlx::query(AssertSqlSafe(self.listening.clone()));
            if query.fetch_all(&mut self.connection).await.unwrap().len() == count {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn cut(&mut self) {
        let cut = format!("SELECT pg_terminate_backend(pid) FROM ({}) AS l", self.listening);
        sqlx::raw_sql(AssertSqlSafe(cut)).execute(&mut self.connection).await.unwrap();
    }
}

/// Waits with one instance until an append of another wakes it.
async fn assert_woken(waiting: &Rheo, appending: &Rheo, admin: &mut Admin) {
    let wait = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.wait("s", "g", HOUR).await }
    });
    admin.sees_listening(1).await;
    while !wait.is_finished() {
        // More than one event: what arrives before the wait has begun may go unheard.
        appending.append("s", NewEvent::new("t", 1)).await.unwrap();
        tokio::task::yield_now().await;
    }
    wait.await.unwrap().unwrap();
    let mut left = 1;
    while left > 0 {
        left = waiting.fetch("s", "g", 10_000, FetchOptions::default()).await.unwrap().len();
    }
}

#[tokio::test]
async fn a_cut_connection_comes_back_and_wakes_again() {
    let started = rheo_conformance::servers::Postgres::start().await;
    let Some(server) = servers::found("postgres", started) else { return };
    let prefix = format!("w{:x}_", Timestamp::now().as_micros());
    let mut admin = Admin {
        connection: PgConnection::connect(server.url()).await.unwrap(),
        listening: format!(
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN \"{prefix}%'"
        ),
    };
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

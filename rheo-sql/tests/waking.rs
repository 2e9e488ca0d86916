//! Waking other processes through PostgreSQL, also after the connection that
//! listens was cut.

#![cfg(all(unix, feature = "postgres"))]

mod servers;

use std::time::Duration;

use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
use rheo_sql::{Options, Sql};
use sqlx::{Connection, PgConnection};

const HOUR: Duration = Duration::from_secs(3600);
/// Far less than the waits here.
const SOON: Duration = Duration::from_secs(20);

async fn instance(url: &str) -> Rheo {
    // Nobody polls here.
    let sql = Sql::connect_with(url, Options::default().poll(HOUR)).await.unwrap();
    Rheo::builder(sql).build().await.unwrap()
}

/// The backends that listen.
const LISTENING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";

/// Returns once as many connections listen.
async fn listening(admin: &mut PgConnection, count: usize) {
    while sqlx::query(LISTENING).fetch_all(&mut *admin).await.unwrap().len() != count {
        tokio::task::yield_now().await;
    }
}

/// Waits with one instance until an append of another wakes it.
async fn assert_woken(waiting: &Rheo, appending: &Rheo, admin: &mut PgConnection) {
    let wait = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.wait("s", "g", HOUR).await }
    });
    listening(admin, 1).await;
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
    let mut admin = PgConnection::connect(server.url()).await.unwrap();
    let (waiting, appending) = (instance(server.url()).await, instance(server.url()).await);
    waiting.create_stream("s", 1).await.unwrap();
    waiting.create_group("s", "g", GroupOptions::default()).await.unwrap();
    listening(&mut admin, 0).await;
    let test = async {
        for _ in 0..3 {
            assert_woken(&waiting, &appending, &mut admin).await;
            let cut = format!("SELECT pg_terminate_backend(pid) FROM ({LISTENING}) AS l");
            sqlx::raw_sql(sqlx::AssertSqlSafe(cut)).execute(&mut admin).await.unwrap();
        }
        assert_woken(&waiting, &appending, &mut admin).await;
        drop(waiting);
        listening(&mut admin, 0).await;
    };
    tokio::time::timeout(SOON, test)
        .await
        .expect("it is woken, and listens no longer than it lives");
}

//! What a database is asked to find is what the matcher says.

#![cfg(all(unix, any(feature = "sqlite", feature = "postgres", feature = "mysql")))]

use rheo_conformance::finding::{Plan, finds_what_the_matcher_says};
#[cfg(any(feature = "postgres", feature = "mysql"))]
use rheo_conformance::servers;
use rheo_sql::Sql;

/// Of few partitions, of more than one statement looks into, and of one that
/// is longer than a first walk.
const PLANS: [Plan<'static>; 3] = [
    Plan { stream: "short", partitions: 3, events: 300, queries: 300 },
    Plan { stream: "wide", partitions: 70, events: 800, queries: 50 },
    Plan { stream: "long", partitions: 1, events: 3000, queries: 50 },
];

async fn try_on(store: &str, url: &str) {
    let sql = Sql::connect(url).await.unwrap();
    finds_what_the_matcher_says(store, sql, &PLANS).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn on_sqlite() {
    try_on("sqlite", "sqlite::memory:").await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn on_postgres() {
    let Some(server) = servers::found("postgres", servers::Postgres::start().await) else { return };
    try_on("postgres", server.url()).await;
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn on_mysql() {
    let Some(server) = servers::found("mysql", servers::MariaDb::start().await) else { return };
    try_on("mysql", server.url()).await;
}

//! The queries of the documents, run as they stand there.

#![cfg(all(unix, feature = "postgres"))]

use std::time::Duration;

use rheo_conformance::servers;
use rheo_core::{Lineage, ManualClock, NewEvent, Rheo, Timestamp};
use rheo_sql::Sql;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool, Row};

const PAGE: &str = include_str!("../../docs/sql.md");

/// The queries of the page's section on the log, in their order.
fn queries() -> Vec<&'static str> {
    let (_, section) = PAGE.split_once("## The log in plain SQL").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

/// Orders of three countries, one before the day in question, and what came of one.
async fn fill(rheo: &Rheo, clock: &ManualClock) {
    rheo.create_stream("orders", 1).await.unwrap();
    rheo.create_stream("shipments", 1).await.unwrap();
    let order = |customer, country, total| {
        let customer = json!({"name": customer, "country": country});
        NewEvent::new("order.placed", json!({"customer": customer, "total": total}))
    };
    let checkout = Lineage::default().correlation_id("checkout-17");
    for (when, event) in [
        ("2026-02-28T23:59:59.999999Z", order("Ada", "NO", 12.5).key("Ada")),
        ("2026-03-01T00:00:00Z", order("Bob", "SE", 80.0).key("Bob").lineage(&checkout)),
        ("2026-03-02T09:30:00Z", NewEvent::new("order.cancelled", json!({"customer": "Bob"}))),
        ("2026-03-31T12:00:00.000001Z", order("Cleo", "NO", 7.0).key("Cleo")),
    ] {
        let to_go = when.parse::<Timestamp>().unwrap().as_micros() - clock.now().as_micros();
        clock.advance(Duration::from_micros(u64::try_from(to_go).unwrap()));
        rheo.append("orders", event).await.unwrap();
    }
    let shipment = NewEvent::new("shipment.sent", json!({"to": "Bob"})).lineage(&checkout);
    rheo.append("shipments", shipment).await.unwrap();
}

#[tokio::test]
async fn the_queries_of_the_page_find_what_they_say() {
    let started = servers::Postgres::start().await;
    let Some(server) = servers::found("postgres", started) else { return };
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let sql = Sql::connect(server.url()).await.unwrap();
    let rheo = Rheo::builder(sql).clock(clock.clone()).build().await.unwrap();
    fill(&rheo, &clock).await;

    let pool = PgPool::connect(server.url()).await.unwrap();
    let mut found = Vec::new();
    for query in queries() {
        let rows = sqlx::query(AssertSqlSafe(query)).fetch_all(&pool).await.unwrap();
        let first = |row: &sqlx::postgres::PgRow| row.get::<String, _>(0);
        found.push(rows.iter().map(first).collect::<Vec<_>>());
    }
    let expected: [&[&str]; 3] =
        [&["Bob", "Cleo"], &["Ada", "Cleo"], &["order.placed", "shipment.sent"]];
    assert_eq!(found, expected);
}

//! Orders and events in one transaction, in the database that you have anyway.
//!
//! An order's row and its event commit or vanish together. What a worker
//! writes and its ack commit or vanish together too, so each order is shipped
//! once, however often its event is delivered.
//!
//! ```sh
//! cargo run -p rheo --features sqlite --example outbox
//! ```

mod common;

use std::error::Error;
use std::time::Duration;

use rheo::sql::sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use rheo::sql::sqlx::{self, Sqlite, SqlitePool, Transaction};
use rheo::sql::{InTransaction, Options, Sql};
use rheo::{Delivery, ErrorKind, FetchOptions, GroupOptions, ManualClock, NewEvent, Outcome, Rheo};
use serde_json::json;

type Result<T> = std::result::Result<T, Box<dyn Error>>;
type Open = Transaction<'static, Sqlite>;

/// A shop: its database, and a log in that database.
struct Shop {
    database: SqlitePool,
    rheo: Rheo,
    stream: String,
}

#[tokio::main]
async fn main() -> Result<()> {
    let file = std::env::temp_dir().join(format!("rheo-outbox-{}.db", std::process::id()));
    let clock = ManualClock::new("2026-03-15T12:00:00Z".parse()?);
    let url = common::url(&format!("sqlite:{}", file.display()));
    let shop = Shop::open(&url, &clock).await?;

    println!("1. An order and its event");
    shop.order("Ada", "a lamp").await?.commit().await?;
    shop.tell("Ada's order is committed", [1, 1, 0]).await?;
    shop.order("Bob", "a piano").await?.rollback().await?;
    shop.tell("Bob's order is rolled back", [1, 1, 0]).await?;

    println!("\n2. A shipment and its ack");
    let slow = shop.next_order().await?;
    clock.advance(Duration::from_secs(60));
    let quick = shop.next_order().await?;
    assert_eq!(slow.event.id(), quick.event.id());
    println!("   a slow worker has the event, its lease expires, and a quick one has it too");
    shop.ship(&quick).await?.rollback().await?;
    shop.tell("the quick worker fails at the last moment", [1, 1, 0]).await?;
    shop.ship(&quick).await?.commit().await?;
    shop.tell("the quick worker tries again", [1, 0, 1]).await?;

    let late = shop.ship(&slow).await.expect_err("its lease is another's by now");
    let late = late.downcast::<rheo::Error>()?.kind();
    assert_eq!(late, ErrorKind::StaleLease);
    shop.tell(&format!("the slow worker is refused: {late}"), [1, 0, 1]).await?;

    shop.database.close().await;
    // There is none where a URL was given.
    let _ = std::fs::remove_file(file);
    Ok(())
}

impl Shop {
    /// Makes the shop's tables anew. Rheo borrows the shop's connections, and
    /// keeps its own tables beside.
    async fn open(url: &str, clock: &ManualClock) -> Result<Self> {
        let options = url.parse::<SqliteConnectOptions>()?.create_if_missing(true);
        let options = options.journal_mode(SqliteJournalMode::Wal);
        let database = SqlitePool::connect_with(options).await?;
        sqlx::raw_sql(
            "DROP TABLE IF EXISTS outbox_orders; CREATE TABLE outbox_orders (customer, item);
             DROP TABLE IF EXISTS outbox_shipments; CREATE TABLE outbox_shipments (customer, item);",
        )
        .execute(&database)
        .await?;

        let sql = Sql::on_pool(database.clone(), Options::default()).await?;
        let rheo = Rheo::builder(sql).clock(clock.clone()).build().await?;
        let stream = common::free_name(&rheo, "orders").await?;
        rheo.create_stream(&stream, 1).await?;
        rheo.create_group(&stream, "shipping", GroupOptions::default()).await?;
        Ok(Self { database, rheo, stream })
    }

    /// Writes an order and its event, for the caller to commit.
    async fn order(&self, customer: &str, item: &str) -> Result<Open> {
        let mut open = self.begin().await?;
        sqlx::query("INSERT INTO outbox_orders VALUES (?, ?)")
            .bind(customer)
            .bind(item)
            .execute(&mut *open)
            .await?;
        let event = NewEvent::new("order.placed", json!({"customer": customer, "item": item}));
        self.rheo.append_in(&mut open, &self.stream, event).await?;
        Ok(open)
    }

    async fn next_order(&self) -> Result<Delivery> {
        let options = FetchOptions::default();
        let orders = self.rheo.fetch(&self.stream, "shipping", 1, options).await?;
        Ok(orders.into_iter().next().ok_or("no order waits")?)
    }

    /// Writes a shipment and settles the order's lease, for the caller to commit.
    async fn ship(&self, order: &Delivery) -> Result<Open> {
        let payload = order.event.payload();
        let mut open = self.begin().await?;
        sqlx::query("INSERT INTO outbox_shipments VALUES (?, ?)")
            .bind(payload["customer"].as_str())
            .bind(payload["item"].as_str())
            .execute(&mut *open)
            .await?;
        self.rheo.settle_in(&mut open, &order.lease, Outcome::Ack).await?;
        Ok(open)
    }

    /// A transaction that is going to write says so when it begins, on SQLite.
    async fn begin(&self) -> Result<Open> {
        Ok(self.database.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Prints what happened, and how many orders, events to do and shipments
    /// there are now, which are as many as expected.
    async fn tell(&self, what: &str, expected: [u64; 3]) -> Result<()> {
        let counts = "SELECT (SELECT count(*) FROM outbox_orders),
            (SELECT count(*) FROM outbox_shipments)";
        let (orders, shipments): (i64, i64) =
            sqlx::query_as(counts).fetch_one(&self.database).await?;
        let lag = self.rheo.lag(&self.stream, "shipping").await?.total();
        assert_eq!([orders as u64, lag, shipments as u64], expected);
        println!("   {what}: orders {orders}, to ship {lag}, shipped {shipments}");
        Ok(())
    }
}

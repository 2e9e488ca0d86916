//! Kills a process in the middle of a transaction that is both its own and
//! Rheo's, and looks at the database from outside.

#![cfg(all(unix, any(feature = "sqlite", feature = "postgres", feature = "mysql")))]

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[cfg(any(feature = "postgres", feature = "mysql"))]
use rheo_conformance::servers;
use rheo_core::{
    Confirm, Delivery, ErrorKind, FetchOptions, GroupOptions, ManualClock, NewEvent, Outcome, Rheo,
};
use rheo_sql::{InTransaction, Options, Sql};

/// Where the clerk can be killed, and what there is then: orders, their
/// events, shipments, and events that are not settled.
const POINTS: [(&str, [u64; 4]); 6] = [
    ("the order is written", [0, 0, 0, 0]),
    ("the event is appended", [0, 0, 0, 0]),
    ("the order is committed", [1, 1, 0, 1]),
    ("the shipment is written", [1, 1, 0, 1]),
    ("the lease is settled", [1, 1, 0, 1]),
    ("the shipment is committed", [1, 1, 1, 0]),
];

const DONE: [u64; 4] = [1, 1, 1, 0];

/// An instance whose clock shows how many hours have passed.
async fn instance(sql: Arc<Sql>, hours: u64) -> Rheo {
    let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
    clock.advance(Duration::from_secs(3600 * hours));
    Rheo::builder(sql).clock(clock).build().await.unwrap()
}

async fn one_order(rheo: &Rheo) -> Option<Delivery> {
    let fetched = rheo.fetch("orders", "shipping", 1, FetchOptions::default()).await;
    fetched.unwrap().pop()
}

/// Says that the clerk has come to this point, and stays there if it is to be
/// killed there.
fn reach(point: &str) {
    eprintln!("{point}");
    while env::var("CLERK_STOPS").is_ok_and(|stop| stop == point) {
        std::thread::park();
    }
}

/// What differs from one database to the next, for the shop's own tables.
macro_rules! shop {
    ($module:ident, $feature:literal, $pool:ty, $begin:literal) => {
        #[cfg(feature = $feature)]
        mod $module {
            use super::*;

            /// Places the order unless it is there, and ships it unless that is done.
            pub(crate) async fn work(url: &str, hours: u64) {
                let pool = <$pool>::connect(url).await.unwrap();
                let sql = Sql::on_pool(pool.clone(), Options::default()).await.unwrap();
                let rheo = instance(sql, hours).await;
                if count(&pool).await.0 == 0 {
                    let mut tx = pool.begin_with($begin).await.unwrap();
                    let order = sqlx::query("INSERT INTO outbox_orders VALUES (7)");
                    order.execute(&mut *tx).await.unwrap();
                    reach("the order is written");
                    let event = NewEvent::new("order.placed", 7);
                    rheo.append_in(&mut tx, "orders", event).await.unwrap();
                    reach("the event is appended");
                    tx.commit().await.unwrap();
                    reach("the order is committed");
                }
                if let Some(order) = one_order(&rheo).await {
                    let mut tx = pool.begin_with($begin).await.unwrap();
                    let shipment = sqlx::query("INSERT INTO outbox_shipments VALUES (7)");
                    shipment.execute(&mut *tx).await.unwrap();
                    reach("the shipment is written");
                    rheo.settle_in(&mut tx, &order.lease, Outcome::Ack).await.unwrap();
                    reach("the lease is settled");
                    tx.commit().await.unwrap();
                    reach("the shipment is committed");
                }
            }

            /// How many orders and shipments there are.
            async fn count(pool: &$pool) -> (i64, i64) {
                let counts = "SELECT (SELECT count(*) FROM outbox_orders),
                    (SELECT count(*) FROM outbox_shipments)";
                sqlx::query_as(counts).fetch_one(pool).await.unwrap()
            }

            /// What an outsider sees.
            async fn look(url: &str, rheo: &Rheo) -> [u64; 4] {
                let pool = <$pool>::connect(url).await.unwrap();
                let (orders, shipments) = count(&pool).await;
                pool.close().await;
                let events = rheo.read("orders", 0, 0, 10).await.unwrap().len();
                let lag = rheo.lag("orders", "shipping").await.unwrap().total();
                [orders as u64, events as u64, shipments as u64, lag]
            }

            /// An empty shop.
            async fn open(url: &str, rheo: &Rheo) {
                let pool = <$pool>::connect(url).await.unwrap();
                for sql in [
                    "DROP TABLE IF EXISTS outbox_orders",
                    "DROP TABLE IF EXISTS outbox_shipments",
                    "CREATE TABLE outbox_orders (id BIGINT)",
                    "CREATE TABLE outbox_shipments (id BIGINT)",
                ] {
                    sqlx::query(sql).execute(&pool).await.unwrap();
                }
                pool.close().await;
                match rheo.delete_stream("orders", Confirm::Yes).await {
                    Err(error) if error.kind() != ErrorKind::StreamNotFound => panic!("{error}"),
                    _ => {}
                }
                rheo.create_stream("orders", 1).await.unwrap();
                let options = GroupOptions::default();
                rheo.create_group("orders", "shipping", options).await.unwrap();
            }

            /// Kills a clerk at each point; the next one finds all or nothing,
            /// and does the rest.
            pub(crate) async fn kill_clerks(url: &str) {
                let rheo = instance(Sql::connect(url).await.unwrap(), 2).await;
                for (point, left) in POINTS {
                    open(url, &rheo).await;
                    kill_at(point, start_clerk(url, point, 0));
                    assert_eq!(look(url, &rheo).await, left, "killed when {point}");
                    // By the next clerk's clock the lease of the first has expired.
                    assert!(start_clerk(url, "", 1).wait().unwrap().success());
                    assert_eq!(look(url, &rheo).await, DONE, "after one was killed when {point}");
                }
            }
        }
    };
}

shop!(sqlite, "sqlite", sqlx::SqlitePool, "BEGIN IMMEDIATE");
shop!(postgres, "postgres", sqlx::PgPool, "BEGIN");
shop!(mysql, "mysql", sqlx::MySqlPool, "BEGIN");

/// The process that is killed: this program again, with nothing but this test.
#[tokio::test]
#[ignore = "the other tests start it"]
async fn clerk() {
    let Ok(url) = env::var("CLERK_URL") else { return };
    let hours = env::var("CLERK_HOURS").unwrap().parse().unwrap();
    match url.split(':').next().unwrap() {
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite::work(&url, hours).await,
        #[cfg(feature = "postgres")]
        "postgres" => postgres::work(&url, hours).await,
        #[cfg(feature = "mysql")]
        "mysql" => mysql::work(&url, hours).await,
        scheme => panic!("no clerk for {scheme}"),
    }
}

fn start_clerk(url: &str, stop: &str, hours: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "clerk", "--ignored", "--nocapture"])
        .env("CLERK_URL", url)
        .env("CLERK_STOPS", stop)
        .env("CLERK_HOURS", hours.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the clerk is at this point, and kills it there.
fn kill_at(point: &str, mut clerk: Child) {
    let mut told = String::new();
    for line in BufReader::new(clerk.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == point {
            // That is SIGKILL: nothing of the process runs any more.
            clerk.kill().unwrap();
            clerk.wait().unwrap();
            return;
        }
        told += &format!("{line}\n");
    }
    panic!("the clerk ended before {point:?}:\n{told}");
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn all_or_nothing_on_sqlite() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("killed.db");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    sqlite::kill_clerks(&format!("sqlite:{}", file.display())).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn all_or_nothing_on_postgres() {
    let started = servers::Postgres::start().await;
    if let Some(server) = servers::found("postgres", started) {
        postgres::kill_clerks(server.url()).await;
    }
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn all_or_nothing_on_mysql() {
    let started = servers::MariaDb::start().await;
    if let Some(server) = servers::found("mysql", started) {
        mysql::kill_clerks(server.url()).await;
    }
}

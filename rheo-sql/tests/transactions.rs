//! The user's own transactions, ended and unended, and callers that give up.

#![cfg(all(unix, feature = "sqlite", feature = "postgres", feature = "mysql"))]

use std::time::Duration;

use rheo_conformance::servers;
use rheo_core::{Delivery, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Rheo};
use rheo_sql::{Conn, InTransaction, Options, Sql};
use sqlx::sqlite::SqlitePoolOptions;
use sqlx::{Database, MySqlPool, PgPool, Pool, Transaction};

/// A transaction of a database that can be joined.
trait Joined: Database {
    fn conn<'c>(transaction: &'c mut Transaction<'static, Self>) -> Conn<'c>;
}

macro_rules! joined {
    ($($database:ident)+) => {$(
        impl Joined for sqlx::$database {
            fn conn<'c>(transaction: &'c mut Transaction<'static, Self>) -> Conn<'c> {
                transaction.into()
            }
        }
    )+};
}

joined!(Sqlite Postgres MySql);

/// A stream `s` of two partitions with a group `g`.
async fn instance(sql: std::sync::Arc<Sql>) -> Rheo {
    let rheo = Rheo::builder(sql).build().await.unwrap();
    rheo.create_stream("s", 2).await.unwrap();
    rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    rheo
}

fn event(number: u32) -> NewEvent {
    NewEvent::new("t", number).partition(0)
}

async fn payloads(rheo: &Rheo, partition: u32) -> Vec<u64> {
    let events = rheo.read("s", partition, 0, 1000).await.unwrap();
    assert!(events.iter().map(|event| event.sequence()).eq(1..=events.len() as u64));
    events.iter().map(|event| event.payload().as_u64().unwrap()).collect()
}

async fn fetch_one(rheo: &Rheo) -> Delivery {
    rheo.fetch("s", "g", 1, FetchOptions::default()).await.unwrap().remove(0)
}

/// What is rolled back was never there, and its sequence goes to the next event.
async fn a_rolled_back_append_leaves_nothing<DB: Joined>(rheo: &Rheo, pool: &Pool<DB>) {
    let mut transaction = pool.begin().await.unwrap();
    let first = rheo.append_in(DB::conn(&mut transaction), "s", event(1)).await.unwrap();
    let both = vec![event(2), event(3)];
    let others = rheo.append_batch_in(DB::conn(&mut transaction), "s", both).await.unwrap();
    assert_eq!((first.sequence(), others[1].sequence()), (1, 3));
    transaction.rollback().await.unwrap();
    assert_eq!(payloads(rheo, 0).await, [0; 0]);

    let mut transaction = pool.begin().await.unwrap();
    rheo.append_in(DB::conn(&mut transaction), "s", event(4)).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(rheo.append("s", event(5)).await.unwrap().sequence(), 2);
    assert_eq!(payloads(rheo, 0).await, [4, 5]);
}

/// A lease that was settled in a transaction ends with its commit, and not without it.
async fn a_settle_ends_with_its_transaction<DB: Joined>(rheo: &Rheo, pool: &Pool<DB>) {
    let delivery = fetch_one(rheo).await;
    for commits in [false, true] {
        let mut transaction = pool.begin().await.unwrap();
        let conn = DB::conn(&mut transaction);
        rheo.settle_in(conn, &delivery.lease, Outcome::Ack).await.unwrap();
        if commits {
            transaction.commit().await.unwrap();
        } else {
            transaction.rollback().await.unwrap();
            assert_eq!(rheo.group_info("s", "g").await.unwrap().leased(), 1);
        }
    }
    assert_eq!(rheo.ack(&delivery).await.unwrap_err().kind(), ErrorKind::StaleLease);
    let mut transaction = pool.begin().await.unwrap();
    let again = rheo.settle_in(DB::conn(&mut transaction), &delivery.lease, Outcome::Ack).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::StaleLease);
    transaction.rollback().await.unwrap();
    let last = fetch_one(rheo).await;
    rheo.ack(&last).await.unwrap();
    assert_eq!(rheo.group_info("s", "g").await.unwrap().lag(), 0);
}

/// An open transaction holds up appends to its partition alone; nobody reads
/// past it, and what waited comes after it.
async fn a_slow_transaction_delays_its_partition_only<DB: Joined>(rheo: &Rheo, pool: &Pool<DB>) {
    let before = payloads(rheo, 0).await;
    let mut transaction = pool.begin().await.unwrap();
    rheo.append_in(DB::conn(&mut transaction), "s", event(6)).await.unwrap();
    let append = |number| {
        let rheo = rheo.clone();
        tokio::spawn(async move { rheo.append("s", event(number)).await })
    };
    let waiting = [append(7), append(8)];
    tokio::task::yield_now().await;
    rheo.append("s", NewEvent::new("t", 9).partition(1)).await.unwrap();
    assert_eq!(payloads(rheo, 1).await, [9]);
    assert_eq!(payloads(rheo, 0).await, before);
    assert!(!waiting.iter().any(|append| append.is_finished()));
    transaction.commit().await.unwrap();
    for append in waiting {
        append.await.unwrap().unwrap();
    }
    assert_eq!(payloads(rheo, 0).await, [&before[..], &[6, 7, 8]].concat());
}

/// Appends that are dropped at any point leave the only connection usable.
async fn dropped_appends_leave_the_pool_usable(rheo: &Rheo) {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for number in 0..60 {
        let pause = Duration::from_micros(rng.u64(0..2000));
        let _ = tokio::time::timeout(pause, rheo.append("s", event(number))).await;
    }
    let last = rheo.append("s", event(99)).await.unwrap();
    let payloads = payloads(rheo, 0).await;
    assert_eq!(payloads.len() as u64, last.sequence());
    assert_eq!(payloads.last(), Some(&99));
}

async fn all<DB: Joined>(sql: std::sync::Arc<Sql>, pool: &Pool<DB>) {
    let rheo = instance(sql).await;
    a_rolled_back_append_leaves_nothing(&rheo, pool).await;
    a_settle_ends_with_its_transaction(&rheo, pool).await;
    dropped_appends_leave_the_pool_usable(&rheo).await;
}

#[tokio::test]
async fn transactions_on_sqlite() {
    let file = std::env::temp_dir().join(format!("rheo-transactions-{}", std::process::id()));
    let url = format!("sqlite:{}", file.display());
    let sql = Sql::connect_with(&url, Options::default().max_connections(1)).await.unwrap();
    let pool = SqlitePoolOptions::new().max_connections(1).connect(&url).await.unwrap();
    all(sql, &pool).await;
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
}

#[tokio::test]
async fn transactions_on_postgres() {
    let started = servers::Postgres::start().await;
    let Some(server) = servers::found("postgres", started) else { return };
    let one = Options::default().max_connections(1).table_prefix("one_");
    let pool = PgPool::connect(server.url()).await.unwrap();
    all(Sql::connect_with(server.url(), one).await.unwrap(), &pool).await;
    let rheo = instance(Sql::connect(server.url()).await.unwrap()).await;
    a_slow_transaction_delays_its_partition_only(&rheo, &pool).await;
}

#[tokio::test]
async fn transactions_on_mysql() {
    let started = servers::MariaDb::start().await;
    let Some(server) = servers::found("mysql", started) else { return };
    let one = Options::default().max_connections(1).table_prefix("one_");
    let pool = MySqlPool::connect(server.url()).await.unwrap();
    all(Sql::connect_with(server.url(), one).await.unwrap(), &pool).await;
    let rheo = instance(Sql::connect(server.url()).await.unwrap()).await;
    a_slow_transaction_delays_its_partition_only(&rheo, &pool).await;
}

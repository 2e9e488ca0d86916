//! Events that somebody deletes from the table behind Rheo's back.

#![cfg(feature = "sqlite")]

use rheo_core::{
    Delivery, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Position, Replay,
    ReplayOptions, Rheo,
};
use rheo_sql::{Options, Sql};
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};

/// A stream `s` of five events with a group `g`, and the pool beneath.
async fn store() -> (Rheo, SqlitePool) {
    let one = SqlitePoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let pool = one.connect("sqlite::memory:").await.unwrap();
    let sql = Sql::on_pool(pool.clone(), Options::default()).await.unwrap();
    let rheo = Rheo::builder(sql).build().await.unwrap();
    rheo.create_stream("s", 1).await.unwrap();
    rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    let events = (1..=5).map(|number| NewEvent::new("t", number)).collect();
    rheo.append_batch("s", events).await.unwrap();
    (rheo, pool)
}

async fn delete(pool: &SqlitePool, sequence: i64) {
    let deletion = sqlx::query("DELETE FROM rheo_events WHERE sequence = ?").bind(sequence);
    assert_eq!(deletion.execute(pool).await.unwrap().rows_affected(), 1);
}

async fn fetch(rheo: &Rheo) -> Vec<Delivery> {
    rheo.fetch("s", "g", 10, FetchOptions::default()).await.unwrap()
}

fn sequences(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.event.sequence()).collect()
}

/// It is never handed out, blocks nothing, and is told as what it is.
#[tokio::test]
async fn a_vanished_event_is_a_dead_letter() {
    let (rheo, pool) = store().await;
    delete(&pool, 2).await;
    let deliveries = fetch(&rheo).await;
    assert_eq!(sequences(&deliveries), [1, 3, 4, 5]);
    for answer in rheo.settle(deliveries.iter().map(|one| (one, Outcome::Ack))).await {
        answer.unwrap();
    }
    let info = rheo.group_info("s", "g").await.unwrap();
    assert_eq!((info.lag(), info.leased(), info.dead_letters()), (0, 0, 1));
    let error = rheo.dead_letters("s", "g", 10, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.context().contains("0-2"), "{error}");
    let after = Some(Position::new(0, 2));
    assert_eq!(rheo.dead_letters("s", "g", 10, after).await.unwrap(), []);
}

/// A dead letter whose event vanishes hides none of the others, which can be replayed.
#[tokio::test]
async fn a_vanished_dead_letter_hides_no_other() {
    let (rheo, pool) = store().await;
    let deliveries = fetch(&rheo).await;
    for answer in rheo.settle(deliveries.iter().map(|one| (one, Outcome::reject("no")))).await {
        answer.unwrap();
    }
    for sequence in [1, 3, 5] {
        delete(&pool, sequence).await;
    }
    for (limit, after, listed) in [(1, None, vec![2]), (1, Some(2), vec![4]), (9, None, vec![2, 4])]
    {
        let after = after.map(|sequence| Position::new(0, sequence));
        let letters = rheo.dead_letters("s", "g", limit, after).await.unwrap();
        let found: Vec<_> = letters.iter().map(|letter| letter.event.sequence()).collect();
        assert_eq!(found, listed);
    }
    let last = Some(Position::new(0, 4));
    let error = rheo.dead_letters("s", "g", 9, last).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    rheo.replay("s", "g", Replay::DeadLetters, ReplayOptions::default()).await.unwrap();
    assert_eq!(sequences(&fetch(&rheo).await), [2, 4]);
    assert_eq!(rheo.group_info("s", "g").await.unwrap().dead_letters(), 3);
}

//! What ends a wait, and what ends with a stream that is deleted.

use std::time::Duration;

use rheo_core::{
    Confirm, ErrorKind, FetchOptions, GroupOptions, ManualClock, NewEvent, Result, Rheo, Timestamp,
};
use rheo_ets::Memory;
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(600);

/// A stream of four partitions with one group, by a clock that stands still.
async fn set_up() -> Result<Rheo> {
    let clock = ManualClock::new(Timestamp::from_micros(0));
    let rheo = Rheo::builder(Memory::new()).clock(clock).build().await?;
    rheo.create_stream("s", 4).await?;
    rheo.create_group("s", "g", GroupOptions::default()).await?;
    Ok(rheo)
}

/// A wait under way, which has found nothing.
async fn waiting(rheo: &Rheo) -> JoinHandle<Result<()>> {
    let waiter = rheo.clone();
    let wait = tokio::spawn(async move { waiter.wait("s", "g", LONG).await });
    tokio::task::yield_now().await;
    assert!(!wait.is_finished());
    wait
}

fn event() -> NewEvent {
    NewEvent::new("t", 0)
}

#[tokio::test]
async fn an_append_ends_a_wait() -> Result<()> {
    let rheo = set_up().await?;
    let wait = waiting(&rheo).await;
    rheo.append("s", event().partition(3)).await?;
    wait.await.unwrap()?;
    // What is there already is not waited for.
    rheo.wait("s", "g", LONG).await
}

#[tokio::test]
async fn a_settle_that_hands_back_ends_a_wait_and_others_do_not() -> Result<()> {
    let rheo = set_up().await?;
    rheo.append_batch("s", vec![event(), event()]).await?;
    let deliveries = rheo.fetch("s", "g", 9, FetchOptions::default()).await?;
    let wait = waiting(&rheo).await;
    rheo.ack(&deliveries[0]).await?;
    tokio::task::yield_now().await;
    assert!(!wait.is_finished());
    rheo.release(&deliveries[1]).await?;
    wait.await.unwrap()
}

#[tokio::test]
async fn an_ack_ends_the_wait_of_an_ordered_group() -> Result<()> {
    let rheo = set_up().await?;
    rheo.delete_group("s", "g", Confirm::Yes).await?;
    rheo.create_group("s", "g", GroupOptions::default().ordered(true)).await?;
    rheo.append_batch("s", vec![event(), event()]).await?;
    let deliveries = rheo.fetch("s", "g", 1, FetchOptions::default()).await?;
    let wait = waiting(&rheo).await;
    rheo.ack(&deliveries[0]).await?;
    wait.await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_expires_ends_a_wait_by_the_stores_clock() -> Result<()> {
    let rheo = Rheo::builder(Memory::new()).build().await?;
    rheo.create_stream("s", 1).await?;
    rheo.create_group("s", "g", GroupOptions::default()).await?;
    rheo.append("s", event()).await?;
    let options = FetchOptions::default().lease(Duration::from_secs(60));
    rheo.fetch("s", "g", 1, options).await?;
    let begun = tokio::time::Instant::now();
    rheo.wait("s", "g", LONG).await?;
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(50) && waited < Duration::from_secs(70), "{waited:?}");
    Ok(())
}

#[tokio::test]
async fn a_deletion_ends_a_wait() -> Result<()> {
    for whole_stream in [true, false] {
        let rheo = set_up().await?;
        let wait = waiting(&rheo).await;
        let missing = if whole_stream {
            rheo.delete_stream("s", Confirm::Yes).await?;
            ErrorKind::StreamNotFound
        } else {
            rheo.delete_group("s", "g", Confirm::Yes).await?;
            ErrorKind::GroupNotFound
        };
        assert_eq!(wait.await.unwrap().unwrap_err().kind(), missing);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_under_way_and_a_deletion_do_not_hinder_each_other() -> Result<()> {
    let rheo = set_up().await?;
    let append = |partition| {
        let rheo = rheo.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = rheo.append("s", event().partition(partition)).await {
                    return error.kind();
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let appends: Vec<_> = (0..4).map(append).collect();
    rheo.delete_stream("s", Confirm::Yes).await?;
    for append in appends {
        assert_eq!(append.await.unwrap(), ErrorKind::StreamNotFound);
    }
    Ok(())
}

#[tokio::test]
async fn a_busy_partition_starves_no_other() -> Result<()> {
    let rheo = set_up().await?;
    for partition in 0..4 {
        let count = if partition == 0 { 100 } else { 1 };
        let events = (0..count).map(|_| event().partition(partition)).collect();
        rheo.append_batch("s", events).await?;
    }
    let mut seen = [0; 4];
    for _ in 0..4 {
        for delivery in rheo.fetch("s", "g", 10, FetchOptions::default()).await? {
            seen[delivery.event.partition() as usize] += 1;
        }
    }
    assert_eq!(seen[1..], [1, 1, 1]);
    Ok(())
}

//! The handle's settings at their ends.

use std::time::Duration;

use rheo_core::{Error, ErrorKind, FetchOptions, GroupOptions, NewEvent, Rheo};
use rheo_ets::Memory;

#[tokio::test]
async fn times_without_end_do_not_overflow() -> Result<(), Error> {
    let builder = Rheo::builder(Memory::new()).timeout(Duration::MAX).lease(Duration::MAX);
    let rheo = builder.build().await?;
    rheo.create_stream("s", 1).await?;
    rheo.create_group("s", "g", GroupOptions::default()).await?;
    rheo.append("s", NewEvent::new("t", 0)).await?;
    let deliveries = rheo.fetch("s", "g", 1, FetchOptions::default()).await?;
    rheo.retry(&deliveries[0], "never", Duration::MAX).await?;
    assert_eq!(rheo.group_info("s", "g").await?.waiting(), 1);
    rheo.append("s", NewEvent::new("t", 1)).await?;
    rheo.wait("s", "g", Duration::MAX).await?;
    let consumer = rheo.consumer("s", "g").handler_timeout(Duration::MAX);
    let consumer = consumer.poll_interval(Duration::MAX).start(async |_| ()).await?;
    assert!(consumer.drain(Duration::MAX).await?.left.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_lease_below_a_microsecond_is_none() {
    let builder = Rheo::builder(Memory::new()).lease(Duration::from_nanos(999));
    assert_eq!(builder.build().await.unwrap_err().kind(), ErrorKind::Config);
}

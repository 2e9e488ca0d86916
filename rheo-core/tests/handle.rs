//! The handle's settings at their ends, and what it gives to adapters.

use std::time::Duration;

use rheo_core::backend::Backend;
use rheo_core::{
    Confirm, Error, ErrorKind, Event, FetchOptions, GroupOptions, NewEvent, Outcome, Rheo,
};
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

#[tokio::test]
async fn a_backend_is_reached_by_its_type() -> Result<(), Error> {
    let memory = Memory::new();
    let rheo = Rheo::builder(memory.clone()).build().await?;
    assert!(std::ptr::eq(rheo.backend::<Memory>().expect("it is one"), &*memory));
    Ok(())
}

#[tokio::test]
async fn resolved_requests_are_those_of_the_operations() -> Result<(), Error> {
    let rheo = Rheo::builder(Memory::new()).build().await?;
    let memory = rheo.backend::<Memory>().expect("it is one");
    for stream in ["s", "t"] {
        rheo.create_stream(stream, 4).await?;
        rheo.create_group(stream, "g", GroupOptions::default()).await?;
        let event = |n: u64| NewEvent::new("t", n).key(format!("key {n}"));
        let request = rheo.resolve_append(stream, (0..3).map(event)).await?;
        let resolved = memory.append(&request).await?;
        let appended = rheo.append_batch(stream, (0..3).map(event).collect()).await?;
        let place = |event: &Event| (event.partition(), event.payload().clone());
        assert!(resolved.iter().map(place).eq(appended.iter().map(place)));
    }
    let mut leases = rheo.fetch("s", "g", 2, FetchOptions::default()).await?;
    leases.extend(rheo.fetch("t", "g", 1, FetchOptions::default()).await?);
    leases.swap(1, 2);
    let requests = rheo.resolve_settle(leases.iter().map(|lease| (lease, Outcome::Ack))).await?;
    assert_eq!(requests.iter().map(|one| one.settlements.len()).collect::<Vec<_>>(), [2, 1]);
    for request in &requests {
        assert!(memory.settle(request).await?.iter().all(Result::is_ok));
    }
    let answers = rheo.settle(leases.iter().map(|lease| (lease, Outcome::Ack))).await;
    assert!(answers.iter().all(|answer| kind(answer) == Some(ErrorKind::StaleLease)));
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_appended_is_not_resolved() -> Result<(), Error> {
    let rheo = Rheo::builder(Memory::new()).event_bytes(100).build().await?;
    rheo.create_stream("s", 1).await?;
    let large = NewEvent::new("t", "x".repeat(100));
    for (stream, event, expected) in [
        ("s", large, ErrorKind::EventTooLarge),
        ("s", NewEvent::new("t", 0).partition(1), ErrorKind::Invalid),
        ("nowhere", NewEvent::new("t", 0), ErrorKind::StreamNotFound),
    ] {
        assert_eq!(kind(&rheo.resolve_append(stream, [event]).await), Some(expected));
    }
    assert!(rheo.resolve_append("s", []).await?.events.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_forgotten_stream_is_looked_up_again() -> Result<(), Error> {
    let memory = Memory::new();
    let rheo = Rheo::builder(memory.clone()).build().await?;
    rheo.create_stream("s", 1).await?;
    let other = Rheo::builder(memory.clone()).build().await?;
    other.delete_stream("s", Confirm::Yes).await?;
    other.create_stream("s", 2).await?;
    let request = rheo.resolve_append("s", [NewEvent::new("t", 0)]).await?;
    assert_eq!(kind(&memory.append(&request).await), Some(ErrorKind::StreamNotFound));
    rheo.forget_stream(&request.stream.name);
    let request = rheo.resolve_append("s", [NewEvent::new("t", 0).partition(1)]).await?;
    assert_eq!(memory.append(&request).await?.len(), 1);
    Ok(())
}

fn kind<T>(result: &Result<T, Error>) -> Option<ErrorKind> {
    result.as_ref().err().map(Error::kind)
}

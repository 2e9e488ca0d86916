//! [`Trial`]: what a case works with.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rheo_core::backend::Backend;
use rheo_core::{
    Builder, Capabilities, DeadLetter, Delivery, ErrorKind, Event, FetchOptions, GroupInfo,
    GroupOptions, ManualClock, NewEvent, Outcome, Result, Rheo,
};
use serde_json::json;

use crate::{Harness, Proxy};

/// How long a condition that needs real time may take to come true.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a case works with: a space of its own in the store, a manual clock
/// that all its clients share, and a seed.
#[derive(Clone)]
pub struct Trial {
    harness: Arc<dyn Harness>,
    space: String,
    clock: ManualClock,
    seed: u64,
    alone: bool,
}

impl Trial {
    pub(crate) fn new(harness: Arc<dyn Harness>, space: String, seed: u64, alone: bool) -> Self {
        let start = "2026-03-15T12:00:00Z".parse().expect("it is an instant");
        Self { harness, space, clock: ManualClock::new(start), seed, alone }
    }

    /// The clock of all clients that [`rheo`](Self::rheo) opens.
    pub(crate) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Moves the clock on.
    pub(crate) fn advance_secs(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    pub(crate) fn advance_micros(&self, micros: u64) {
        self.clock.advance(Duration::from_micros(micros));
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn rng(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }

    /// One more raw client of the space.
    pub(crate) async fn backend(&self) -> Arc<dyn Backend> {
        self.harness.open(&self.space).await.expect("the store opens a client")
    }

    pub(crate) async fn capabilities(&self) -> Capabilities {
        self.backend().await.capabilities()
    }

    /// A builder over one more client, with the system's clock.
    pub(crate) async fn builder(&self) -> Builder {
        Rheo::builder(self.backend().await)
    }

    /// One more client, with the shared manual clock.
    pub(crate) async fn rheo(&self) -> Rheo {
        let builder = self.builder().await.clock(self.clock.clone());
        builder.build().await.expect("the store is made ready")
    }

    /// One more client, with the store's own time.
    pub(crate) async fn rheo_on_store_time(&self) -> Rheo {
        self.builder().await.build().await.expect("the store is made ready")
    }

    /// A client, and a stream `s` of so many partitions with a group `g`.
    pub(crate) async fn with_group(&self, partitions: u32, options: GroupOptions) -> Rheo {
        let rheo = self.rheo().await;
        rheo.create_stream("s", partitions).await.expect("the stream is new");
        rheo.create_group("s", "g", options).await.expect("the group is new");
        rheo
    }

    /// Ends the store as a crash would, and starts it again.
    pub(crate) async fn crash(&self) {
        self.assert_alone();
        self.harness.crash(&self.space).await.expect("the store starts again");
    }

    /// What lies between the store and its clients, where there is anything.
    pub(crate) fn proxy(&self) -> Option<&Proxy> {
        self.assert_alone();
        self.harness.proxy()
    }

    fn assert_alone(&self) {
        assert!(self.alone, "a case that breaks what others use runs alone");
    }
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial")
            .field("store", &self.harness.store())
            .field("space", &self.space)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Events of partition 0 with payload `{"n": 1}`, `{"n": 2}`, ….
pub(crate) fn numbered(count: u64) -> Vec<NewEvent> {
    (1..=count).map(|n| NewEvent::new("numbered", json!({ "n": n }))).collect()
}

/// Appends `count` numbered events to stream `s`, all to one partition.
pub(crate) async fn append_to(rheo: &Rheo, partition: u32, count: u64) -> Vec<Event> {
    let events = numbered(count).into_iter().map(|event| event.partition(partition)).collect();
    rheo.append_batch("s", events).await.expect("the events are appended")
}

/// Fetches for group `g` of stream `s`, with a lease of 5 s.
pub(crate) async fn fetch(rheo: &Rheo, limit: usize) -> Vec<Delivery> {
    let options = FetchOptions::default().lease(Duration::from_secs(5));
    rheo.fetch("s", "g", limit, options).await.expect("the fetch succeeds")
}

/// A client with group `g` of stream `s`, and so many events of it that it holds.
pub(crate) async fn holding(trial: &Trial, count: u64) -> (Rheo, Vec<Delivery>) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, count).await;
    let deliveries = fetch(&rheo, 10_000).await;
    assert_eq!(deliveries.len() as u64, count);
    (rheo, deliveries)
}

pub(crate) fn sequences(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.event.sequence()).collect()
}

pub(crate) fn attempts(deliveries: &[Delivery]) -> Vec<u32> {
    deliveries.iter().map(|delivery| delivery.lease.attempt()).collect()
}

/// Waits, in real time and with bounded patience, until `condition` holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let come_true = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, come_true).await;
    assert!(in_time.is_ok(), "within {PATIENCE:?} it never came true that {what}");
}

/// The kind of the error that a call is expected to fail with.
#[track_caller]
pub(crate) fn failure<T>(result: Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error.kind(),
    }
}

/// The settings and progress of group `g` of stream `s`.
pub(crate) async fn info(rheo: &Rheo) -> GroupInfo {
    rheo.group_info("s", "g").await.expect("the group is there")
}

/// The frontier of group `g` of stream `s` in each partition.
pub(crate) async fn frontiers(rheo: &Rheo) -> Vec<u64> {
    info(rheo).await.partitions.iter().map(|partition| partition.frontier).collect()
}

/// The dead letters of group `g` of stream `s`: sequence, attempt and reason.
pub(crate) async fn dead(rheo: &Rheo) -> Vec<(u64, u32, String)> {
    let letters = rheo.dead_letters("s", "g", 10_000, None).await.expect("the list is read");
    let parts = |letter: DeadLetter| (letter.event.sequence(), letter.attempt, letter.reason);
    letters.into_iter().map(parts).collect()
}

/// Acks all of these.
pub(crate) async fn ack_all(rheo: &Rheo, deliveries: &[Delivery]) {
    for answer in rheo.settle(deliveries.iter().map(|delivery| (delivery, Outcome::Ack))).await {
        answer.expect("the lease is current");
    }
}

/// Fetches and acks until nothing comes, and returns what came.
pub(crate) async fn drain(rheo: &Rheo) -> Vec<Delivery> {
    let mut drained = Vec::new();
    loop {
        let deliveries = fetch(rheo, 1000).await;
        if deliveries.is_empty() {
            return drained;
        }
        ack_all(rheo, &deliveries).await;
        drained.extend(deliveries);
        // Lets the case's time limit end a drain that never does.
        tokio::task::yield_now().await;
    }
}

/// What a call answers within `polls` polls; after them it is dropped.
pub(crate) async fn polled_at_most<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let mut call = pin!(call);
    let mut left = polls;
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match call.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

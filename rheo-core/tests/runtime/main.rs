//! Running consumers, law by law, on the in-memory backend.

mod consumer;
mod drain;
mod faults;
mod flaky;
mod ordered;
mod subscription;

use std::sync::Arc;
use std::time::Duration;

use rheo_core::{GroupOptions, ManualClock, NewEvent, Rheo, Timestamp};
use serde_json::json;

use crate::flaky::Flaky;

pub(crate) const LEASE: Duration = Duration::from_secs(10);

/// An instance on a manual clock over a store that fails when told to, with a
/// stream `s` of one partition and a group `g`.
pub(crate) struct Bench {
    pub(crate) rheo: Rheo,
    pub(crate) store: Arc<Flaky>,
    pub(crate) clock: ManualClock,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_group(GroupOptions::default()).await
    }

    pub(crate) async fn with_group(options: GroupOptions) -> Self {
        let clock = ManualClock::new(Timestamp::from_micros(1_800_000_000_000_000));
        let store = Flaky::new();
        let rheo =
            Rheo::builder(store.clone()).clock(clock.clone()).lease(LEASE).build().await.unwrap();
        rheo.create_stream("s", 1).await.unwrap();
        rheo.create_group("s", "g", options).await.unwrap();
        Self { rheo, store, clock }
    }

    /// Another process: its own instance over the same store and clock.
    pub(crate) async fn other(&self) -> Rheo {
        Rheo::builder(self.store.clone())
            .clock(self.clock.clone())
            .lease(LEASE)
            .build()
            .await
            .unwrap()
    }

    pub(crate) async fn append(&self, count: u64) {
        let events = (1..=count).map(|n| NewEvent::new("t", json!({ "n": n }))).collect();
        self.rheo.append_batch("s", events).await.unwrap();
    }

    pub(crate) async fn lag(&self) -> u64 {
        self.rheo.lag("s", "g").await.unwrap().total()
    }

    pub(crate) async fn drained(&self) {
        eventually(async || self.lag().await == 0).await;
    }

    /// Moves the clock by half a lease, and waits until that has led to a renewal.
    pub(crate) async fn half_a_lease(&self) {
        let before = self.store.renewals();
        self.clock.advance(LEASE / 2);
        eventually(async || self.store.renewals() > before).await;
    }
}

/// Waits until the condition holds, and fails where it does not within ten seconds.
pub(crate) async fn eventually(condition: impl AsyncFn() -> bool) {
    let holds = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    in_time(holds).await;
}

/// Awaits what must come within ten seconds.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("it comes in time")
}

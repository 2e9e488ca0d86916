//! The feed: claims events while there is room for them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};

use super::backoff::Backoff;
use super::engine::Engine;
use crate::Result;

/// Claims until the engine is stopped.
pub(super) async fn run(engine: Arc<Engine>) {
    let mut after_failure = Backoff::after_failure();
    let mut after_nothing = Backoff::new(Duration::from_millis(1), Duration::from_millis(100));
    // Whether the last claim got all it asked for: then there probably is more.
    let mut plenty = true;
    // How often in a row we were woken early and found nothing.
    let mut in_vain = 0;
    while let Some(limit) = engine.room().await {
        let claimed = if plenty {
            engine.claim(limit).await.map(|claimed| (claimed, true))
        } else {
            engine.claim_or_wait(limit).await
        };
        match claimed {
            Ok((0, early)) => in_vain = if early && !plenty { in_vain + 1 } else { 0 },
            Ok(_) => in_vain = 0,
            Err(error) => {
                engine.failed(&error);
                engine.unless_stopped(after_failure.pause()).await;
                continue;
            }
        }
        after_failure.reset();
        plenty = claimed.is_ok_and(|(claimed, _)| claimed >= limit);
        if in_vain > 1 {
            engine.unless_stopped(after_nothing.pause()).await;
        } else {
            after_nothing.reset();
        }
    }
    engine.ledger().feed_ended();
    engine.changed();
}

impl Engine {
    /// How many events to claim, once it is time to; none when stopped.
    async fn room(&self) -> Option<usize> {
        loop {
            {
                let ledger = self.ledger();
                if ledger.stopping() {
                    return None;
                }
                if let Some(room) = ledger.room(self.settings.max_demand, self.time.elapsed()) {
                    return Some(room);
                }
            }
            self.room.notified().await;
        }
    }

    /// Claims once. Never dropped half-way by a stop: what it yields then goes
    /// back at once instead of by expiry.
    async fn claim(&self, limit: usize) -> Result<usize> {
        let asked = self.time.elapsed();
        let fetch = self.settings.fetch.clone();
        let (stream, group) = (self.stream.as_str(), self.group.as_str());
        let deliveries = self.rheo.fetch(stream, group, limit, fetch).await?;
        let claimed = deliveries.len();
        {
            let mut vitals = self.vitals();
            vitals.answered();
            vitals.counts.fetched += claimed as u64;
        }
        if claimed > 0 {
            self.ledger().grant(deliveries, asked);
            self.granted.notify_one();
            self.changed();
        }
        Ok(claimed)
    }

    /// Claims, and where there is nothing waits until there may be. The
    /// waiting begins before the claim, so that what arrives in between is
    /// not missed. Also tells whether the wait ended before its time.
    async fn claim_or_wait(&self, limit: usize) -> Result<(usize, bool)> {
        let mut woken = pin!(self.woken());
        match select(woken.as_mut(), pin!(self.claim(limit))).await {
            Either::Left((early, claim)) => Ok((claim.await?, early)),
            Either::Right((Ok(0), _)) => Ok((0, self.unless_stopped(woken).await.unwrap_or(false))),
            Either::Right((claimed, _)) => Ok((claimed?, true)),
        }
    }

    /// Returns whether something woke it before the poll interval was over.
    async fn woken(&self) -> bool {
        let hint = async {
            let settings = &self.settings;
            let (stream, group) = (self.stream.as_str(), self.group.as_str());
            let waking = self.rheo.settings().waking;
            if !waking || self.rheo.wait(stream, group, settings.poll_interval).await.is_err() {
                // Without hints it goes at poll speed.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = self.reopened.notified() => true,
            () = self.time.pause(self.settings.poll_interval) => false,
            () = hint => true,
        }
    }

    async fn unless_stopped<T>(&self, waiting: impl Future<Output = T>) -> Option<T> {
        self.stop.run_until_cancelled(waiting).await
    }
}

//! [`Stopwatch`]: the local time by which leases are kept.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Clock, Now, Timestamp};

/// Measures from its start: by the manual clock where the instance has one,
/// else by a clock that never jumps, unlike the system's.
pub(super) struct Stopwatch {
    clock: Clock,
    begun: Instant,
    begun_at: Timestamp,
}

impl Stopwatch {
    pub(super) fn start(clock: &Clock) -> Self {
        Self { clock: clock.clone(), begun: Instant::now(), begun_at: clock.now() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        match self.clock.judge() {
            Now::Store => self.begun.elapsed(),
            Now::At(now) => now.since(self.begun_at),
        }
    }

    /// Returns once `mark` has elapsed; never where there is none.
    pub(super) async fn reach_if(&self, mark: Option<Duration>) {
        let Some(mark) = mark else {
            return std::future::pending().await;
        };
        loop {
            let left = mark.saturating_sub(self.elapsed());
            if left.is_zero() {
                return;
            }
            // A manual clock may move before its sleep begins, and the sleep
            // be too long by that; so look again.
            self.pause(left).await;
        }
    }

    /// Returns after `pause` by the instance's clock or in real time,
    /// whichever is first: a manual clock may stand still, the store does not.
    pub(super) async fn pause(&self, pause: Duration) {
        // Both ends mean the same.
        let _ = tokio::time::timeout(pause, self.clock.sleep(pause)).await;
    }
}

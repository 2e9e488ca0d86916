//! [`Backoff`]: pauses that grow.

use std::time::Duration;

use crate::handle::jittered;

/// Pauses that double up to a longest one, each cut by a random share so that
/// clients that failed together do not come back together.
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
    doublings: u32,
}

impl Backoff {
    /// The pauses after a store's failures.
    pub(super) fn after_failure() -> Self {
        Self::up_to(Duration::from_secs(5))
    }

    /// The same, but none longer than `longest`.
    pub(super) fn up_to(longest: Duration) -> Self {
        Self::new(Duration::from_millis(50), longest)
    }

    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, doublings: 0 }
    }

    pub(super) fn reset(&mut self) {
        self.doublings = 0;
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.first.saturating_mul(1 << self.doublings.min(20));
        self.doublings += 1;
        jittered(pause.min(self.longest))
    }

    /// Waits in real time: what is waited for is the network and the store.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::after_failure();
        for most in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000].map(Duration::from_millis) {
            let pause = backoff.next();
            assert!(pause >= most / 2 && pause <= most, "{pause:?} of {most:?}");
        }
        backoff.doublings = u32::MAX - 1;
        assert!(backoff.next() <= Duration::from_secs(5));
        backoff.reset();
        assert!(backoff.next() <= Duration::from_millis(50));
    }
}

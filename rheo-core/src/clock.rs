//! [`Clock`]: the instance's time, real or moved by hand.

use std::fmt;
use std::time::Duration;

use futures::future::Either;
use tokio::sync::watch;

use crate::{Now, Timestamp};

/// The clock of one instance: it stamps events and times the consumers' work.
///
/// With the system's clock, leases are judged by the store's own; a
/// [`ManualClock`] judges them itself, on every backend.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    System { ahead_micros: i64 },
    Manual(ManualClock),
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// The system's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::off_by_micros(0)
    }

    /// The system's clock as a client sees whose clock is `micros` ahead
    /// (behind, where negative): for tests that show it does no harm.
    #[must_use]
    pub fn off_by_micros(micros: i64) -> Self {
        Self(Kind::System { ahead_micros: micros })
    }

    /// The time by this clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System { ahead_micros } => {
                Timestamp::from_micros(Timestamp::now().as_micros().saturating_add(*ahead_micros))
            }
            Kind::Manual(manual) => manual.now(),
        }
    }

    /// Whose time judges leases.
    #[must_use]
    pub fn judge(&self) -> Now {
        match &self.0 {
            Kind::System { .. } => Now::Store,
            Kind::Manual(manual) => Now::At(manual.now()),
        }
    }

    /// Ends after `duration` by this clock, counted from this call.
    ///
    /// # Cancellation
    /// Safe: nothing but the waiting is lost.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        match &self.0 {
            Kind::System { .. } => Either::Left(tokio::time::sleep(duration)),
            Kind::Manual(manual) => Either::Right(manual.clone().reached(manual.now() + duration)),
        }
    }
}

impl From<ManualClock> for Clock {
    fn from(manual: ManualClock) -> Self {
        Self(Kind::Manual(manual))
    }
}

/// A clock that moves only when told to: tests of time that take none.
///
/// Clones share the time. It never goes back.
///
/// ```
/// use std::time::Duration;
/// use rheo_core::ManualClock;
///
/// let clock = ManualClock::new("2026-03-15T12:00:00Z".parse()?);
/// clock.advance(Duration::from_secs(6));
/// assert_eq!(clock.now().to_string(), "2026-03-15T12:00:06Z");
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Clone)]
pub struct ManualClock(watch::Sender<Timestamp>);

impl ManualClock {
    /// A clock that stands at `start`.
    #[must_use]
    pub fn new(start: Timestamp) -> Self {
        Self(watch::Sender::new(start))
    }

    /// The time it stands at.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    /// Moves it on, and wakes those whose time has come.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now = *now + by);
    }

    async fn reached(self, instant: Timestamp) {
        let mut changes = self.0.subscribe();
        // The sender lives as long as `self`, so the wait ends only by the time's coming.
        let _ = changes.wait_for(|now| *now >= instant).await;
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_manual_sleep_ends_when_its_time_comes() {
        let manual = ManualClock::new(Timestamp::from_micros(0));
        let clock = Clock::from(manual.clone());
        let mut sleep = Box::pin(clock.sleep(Duration::from_secs(5)));
        assert!(sleep.as_mut().now_or_never().is_none());
        manual.advance(Duration::from_secs(4));
        assert!(sleep.as_mut().now_or_never().is_none());
        manual.advance(Duration::from_secs(1));
        assert!(sleep.as_mut().now_or_never().is_some());
    }

    #[test]
    fn only_a_manual_clock_judges_leases() {
        assert_eq!(Clock::off_by_micros(600_000_000).judge(), Now::Store);
        let manual = ManualClock::new(Timestamp::from_micros(7));
        let judge = Clock::from(manual).judge();
        assert_eq!(judge, Now::At(Timestamp::from_micros(7)));
    }
}

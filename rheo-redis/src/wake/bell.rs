//! [`Bells`]: signals inside this process.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// One bell for each channel on which somebody waits, or did a while ago.
#[derive(Debug, Default)]
pub(super) struct Bells {
    channels: Mutex<HashMap<String, watch::Sender<()>>>,
    hung: Notify,
}

/// Hears one channel's bell, from the moment on at which it was made.
#[derive(Debug)]
pub(super) struct Listener(watch::Receiver<()>);

impl Bells {
    pub(super) fn listen(&self, channel: &str) -> Listener {
        let mut channels = self.lock();
        if let Some(bell) = channels.get(channel) {
            return Listener(bell.subscribe());
        }
        let (bell, listener) = watch::channel(());
        channels.insert(channel.into(), bell);
        self.hung.notify_one();
        Listener(listener)
    }

    /// Wakes all who listen to the channel.
    pub(super) fn ring(&self, channel: &str) {
        if let Some(bell) = self.lock().get(channel) {
            bell.send_replace(());
        }
    }

    /// The channels that have a bell.
    pub(super) fn channels(&self) -> BTreeSet<String> {
        self.lock().keys().cloned().collect()
    }

    /// Puts away the bells to which nobody listens.
    pub(super) fn tidy(&self) {
        self.lock().retain(|_, bell| !bell.is_closed());
    }

    /// Ends once there is a bell for another channel since this last ended.
    ///
    /// # Cancellation
    /// Safe: what was not told is told the next time.
    pub(super) async fn another(&self) {
        self.hung.notified().await;
    }

    /// What this guards is whole after each statement.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener {
    /// Hears nothing.
    pub(super) fn deaf() -> Self {
        Self(watch::channel(()).1)
    }

    /// Ends once the bell has rung since this last ended.
    ///
    /// # Cancellation
    /// Safe: a ring that was not told is told the next time.
    pub(super) async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            // There is no bell, so none will ring.
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_over(future: impl Future<Output = ()>) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(future).poll(&mut context) == Poll::Ready(())
    }

    #[test]
    fn a_ring_is_heard_once_by_all_who_listen_to_that_channel() {
        let bells = Bells::default();
        let (mut first, mut second, mut other) =
            (bells.listen("a"), bells.listen("a"), bells.listen("b"));
        assert!(!is_over(first.rung()));
        bells.ring("a");
        bells.ring("a");
        assert!(is_over(first.rung()) && is_over(second.rung()) && !is_over(other.rung()));
        assert!(!is_over(first.rung()));
        assert!(!is_over(bells.listen("a").rung()), "it was rung before");
    }

    #[test]
    fn a_new_channel_is_told_and_one_without_listeners_is_put_away() {
        let bells = Bells::default();
        let kept = bells.listen("a");
        assert!(is_over(bells.another()));
        drop(bells.listen("a"));
        assert!(!is_over(bells.another()));
        drop(bells.listen("b"));
        assert!(is_over(bells.another()));
        bells.tidy();
        assert_eq!(bells.channels(), BTreeSet::from(["a".to_string()]));
        drop(kept);
    }
}

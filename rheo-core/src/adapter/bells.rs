//! [`Bells`]: signals inside this process.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, watch};

/// Signals inside this process: one bell for each name on which somebody waits,
/// or did a while ago. A name is a stream's, or a channel's of the store.
#[derive(Debug, Default)]
pub struct Bells {
    named: Mutex<HashMap<String, watch::Sender<()>>>,
    hung: Notify,
}

/// The bells of stores that several instances of this process may open.
static SHARED: LazyLock<Mutex<HashMap<String, Weak<Bells>>>> = LazyLock::new(Mutex::default);

/// Hears one bell, from the moment on at which it was made.
#[derive(Debug)]
pub struct Listener(watch::Receiver<()>);

impl Bells {
    /// The bells that all instances on this store in this process share. The
    /// name says which store it is, such as the path of a database's file.
    #[must_use]
    pub fn shared(name: &str) -> Arc<Self> {
        let mut shared = lock(&SHARED);
        if let Some(bells) = shared.get(name).and_then(Weak::upgrade) {
            return bells;
        }
        shared.retain(|_, bells| bells.strong_count() > 0);
        let bells = Arc::default();
        shared.insert(name.into(), Arc::downgrade(&bells));
        bells
    }

    /// Listens to one bell, which is hung where there is none.
    #[must_use]
    pub fn listen(&self, name: &str) -> Listener {
        let mut named = lock(&self.named);
        if let Some(bell) = named.get(name) {
            return Listener(bell.subscribe());
        }
        let (bell, listener) = watch::channel(());
        named.insert(name.into(), bell);
        self.hung.notify_one();
        Listener(listener)
    }

    /// Wakes all who listen to this bell.
    pub fn ring(&self, name: &str) {
        if let Some(bell) = lock(&self.named).get(name) {
            bell.send_replace(());
        }
    }

    /// Wakes all who listen to any bell.
    pub fn ring_all(&self) {
        for bell in lock(&self.named).values() {
            bell.send_replace(());
        }
    }

    /// The names that have a bell.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        lock(&self.named).keys().cloned().collect()
    }

    /// Ends once a bell was hung for another name since this last ended. It is
    /// for one task alone, which hears the store for all names.
    ///
    /// # Cancellation
    /// Safe: what was not told is told the next time.
    pub async fn another(&self) {
        self.hung.notified().await;
    }

    /// Puts away the bells to which nobody listens.
    pub fn tidy(&self) {
        lock(&self.named).retain(|_, bell| !bell.is_closed());
    }
}

impl Listener {
    /// Hears nothing.
    #[must_use]
    pub fn deaf() -> Self {
        Self(watch::channel(()).1)
    }

    /// Ends once the bell has rung since this last ended.
    ///
    /// # Cancellation
    /// Safe: a ring that was not told is told the next time.
    pub async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            // There is no bell, so none will ring.
            std::future::pending().await
        }
    }
}

/// What these locks guard is whole after each statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_ring_is_heard_once_by_all_who_listen_to_that_bell() {
        let bells = Bells::default();
        let (mut first, mut second, mut other) =
            (bells.listen("a"), bells.listen("a"), bells.listen("b"));
        assert!(!is_over(first.rung()));
        bells.ring("a");
        bells.ring("a");
        assert!(is_over(first.rung()) && is_over(second.rung()) && !is_over(other.rung()));
        assert!(!is_over(first.rung()));
        assert!(!is_over(bells.listen("a").rung()), "it was rung before");
        bells.ring_all();
        assert!(is_over(first.rung()) && is_over(other.rung()));
    }

    #[test]
    fn the_deaf_and_those_whose_bells_are_gone_hear_nothing() {
        let bells = Bells::default();
        let mut left = bells.listen("a");
        drop(bells);
        assert!(!is_over(left.rung()) && !is_over(Listener::deaf().rung()));
    }

    #[test]
    fn a_new_name_is_told_and_one_without_listeners_is_put_away() {
        let bells = Bells::default();
        let kept = bells.listen("a");
        assert!(is_over(bells.another()));
        drop(bells.listen("a"));
        assert!(!is_over(bells.another()));
        drop(bells.listen("b"));
        assert!(is_over(bells.another()));
        bells.tidy();
        assert_eq!(bells.names(), BTreeSet::from(["a".to_string()]));
        drop(kept);
    }

    #[test]
    fn instances_on_one_store_share_their_bells() {
        let (one, other) = (Bells::shared("/a"), Bells::shared("/b"));
        assert!(Arc::ptr_eq(&one, &Bells::shared("/a")));
        assert!(!Arc::ptr_eq(&one, &other));
        drop((one, other));
        let _kept = Bells::shared("/c");
        assert!(!lock(&SHARED).contains_key("/a"));
    }
}

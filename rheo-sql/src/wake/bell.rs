//! [`Bells`]: signals inside this process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use rheo_core::StreamName;
use tokio::sync::watch;

/// One bell for each stream on which somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    streams: Mutex<HashMap<StreamName, watch::Sender<()>>>,
}

/// The bells of databases that several instances of this process may open.
static SHARED: LazyLock<Mutex<HashMap<String, Weak<Bells>>>> = LazyLock::new(Mutex::default);

/// Hears one stream's bell, from the moment on at which it was made.
#[derive(Debug)]
pub(crate) struct Listener(watch::Receiver<()>);

impl Bells {
    /// The bells that all instances on this database in this process share.
    pub(crate) fn of_database(name: &str) -> Arc<Self> {
        let mut shared = lock(&SHARED);
        if let Some(bells) = shared.get(name).and_then(Weak::upgrade) {
            return bells;
        }
        shared.retain(|_, bells| bells.strong_count() > 0);
        let bells = Arc::default();
        shared.insert(name.into(), Arc::downgrade(&bells));
        bells
    }

    /// Wakes all who listen to the stream.
    pub(crate) fn ring(&self, stream: &str) {
        let mut streams = lock(&self.streams);
        let Some(bell) = streams.get(stream) else { return };
        if bell.send(()).is_err() {
            // Nobody listens any more.
            streams.remove(stream);
        }
    }

    /// Wakes all who listen to any stream.
    #[cfg(feature = "postgres")]
    pub(crate) fn ring_all(&self) {
        lock(&self.streams).retain(|_, bell| bell.send(()).is_ok());
    }

    pub(crate) fn listen(&self, stream: &StreamName) -> Listener {
        let mut streams = lock(&self.streams);
        Listener(streams.entry(stream.clone()).or_default().subscribe())
    }
}

impl Listener {
    /// Ends once the bell has rung since this last ended.
    ///
    /// # Cancellation
    /// Safe: a ring that was not told is told the next time.
    pub(crate) async fn rung(&mut self) {
        if self.0.changed().await.is_err() {
            // The bells are gone, so none will ring.
            std::future::pending().await
        }
    }
}

/// What these locks guard is whole after each statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn has_rung(listener: &mut Listener) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(listener.rung()).poll(&mut context) == Poll::Ready(())
    }

    #[test]
    fn a_ring_is_heard_once_by_all_who_listen_to_that_stream() {
        let bells = Bells::default();
        let [a, b] = ["a", "b"].map(|name| StreamName::new(name).unwrap());
        let (mut first, mut second, mut other) =
            (bells.listen(&a), bells.listen(&a), bells.listen(&b));
        assert!(!has_rung(&mut first));
        bells.ring("a");
        bells.ring("a");
        assert!(has_rung(&mut first) && has_rung(&mut second) && !has_rung(&mut other));
        assert!(!has_rung(&mut first));
        assert!(!has_rung(&mut bells.listen(&a)), "it was rung before");
    }

    #[test]
    fn bells_nobody_listens_to_are_put_away() {
        let bells = Bells::default();
        let stream = StreamName::new("s").unwrap();
        drop(bells.listen(&stream));
        bells.ring("s");
        assert!(lock(&bells.streams).is_empty());
    }

    #[test]
    fn instances_on_one_database_share_their_bells() {
        let (one, other) = (Bells::of_database("/a"), Bells::of_database("/b"));
        assert!(Arc::ptr_eq(&one, &Bells::of_database("/a")));
        assert!(!Arc::ptr_eq(&one, &other));
        drop((one, other));
        let _kept = Bells::of_database("/c");
        assert!(!lock(&SHARED).contains_key("/a"));
    }
}

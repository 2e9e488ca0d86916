//! Waiting for work.

use std::sync::atomic::{AtomicUsize, Ordering, fence};

use rheo_core::backend::{Now, Wait};
use rheo_core::{Result, Timestamp};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::timeout;

use crate::Memory;
use crate::store::{Group, Stream};

/// Tells those who wait on a stream that something has changed.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    notify: Notify,
    /// How many listen, so that ringing for nobody takes no lock.
    listeners: AtomicUsize,
}

impl Bell {
    /// Wakes all who listen. What changed before is seen by who listens after.
    pub(crate) fn ring(&self) {
        // With the fence in `listen`: either this sees the listener, or the
        // listener sees the change.
        fence(Ordering::SeqCst);
        if self.listeners.load(Ordering::Relaxed) > 0 {
            self.notify.notify_waiters();
        }
    }

    fn listen(&self) -> Listener<'_> {
        self.listeners.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Listener(self)
    }
}

#[derive(Debug)]
struct Listener<'a>(&'a Bell);

impl Listener<'_> {
    /// Ends with the next ring after this call, awaited or not.
    fn next_ring(&self) -> Notified<'_> {
        self.0.notify.notified()
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Memory {
    pub(crate) async fn wait_for_work(&self, request: &Wait) -> Result<()> {
        let work = self.work_may_have_come(request);
        timeout(request.timeout, work).await.unwrap_or(Ok(()))
    }

    async fn work_may_have_come(&self, request: &Wait) -> Result<()> {
        loop {
            let stream = self.stream("wait", &request.group.stream)?;
            let listener = stream.bell.listen();
            let ring = listener.next_ring();
            // Looked up after listening, so that a deletion is seen or heard.
            let (_, group) = self.group("wait", &request.group)?;
            let now = request.now.or_system();
            match next_work(&stream, &group, now) {
                Some(due) if due <= now => return Ok(()),
                // Only the store's own time passes by itself.
                Some(due) if request.now == Now::Store => {
                    if timeout(due.since(now), ring).await.is_err() {
                        return Ok(());
                    }
                }
                _ => ring.await,
            }
        }
    }
}

/// When the group has something to claim, as far as is known now.
fn next_work(stream: &Stream, group: &Group, now: Timestamp) -> Option<Timestamp> {
    let mut earliest = None;
    for (partition, progress) in stream.partitions.iter().zip(&group.progress) {
        let progress = crate::lock::lock(progress);
        if progress.claimable(partition.high_watermark(), now, &group.settings) {
            return Some(now);
        }
        earliest = earliest.into_iter().chain(progress.next_due(now, &group.settings)).min();
    }
    earliest
}

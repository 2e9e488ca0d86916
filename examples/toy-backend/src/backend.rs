//! [`Toy`] and the [`Backend`] trait, method by method.
//!
//! The handle has done the rest before it calls: names are valid, defaults are
//! filled in, what is not claimed is refused. So each method takes the lock,
//! finds what the request names, and does the one thing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rheo_core::backend::{
    Append, Backend, Claim, CreateGroup, DeadLetters, GroupRef, LeaseRefusal, Now, Read, Renew,
    Replay, Reset, Search, Seek, Server, Settle, StreamRef, Wait,
};
use rheo_core::{
    Capabilities, DeadLetter, Delivery, Error, ErrorKind, Event, GroupInfo, GroupName, Result,
    StreamName, Timestamp,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::capabilities::CAPABILITIES;
use crate::store::{PARTITIONS, Store};

/// The store: all of it behind one mutex.
#[derive(Debug, Default)]
pub struct Toy {
    store: Mutex<Store>,
    /// Rung after every change that may have brought work.
    changed: Notify,
}

impl Toy {
    /// An empty store. Instances built over clones of the `Arc` share it.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The guard is never held across an await: a future that is dropped
    /// half-way has then either done its step or not begun it.
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        self.changed.notify_waiters();
    }

    fn has_work(&self, request: &Wait) -> Result<bool> {
        let mut store = self.store();
        let (log, group) = store.group(&request.group)?;
        Ok(group.has_work(log, request.now.or_system()))
    }
}

#[async_trait]
impl Backend for Toy {
    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn prepare(&self) -> Result<()> {
        Ok(())
    }

    async fn ping(&self) -> Result<Server> {
        Ok(Server { product: "toy".into(), version: env!("CARGO_PKG_VERSION").into() })
    }

    async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        self.store().create_stream(stream)
    }

    async fn delete_stream(&self, stream: &StreamName) -> Result<()> {
        self.store().delete_stream(stream)
    }

    async fn partitions(&self, stream: &StreamName) -> Result<u32> {
        self.store().has_stream(stream)?;
        Ok(PARTITIONS)
    }

    async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        Ok(self.store().stream_refs())
    }

    async fn create_group(&self, request: &CreateGroup) -> Result<()> {
        self.store().stream(&request.group.stream)?.create_group(request)
    }

    async fn delete_group(&self, group: &GroupRef) -> Result<()> {
        self.store().stream(&group.stream)?.delete_group(&group.name)
    }

    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>> {
        Ok(self.store().stream(stream)?.group_names())
    }

    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo> {
        let mut store = self.store();
        let (log, found) = store.group(group)?;
        Ok(found.info(log, group.name.clone(), now))
    }

    async fn append(&self, request: &Append) -> Result<Vec<Event>> {
        let stored = self.store().stream(&request.stream)?.log.append(request);
        self.ring();
        Ok(stored)
    }

    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>> {
        let mut store = self.store();
        let (log, group) = store.group(&request.group)?;
        Ok(group.claim(log, request))
    }

    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let answers = self.store().group(&request.group)?.1.settle(request);
        self.ring();
        Ok(answers)
    }

    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        Ok(self.store().group(&request.group)?.1.renew(request))
    }

    /// Not claimed, so the handle never asks.
    async fn replay(&self, _request: &Replay) -> Result<()> {
        Err(not_claimed("replay"))
    }

    /// Not claimed either: it belongs to `replay`.
    async fn reset(&self, _request: &Reset) -> Result<()> {
        Err(not_claimed("reset"))
    }

    async fn read(&self, request: &Read) -> Result<Vec<Event>> {
        Ok(self.store().stream(&request.stream)?.log.read(request))
    }

    async fn search(&self, request: &Search) -> Result<Vec<Event>> {
        Ok(self.store().stream(&request.stream)?.log.search(request))
    }

    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>> {
        Ok(vec![self.store().stream(stream)?.log.seek(seek)])
    }

    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>> {
        let mut store = self.store();
        let (log, group) = store.group(&request.group)?;
        group.dead_letters(log, request)
    }

    async fn wait(&self, request: &Wait) -> Result<()> {
        // Listens before it looks, so that what changes in between is heard.
        let change = self.changed.notified();
        if !self.has_work(request)? {
            // Time alone may bring work too (a delay that is over, an expired
            // lease). A hint may miss that: consumers look again by themselves.
            let _ = timeout(request.timeout, change).await;
        }
        Ok(())
    }
}

fn not_claimed(operation: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, operation, "this backend does not promise replay")
}

//! [`Rheo`]: the handle that applications hold.

mod append;
mod builder;
mod call;
mod coalesce;
mod fetch;
mod inspect;
mod manage;
mod read;
mod replay;
mod settle;
mod streams;

use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex};

pub use builder::{
    Builder, DEFAULT_EVENT_BYTES, DEFAULT_LEASE, DEFAULT_MAX_DEMAND, DEFAULT_TIMEOUT,
};
pub(crate) use call::jittered;
pub use fetch::FetchOptions;
pub use inspect::Lag;
pub(crate) use inspect::check_limit;
pub use manage::Confirm;
pub use replay::{Replay, ReplayOptions};

use crate::backend::{Backend, Server};
use crate::{Capabilities, Clock, GroupName, Result, StreamName};

/// The most events that one call claims, reads or settles at once.
pub const MAX_BATCH: usize = 10_000;

/// The most partitions that a stream can have.
pub const MAX_PARTITIONS: u32 = 1024;

/// The handle to one store: everything an application does goes through it.
///
/// Cloning is cheap, and clones are one instance: they share its clock, its
/// settings and its consumers. Several instances in one process, over the same
/// store or others, do not affect each other.
///
/// # Errors
/// Every operation can fail with:
/// - `StreamNotFound`, then `GroupNotFound`, where what it names is missing;
/// - `Invalid`, where an argument breaks a rule, before anything is written;
/// - `Unavailable`, where the store is out of reach or did not answer within
///   the operation timeout; a write may then have taken effect, which
///   [`Error::effect`](crate::Error::effect) tells;
/// - `Conflict`, where others kept changing the same state through all retries;
/// - `Corrupt`, where the store holds, or answers, what Rheo cannot have written.
///
/// Further kinds are named at the operation.
///
/// # Cancellation
/// Every operation can be dropped at any await: the store stays consistent.
/// What was asked for may or may not have been done; events claimed by a
/// dropped fetch come back when their lease expires.
#[derive(Clone)]
pub struct Rheo {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    backend: Arc<dyn Backend>,
    capabilities: Capabilities,
    clock: Clock,
    settings: builder::Settings,
    streams: streams::KnownStreams,
    appends: append::AppendLanes,
    settles: settle::SettleLanes,
    /// The groups that a consumer or subscription of this instance owns.
    running: Mutex<HashSet<(StreamName, GroupName)>>,
}

impl Rheo {
    /// Begins an instance over a backend.
    pub fn builder(backend: Arc<dyn Backend>) -> Builder {
        Builder::new(backend)
    }

    /// What the backend, as connected, promises.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.inner.capabilities
    }

    /// The backend itself, where it is a `B`: the way to what only one backend has.
    ///
    /// None where it is another, also one that wraps a `B`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
    /// use rheo_core::Rheo;
    /// use rheo_ets::Memory;
    ///
    /// let rheo = Rheo::builder(Memory::new()).build().await?;
    /// assert!(rheo.backend::<Memory>().is_some());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn backend<B: Backend>(&self) -> Option<&B> {
        let backend: &dyn Any = self.store();
        backend.downcast_ref()
    }

    /// The instance's clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Asks the store for a sign of life, and who it is.
    ///
    /// # Errors
    /// See [`Rheo`].
    pub async fn ping(&self) -> Result<Server> {
        self.read_call("ping", || self.inner.backend.ping()).await
    }

    pub(crate) fn running(&self) -> &Mutex<HashSet<(StreamName, GroupName)>> {
        &self.inner.running
    }

    pub(crate) fn settings(&self) -> &builder::Settings {
        &self.inner.settings
    }

    fn store(&self) -> &dyn Backend {
        &*self.inner.backend
    }
}

impl fmt::Debug for Rheo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rheo")
            .field("backend", &self.inner.backend)
            .field("clock", &self.inner.clock)
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

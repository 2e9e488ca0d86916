//! [`Harness`]: how the suite gets at a store.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rheo_core::Result;
use rheo_core::backend::Backend;

use crate::Proxy;

/// The store cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConfigured {
    /// The line that would fix it, such as a variable to set or a package to install.
    pub fix: String,
}

/// How the suite gets at a store.
///
/// The suite works in *spaces*: each case has its own, and what happens in one
/// is not seen in another, though all may lie in one server.
#[async_trait]
pub trait Harness: Send + Sync + 'static {
    /// The store's name in the report: `memory`, `postgres`, …
    fn store(&self) -> &str;

    /// One more client of a space. All clients of a space see the same streams.
    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>>;

    /// Ends the store as a crash would, and starts it again: what was durable
    /// is still there. Clients open before and after it. No other case runs
    /// meanwhile, so all spaces may lie in the one server that it ends.
    async fn crash(&self, space: &str) -> Result<()>;

    /// What all its clients reach the store through, for the cases that cut
    /// their connections; a store that is reached without any has none. No
    /// other case runs meanwhile.
    fn proxy(&self) -> Option<&Proxy>;

    /// Whether the store is the suite's alone, as by default. In one that
    /// others use as well, nothing is crashed or cut: the cases that run alone
    /// are not configured.
    fn is_own(&self) -> bool {
        true
    }
}

/// The harness of a backend that lives in this process: a space is one
/// instance, and a crash loses it.
pub struct InProcess {
    store: String,
    make: Box<dyn Fn() -> Arc<dyn Backend> + Send + Sync>,
    spaces: Mutex<HashMap<String, Arc<dyn Backend>>>,
}

impl InProcess {
    /// For the backend that `make` makes.
    pub fn new<B: Backend>(
        store: impl Into<String>,
        make: impl Fn() -> Arc<B> + Send + Sync + 'static,
    ) -> Self {
        Self { store: store.into(), make: Box::new(move || make()), spaces: Mutex::default() }
    }

    fn spaces(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<dyn Backend>>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Harness for InProcess {
    fn store(&self) -> &str {
        &self.store
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let mut spaces = self.spaces();
        let backend = spaces.entry(space.into()).or_insert_with(|| (self.make)());
        Ok(Arc::clone(backend))
    }

    async fn crash(&self, space: &str) -> Result<()> {
        self.spaces().remove(space);
        Ok(())
    }

    fn proxy(&self) -> Option<&Proxy> {
        None
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("store", &self.store).finish_non_exhaustive()
    }
}

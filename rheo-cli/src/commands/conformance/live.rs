//! [`Live`]: the suite's way to a store that others may use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rheo::backend::Backend;
use rheo::{BACKENDS, Result};
use rheo_conformance::{Harness, Proxy};
use tokio::sync::Mutex;

/// A store at a URL. Each space has a prefix of its own, which begins with one
/// that all of this run share.
pub(super) struct Live {
    pub(super) url: String,
    /// The backend's name in the list of backends.
    pub(super) store: &'static str,
    /// What the name of everything begins with that this run makes.
    pub(super) prefix: String,
    pub(super) spaces: Mutex<Spaces>,
    /// Whether the store was there at all.
    pub(super) reached: AtomicBool,
}

/// The number of each space that was opened, and its one client where every
/// client would be a store of its own.
pub(super) type Spaces = HashMap<String, (usize, Option<Arc<dyn Backend>>)>;

impl Live {
    pub(super) fn new(url: &str) -> Self {
        let scheme = url.split(':').next().unwrap_or_default();
        let backend = BACKENDS.iter().find(|backend| backend.schemes.contains(&scheme));
        Self {
            url: url.into(),
            store: backend.map_or("unknown", |backend| backend.feature),
            prefix: format!("rheo_check_{:08x}_", fastrand::u32(..)),
            spaces: Mutex::default(),
            reached: AtomicBool::new(false),
        }
    }

    /// Whether every client would be a store of its own.
    pub(super) fn is_in_process(&self) -> bool {
        let address = self.url.split('?').next().unwrap_or_default();
        self.store == "memory" || (self.store == "sqlite" && address.ends_with(":memory:"))
    }

    /// What the names of one space begin with.
    pub(super) fn prefix_of(&self, space: usize) -> String {
        format!("{}{space}_", self.prefix)
    }

    /// The URL of one space: the last word on an option prevails.
    pub(super) fn url_of(&self, space: usize) -> String {
        let key = match self.store {
            "sqlite" | "postgres" | "mysql" => "table_prefix",
            "redis" => "prefix",
            "mongo" => "collection_prefix",
            _ => return self.url.clone(),
        };
        let separator = if self.url.contains('?') { '&' } else { '?' };
        format!("{}{separator}{key}={}", self.url, self.prefix_of(space))
    }
}

#[async_trait]
impl Harness for Live {
    fn store(&self) -> &str {
        self.store
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let mut spaces = self.spaces.lock().await;
        let next = spaces.len();
        let (number, kept) = spaces.entry(space.into()).or_insert((next, None));
        if let Some(kept) = kept {
            return Ok(Arc::clone(kept));
        }
        let url = self.url_of(*number);
        if !self.is_in_process() {
            drop(spaces);
            let backend = rheo::open(&url).await?;
            self.reached.store(true, Ordering::Relaxed);
            return Ok(backend);
        }
        let backend = rheo::open(&url).await?;
        Ok(Arc::clone(kept.insert(backend)))
    }

    /// No case asks for that, since the store is not the suite's own.
    async fn crash(&self, _space: &str) -> Result<()> {
        Ok(())
    }

    fn proxy(&self) -> Option<&Proxy> {
        None
    }

    fn is_own(&self) -> bool {
        false
    }
}

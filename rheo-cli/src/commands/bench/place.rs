//! [`Place`]: the store that is measured, given or started for it.

use std::any::Any;
use std::path::PathBuf;

use rheo::{BACKENDS, Rheo};
use rheo_conformance::{NotConfigured, servers};
use uuid::Uuid;

use super::report::{NotMeasured, StoreReport};
use crate::failure::Failure;

/// The stores that can be started.
pub(crate) const STORES: [&str; 6] = ["memory", "sqlite", "postgres", "mysql", "redis", "mongo"];

/// Servers that read an index to its end, however few events are asked for, and
/// so are measured with fewer.
const READS_ON: &str = "SecantusDB";
const FEWER: u64 = 1000;

/// A store, and an instance on it.
pub(crate) struct Place {
    pub(crate) store: String,
    pub(crate) url: String,
    pub(crate) rheo: Rheo,
    product: String,
    version: String,
    /// What lasts as long as this does.
    _running: Option<Box<dyn Any>>,
}

impl Place {
    /// The store of a URL.
    pub(crate) async fn at(url: &str) -> Result<Self, Failure> {
        Self::on(url.into(), None).await
    }

    /// Starts the store of this name, with its defaults.
    pub(crate) async fn start(store: &'static str) -> Result<Self, NotMeasured> {
        let why = |why| NotMeasured { store, why };
        let started: Result<(String, Box<dyn Any>), NotConfigured> = match store {
            "memory" => Ok(("memory:".into(), Box::new(()))),
            "sqlite" => Directory::make().map(|it| (it.url(), Box::new(it) as _)),
            "postgres" => {
                servers::Postgres::start().await.map(|it| (it.url().into(), Box::new(it) as _))
            }
            "mysql" => {
                servers::MariaDb::start().await.map(|it| (it.url().into(), Box::new(it) as _))
            }
            "redis" => servers::Redis::start().await.map(|it| (it.url().into(), Box::new(it) as _)),
            _ => servers::Mongo::start().await.map(|it| (it.url().into(), Box::new(it) as _)),
        };
        let (url, running) = started.map_err(|NotConfigured { fix }| why(fix))?;
        let place = Self::on(url, Some(running)).await;
        place.map_err(|failure| why(super::sentence(failure)))
    }

    async fn on(url: String, running: Option<Box<dyn Any>>) -> Result<Self, Failure> {
        let rheo = rheo::connect(&url).await?;
        let server = rheo.ping().await?;
        let store = feature(&url).unwrap_or("store").into();
        let (product, version) = (server.product, server.version);
        Ok(Self { store, url, rheo, product, version, _running: running })
    }

    /// Another instance on the same store. A store in this process has no
    /// other than the first.
    pub(crate) async fn another(&self) -> Result<Rheo, Failure> {
        let in_process = ["memory:", "sqlite::memory:"];
        let here = in_process.iter().any(|begin| self.url.starts_with(begin));
        if here || self.url.contains("mode=memory") {
            return Ok(self.rheo.clone());
        }
        Ok(rheo::connect(&self.url).await?)
    }

    /// How many events its logs are to have, where so many are asked for.
    pub(crate) fn bearable(&self, events: u64) -> u64 {
        if self.product == READS_ON { events.min(FEWER) } else { events }
    }

    /// A report on it, empty.
    pub(crate) fn report(&self, events: u64) -> StoreReport {
        StoreReport {
            store: self.store.clone(),
            product: self.product.clone(),
            version: self.version.clone(),
            events,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The feature of the backend that a URL is for.
pub(crate) fn feature(url: &str) -> Option<&'static str> {
    let scheme = url.split(':').next()?;
    let backend = BACKENDS.iter().find(|backend| backend.schemes.contains(&scheme))?;
    Some(backend.feature)
}

/// A directory for a file, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn make() -> Result<Self, NotConfigured> {
        let path = std::env::temp_dir().join(format!("rheo-bench-{}", Uuid::new_v4().simple()));
        match std::fs::create_dir(&path) {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(NotConfigured { fix: format!("a temporary directory: {error}") }),
        }
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.0.join("log.db").display())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

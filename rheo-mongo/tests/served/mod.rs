//! The harness of a server: all spaces lie in one database, each under a
//! collection prefix of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use async_trait::async_trait;
use rheo_conformance::servers;
use rheo_conformance::{Harness, Proxy};
use rheo_core::Result;
use rheo_core::backend::Backend;
use rheo_mongo::{Mongo, Options};

pub(crate) struct Served {
    pub(crate) server: servers::Mongo,
}

#[async_trait]
impl Harness for Served {
    fn store(&self) -> &str {
        "mongo"
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let mut hasher = DefaultHasher::new();
        space.hash(&mut hasher);
        let prefix = format!("s{:016x}_", hasher.finish());
        let options = Options::default().collection_prefix(prefix);
        Ok(Mongo::connect_with(self.server.proxied_url(), options).await?)
    }

    async fn crash(&self, _space: &str) -> Result<()> {
        self.server.crash().await
    }

    fn proxy(&self) -> Option<&Proxy> {
        self.server.proxy()
    }
}

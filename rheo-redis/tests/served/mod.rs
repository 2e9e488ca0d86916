//! The harness of servers and clusters: all spaces lie in one, each under a
//! prefix of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use rheo_conformance::servers::Server;
use rheo_conformance::{Harness, Proxy};
use rheo_core::Result;
use rheo_core::backend::Backend;
use rheo_redis::{Options, Redis};

pub(crate) struct Served<S> {
    pub(crate) store: &'static str,
    pub(crate) server: S,
    pub(crate) options: Options,
}

#[async_trait]
impl<S> Harness for Served<S>
where
    S: Deref<Target = Server> + Send + Sync + 'static,
{
    fn store(&self) -> &str {
        self.store
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let mut hasher = DefaultHasher::new();
        space.hash(&mut hasher);
        let options = self.options.clone().prefix(format!("s{:016x}:", hasher.finish()));
        Ok(Redis::connect_with(self.server.proxied_url(), options).await?)
    }

    async fn crash(&self, _space: &str) -> Result<()> {
        self.server.crash().await
    }

    fn proxy(&self) -> Option<&Proxy> {
        self.server.proxy()
    }
}

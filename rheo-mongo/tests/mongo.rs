//! Runs the conformance suite on MongoDB: all spaces lie in one server, each
//! under a prefix of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use rheo_conformance::{Harness, Proxy, servers};
use rheo_core::Result;
use rheo_core::backend::Backend;
use rheo_mongo::{Mongo, Options};

struct Served(servers::Mongo);

#[async_trait]
impl Harness for Served {
    fn store(&self) -> &str {
        "mongo"
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let mut hasher = DefaultHasher::new();
        space.hash(&mut hasher);
        let options = Options::default().collection_prefix(format!("s{:016x}_", hasher.finish()));
        Ok(Mongo::connect_with(self.0.proxied_url(), options).await?)
    }

    async fn crash(&self, _space: &str) -> Result<()> {
        self.0.crash().await
    }

    fn proxy(&self) -> Option<&Proxy> {
        self.0.proxy()
    }
}

fn main() -> ExitCode {
    rheo_conformance::run("mongo", async { servers::Mongo::start().await.map(Served) })
}

//! Where it is measured: a throwaway server.

use rheo_conformance::servers;
use rheo_core::{GroupOptions, Rheo, Timestamp};
use rheo_redis::{Options, Redis};

use crate::bare::Bare;

/// A server that lasts as long as this does.
pub(crate) struct Place {
    pub(crate) version: String,
    /// What the names of all keys of this run begin with.
    pub(crate) prefix: String,
    server: servers::Redis,
}

impl Place {
    pub(crate) async fn start() -> Self {
        let server = servers::Redis::start().await.expect("a server");
        let prefix = format!("ratios{}:", Timestamp::now().as_micros());
        let mut place = Self { version: String::new(), prefix, server };
        let server = place.rheo().await.ping().await.expect("it answers");
        place.version = format!("{} {}", server.product, server.version);
        place
    }

    pub(crate) async fn rheo(&self) -> Rheo {
        let options = Options::default().prefix(&*self.prefix);
        let redis = Redis::connect_with(self.server.url(), options).await.expect("connected");
        Rheo::builder(redis).build().await.expect("a handle")
    }

    /// A handle, and a stream of one partition with a group.
    pub(crate) async fn rheo_with(&self, stream: &str) -> Rheo {
        let rheo = self.rheo().await;
        rheo.create_stream(stream, 1).await.expect("a new stream");
        rheo.create_group(stream, "group", GroupOptions::default()).await.expect("a new group");
        rheo
    }

    /// A connection of the bare driver.
    pub(crate) async fn bare(&self) -> Bare {
        Bare::connect(self.server.url()).await
    }

    /// The key of a log that only the bare driver writes.
    pub(crate) fn bare_log(&self, name: &str) -> String {
        format!("{}bare:{name}", self.prefix)
    }

    /// The key of the log of a stream's only partition.
    pub(crate) fn log(&self, stream: &str) -> String {
        format!("{}{{{stream}/0}}", self.prefix)
    }
}

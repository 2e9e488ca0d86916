//! Throwaway servers for the tests of adapters.
//!
//! Each is, in this order: the server of a variable such as
//! `RHEO_TEST_POSTGRES_URL`; a private one from a program of this machine, with
//! a directory and a port of its own; one in a container, where there is
//! `docker`; or [`NotConfigured`], with the line that
//! would fix it. A private server ends with the test, also where that panics or
//! is killed, and nothing of it is left. Another kind of server is one more
//! file like that of [`Postgres`].
//!
//! An adapter's harness holds one, gives its clients the address through the
//! [`Proxy`](crate::Proxy), and keeps the spaces apart by a schema, a prefix or
//! a database:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use async_trait::async_trait;
//! # use rheo_conformance::{Harness, NotConfigured, Proxy, servers};
//! # use rheo_core::{Result, backend::Backend};
//! # async fn connect(url: &str, prefix: &str) -> Result<Arc<dyn Backend>> {
//! #     let _ = (url, prefix);
//! #     Ok(rheo_ets::Memory::new())
//! # }
//! struct Postgres(servers::Postgres);
//!
//! #[async_trait]
//! impl Harness for Postgres {
//!     fn store(&self) -> &str {
//!         "postgres"
//!     }
//!
//!     async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
//!         connect(self.0.proxied_url(), space).await
//!     }
//!
//!     async fn crash(&self, _space: &str) -> Result<()> {
//!         self.0.crash().await
//!     }
//!
//!     fn proxy(&self) -> Option<&Proxy> {
//!         self.0.proxy()
//!     }
//! }
//!
//! async fn start() -> Result<Postgres, NotConfigured> {
//!     servers::Postgres::start().await.map(Postgres)
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     rheo_conformance::run("postgres", start())
//! }
//! ```

mod container;
mod mariadb;
mod mongo;
mod postgres;
mod process;
mod programs;
mod redis;
mod redis_cluster;
mod server;

use std::io;
use std::path::PathBuf;

use futures::future::BoxFuture;
use tokio::net::TcpStream;

use container::Image;
pub use mariadb::MariaDb;
pub use mongo::Mongo;
pub use postgres::Postgres;
use process::Plan;
pub use redis::Redis;
pub use redis_cluster::RedisCluster;
pub use server::Server;

use crate::NotConfigured;
pub use crate::run::is_required;

/// The server that a test needs which is no suite, or none where it cannot be
/// had: the test then ends, and what would fix it is printed.
///
/// # Panics
/// Where the server cannot be had and `RHEO_REQUIRE` names the store.
pub fn found<T>(store: &str, started: Result<T, NotConfigured>) -> Option<T> {
    match started {
        Ok(server) => Some(server),
        Err(NotConfigured { fix }) => {
            assert!(!is_required(store), "{store} is required: {fix}");
            eprintln!("not tried on {store}: {fix}");
            None
        }
    }
}

/// What differs from one kind of server to the next.
#[derive(Debug)]
struct Kind {
    /// Its name, short enough for a directory's.
    label: &'static str,
    /// The variable whose URL is used where it is set.
    variable: &'static str,
    /// The line that installs it.
    install: &'static str,
    /// What its URL says in any case, so that clients stay at the address in it
    /// and do not follow those that the server tells.
    option: Option<&'static str>,
    /// Where it listens unless a URL says otherwise.
    default_port: u16,
    /// How many servers it is: more than one are a cluster.
    nodes: usize,
    /// The URL of a private one that listens at this host and port.
    url: fn(&str) -> String,
    /// How to make and run it there with the programs of this machine, where
    /// they are there.
    plan: fn(&Site) -> Option<Plan>,
    /// What it runs from in a container, where it can.
    image: Option<Image>,
    /// Whether the one that was connected to takes requests.
    answers: fn(TcpStream) -> BoxFuture<'static, io::Result<bool>>,
}

/// The place of a private one.
#[derive(Debug)]
struct Site {
    /// Its directory.
    home: PathBuf,
    /// Where its nodes listen.
    ports: Vec<u16>,
    /// Where clients reach them through the proxy.
    proxied: Vec<u16>,
}

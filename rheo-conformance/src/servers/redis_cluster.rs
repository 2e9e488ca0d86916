//! A throwaway cluster of Redis or Valkey.

use std::io;
use std::ops::Deref;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::process::{Plan, command};
use super::{Kind, Server, Site, redis};
use crate::NotConfigured;

/// A throwaway Redis Cluster: three primaries without replicas, which have
/// their data back after a crash. All of them crash, stop and start together.
///
/// Each node tells clients to find it behind the [proxy](Server::proxy), also
/// those that came by the direct URL: they need the runtime that started it.
#[derive(Debug)]
pub struct RedisCluster(Server);

impl RedisCluster {
    /// Starts one, or reaches the one of `RHEO_TEST_REDIS_CLUSTER_URL`, which
    /// can name several nodes, with commas between them.
    ///
    /// # Errors
    /// Where there is none, or it does not answer.
    pub async fn start() -> Result<Self, NotConfigured> {
        Server::start(&KIND).await.map(Self)
    }
}

impl Deref for RedisCluster {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

const KIND: Kind = Kind {
    label: "redis-cluster",
    variable: "RHEO_TEST_REDIS_CLUSTER_URL",
    install: redis::INSTALL,
    option: None,
    default_port: redis::PORT,
    nodes: 3,
    url: |address| format!("redis+cluster://{address}"),
    plan,
    image: None,
    answers: |stream| Box::pin(answers(stream)),
};

/// Runs all nodes of a cluster.
const SCRIPT: &str = include_str!("redis_cluster.sh");

fn plan(site: &Site) -> Option<Plan> {
    let server = redis::program()?;
    let server = server.to_str()?;
    let nodes = site.ports.iter().zip(&site.proxied).map(|(port, proxied)| {
        // The nodes' own connections: neither among the ports that other
        // servers of tests draw nor among those of outgoing connections.
        format!("{port}:{proxied}:{}", port - 10_000)
    });
    let nodes: Vec<_> = nodes.collect();
    let mut run = vec!["-c", SCRIPT, "cluster", server];
    run.extend(nodes.iter().map(String::as_str));
    Some(Plan {
        user: None,
        container: None,
        make: Vec::new(),
        run: command(Path::new("sh"), &run),
    })
}

/// Whether a node finds that all slots are served, or answers anything else
/// than that: it may ask for a password.
async fn answers(mut stream: TcpStream) -> io::Result<bool> {
    stream.write_all(b"CLUSTER INFO\r\nPING\r\n").await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        match line.strip_prefix("cluster_state:") {
            Some(state) => return Ok(state == "ok"),
            None if line.starts_with("-LOADING") => return Ok(false),
            None if line.starts_with(['-', '+']) => return Ok(true),
            None => {}
        }
    }
    Ok(false)
}

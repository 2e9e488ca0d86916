//! Runs the conformance suite on a cluster of three nodes, each with its file.

use std::process::ExitCode;

use rheo_conformance::servers;
use rheo_redis::Options;

mod served;

fn main() -> ExitCode {
    rheo_conformance::run("redis-cluster", async {
        let server = servers::RedisCluster::start().await?;
        Ok(served::Served { store: "redis-cluster", server, options: Options::default() })
    })
}

//! Runs the conformance suite on Redis that has its data back after a crash,
//! with every index that a stream can have.

use std::process::ExitCode;

use rheo_conformance::servers;
use rheo_redis::{Index, Options};

mod served;

fn main() -> ExitCode {
    rheo_conformance::run("redis-aof", async {
        let server = servers::Redis::persistent().await?;
        let options = Options::default().index([Index::Type, Index::Key, Index::Lineage]);
        Ok(served::Served { store: "redis-aof", server, options })
    })
}

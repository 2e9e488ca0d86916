//! Runs the conformance suite on Redis that keeps nothing on disk.

use std::process::ExitCode;

use rheo_conformance::servers;
use rheo_redis::Options;

mod served;

fn main() -> ExitCode {
    rheo_conformance::run("redis", async {
        let server = servers::Redis::start().await?;
        Ok(served::Served { store: "redis", server, options: Options::default() })
    })
}

//! Runs the examples of the crate rheo on a server and on a cluster.

#![cfg(unix)]

#[path = "../../rheo/tests/examples/printed.rs"]
mod printed;

use rheo_conformance::servers::{self, Redis, RedisCluster};

/// All of them, twice: nothing of the first run is in the way.
///
/// `cargo test --workspace --all-features` builds them; a test of this crate
/// alone does not, and then has nothing to run.
fn run_on(store: &str, url: &str) {
    if !printed::example("quickstart").exists() && !servers::is_required(store) {
        eprintln!(
            "not tried on {store}: build them, cargo build -p rheo --examples --all-features"
        );
        return;
    }
    for example in printed::ON_ANY_STORE {
        example(url);
        example(url);
    }
}

#[tokio::test]
async fn they_run_on_redis() {
    if let Some(server) = servers::found("redis", Redis::start().await) {
        run_on("redis", server.url());
    }
}

/// Its nodes are reached through a proxy, which runs in the test's own runtime.
#[tokio::test]
async fn they_run_on_a_cluster() {
    if let Some(server) = servers::found("redis-cluster", RedisCluster::start().await) {
        let url = server.url().to_owned();
        let running = tokio::task::spawn_blocking(move || run_on("redis-cluster", &url));
        running.await.unwrap();
    }
}

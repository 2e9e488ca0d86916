//! Runs the examples of the crate rheo on MongoDB.

#![cfg(unix)]

#[path = "../../rheo/tests/examples/printed.rs"]
mod printed;

use rheo_conformance::servers::{self, Mongo};

/// All of them, twice: nothing of the first run is in the way.
///
/// `cargo test --workspace --all-features` builds them; a test of this crate
/// alone does not, and then has nothing to run.
#[tokio::test]
async fn they_run_on_mongodb() {
    let Some(server) = servers::found("mongo", Mongo::start().await) else { return };
    if !printed::example("quickstart").exists() && !servers::is_required("mongo") {
        eprintln!("not tried on mongo: build them, cargo build -p rheo --examples --all-features");
        return;
    }
    for example in printed::ON_ANY_STORE {
        example(server.url());
        example(server.url());
    }
}

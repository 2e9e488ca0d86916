//! Runs the examples of the crate rheo on servers. In memory and on SQLite its
//! own tests run them.

#![cfg(all(unix, any(feature = "postgres", feature = "mysql")))]

#[path = "../../rheo/tests/examples/printed.rs"]
mod printed;

use rheo_conformance::servers;

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

#[cfg(feature = "postgres")]
#[tokio::test]
async fn they_run_on_postgres() {
    let started = servers::Postgres::start().await;
    if let Some(server) = servers::found("postgres", started) {
        run_on("postgres", server.url());
    }
}

#[cfg(feature = "mysql")]
#[tokio::test]
async fn they_run_on_mysql() {
    let started = servers::MariaDb::start().await;
    if let Some(server) = servers::found("mysql", started) {
        run_on("mysql", server.url());
    }
}

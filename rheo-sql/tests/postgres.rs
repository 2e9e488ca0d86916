//! Runs the conformance suite on PostgreSQL.

use std::process::ExitCode;

use rheo_conformance::servers;

mod served;

fn main() -> ExitCode {
    rheo_conformance::run("postgres", async {
        Ok(served::Served { store: "postgres", server: servers::Postgres::start().await? })
    })
}

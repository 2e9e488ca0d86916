//! Runs the conformance suite on MySQL or MariaDB.

use std::process::ExitCode;

use rheo_conformance::servers;

mod served;

fn main() -> ExitCode {
    rheo_conformance::run("mysql", async {
        Ok(served::Served { store: "mysql", server: servers::MariaDb::start().await? })
    })
}

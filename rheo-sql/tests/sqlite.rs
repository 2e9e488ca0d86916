//! Runs the conformance suite on SQLite, each space a file of its own.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use rheo_conformance::{Harness, Proxy};
use rheo_core::Result;
use rheo_core::backend::Backend;
use rheo_sql::Sql;

struct Files {
    directory: PathBuf,
}

impl Files {
    fn new() -> Self {
        let name = format!("rheo-sqlite-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
        Self { directory }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[async_trait]
impl Harness for Files {
    fn store(&self) -> &str {
        "sqlite"
    }

    async fn open(&self, space: &str) -> Result<Arc<dyn Backend>> {
        let file = self.directory.join(space);
        Ok(Sql::connect(&format!("sqlite:{}", file.display())).await?)
    }

    /// There is no server to kill: what is left after a crash is the files,
    /// which is what the next client opens. The test `outbox` kills a process.
    async fn crash(&self, _space: &str) -> Result<()> {
        Ok(())
    }

    fn proxy(&self) -> Option<&Proxy> {
        None
    }
}

fn main() -> ExitCode {
    rheo_conformance::run("sqlite", async { Ok(Files::new()) })
}

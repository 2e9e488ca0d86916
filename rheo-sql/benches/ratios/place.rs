//! Where it is measured: a throwaway server, or a file.

use std::path::PathBuf;

use rheo_conformance::servers::{MariaDb, Postgres};
use rheo_core::Rheo;
use rheo_sql::{Options, Sql};

use crate::bare::Bare;

pub(crate) const STORES: [&str; 3] = ["sqlite", "postgres", "mysql"];

/// A database that lasts as long as this does.
pub(crate) struct Place {
    pub(crate) store: &'static str,
    pub(crate) version: String,
    pub(crate) url: String,
    _running: Running,
}

enum Running {
    Directory(PathBuf),
    Postgres { _server: Postgres },
    MySql { _server: MariaDb },
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Self::Directory(directory) = self {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

impl Place {
    /// Starts the store of this name, with its defaults.
    pub(crate) async fn start(store: &'static str) -> Self {
        let (url, running) = match store {
            "sqlite" => {
                let name = format!("rheo-ratios-{}", std::process::id());
                let directory = std::env::temp_dir().join(name);
                std::fs::create_dir_all(&directory).expect("a temporary directory");
                let url = format!("sqlite:{}", directory.join("log.db").display());
                (url, Running::Directory(directory))
            }
            "postgres" => {
                let server = Postgres::start().await.expect("a server");
                (server.url().into(), Running::Postgres { _server: server })
            }
            _ => {
                let server = MariaDb::start().await.expect("a server");
                (server.url().into(), Running::MySql { _server: server })
            }
        };
        let mut place = Self { store, version: String::new(), url, _running: running };
        let server = place.rheo().await.ping().await.expect("it answers");
        place.version = format!("{} {}", server.product, server.version);
        place
    }

    /// A handle with the defaults.
    pub(crate) async fn rheo(&self) -> Rheo {
        self.rheo_with(Options::default()).await
    }

    pub(crate) async fn rheo_with(&self, options: Options) -> Rheo {
        let sql = Sql::connect_with(&self.url, options).await.expect("connected");
        Rheo::builder(sql).build().await.expect("a handle")
    }

    /// A connection of the bare driver.
    pub(crate) async fn bare(&self) -> Bare {
        Bare::connect(&self.url).await
    }
}

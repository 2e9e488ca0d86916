//! The one list of backends: their features, their URL schemes, and what the
//! table in the README names.

use std::sync::Arc;

use rheo_core::backend::Backend;
use rheo_core::{Error, ErrorKind, Result};

/// One backend of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendInfo {
    /// Its Cargo feature.
    pub feature: &'static str,
    /// The schemes of its URLs.
    pub schemes: &'static [&'static str],
    /// A URL, as an example.
    pub example: &'static str,
    /// Whether this build has it.
    pub enabled: bool,
}

/// Declares the list: for each backend its feature, its schemes, an example
/// and how a URL opens it.
macro_rules! backends {
    ($($feature:literal $schemes:expr, $example:literal => $open:expr;)+) => {
        /// All backends that this version of Rheo knows, enabled or not.
        pub const BACKENDS: &[BackendInfo] = &[$(BackendInfo {
            feature: $feature,
            schemes: &$schemes,
            example: $example,
            enabled: cfg!(feature = $feature),
        },)+];

        async fn open_enabled(feature: &str, url: &str) -> Option<Result<Arc<dyn Backend>>> {
            match feature {
                $(#[cfg(feature = $feature)]
                $feature => Some($open(url).await),)+
                _ => {
                    let _ = url;
                    None
                }
            }
        }
    };
}

backends! {
    "memory" ["memory"], "memory:" => open_memory;
    "sqlite" ["sqlite"], "sqlite:rheo.db" => open_sql;
    "postgres" ["postgres", "postgresql"], "postgres://user@host/database" => open_sql;
    "mysql" ["mysql", "mariadb"], "mysql://user@host/database" => open_sql;
    "redis" [
        "redis", "rediss", "redis+cluster", "rediss+cluster",
        "valkey", "valkeys", "valkey+cluster", "valkeys+cluster"
    ], "redis://host" => open_redis;
    "mongo" ["mongodb", "mongodb+srv"], "mongodb://host/database" => open_mongo;
}

/// Opens the backend that a URL names, without starting an instance on it.
///
/// # Errors
/// `Config` where the URL has no known scheme, or its backend's feature is
/// not enabled, or the rest of it is wrong for that backend; `Unavailable`
/// where its server is out of reach.
pub async fn open(url: &str) -> Result<Arc<dyn Backend>> {
    let scheme = url.split_once(':').map_or(url, |(scheme, _)| scheme);
    let known = |backend: &&BackendInfo| backend.schemes.contains(&scheme);
    let Some(backend) = BACKENDS.iter().find(known) else {
        let examples: Vec<_> = BACKENDS.iter().map(|backend| backend.example).collect();
        let examples = examples.join(", ");
        return Err(config(format!("no backend has URLs like that; there are: {examples}")));
    };
    let feature = backend.feature;
    match open_enabled(feature, url).await {
        Some(opened) => opened,
        None => {
            Err(config(format!("enable the feature {feature:?} of the crate rheo for this URL")))
        }
    }
}

#[cfg(feature = "memory")]
async fn open_memory(url: &str) -> Result<Arc<dyn Backend>> {
    match url {
        "memory:" | "memory://" => Ok(rheo_ets::Memory::new()),
        _ => Err(config(
            "nothing follows \"memory:\"; every connection is a store of its own".into(),
        )),
    }
}

#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
async fn open_sql(url: &str) -> Result<Arc<dyn Backend>> {
    Ok(rheo_sql::Sql::connect(url).await?)
}

#[cfg(feature = "redis")]
async fn open_redis(url: &str) -> Result<Arc<dyn Backend>> {
    Ok(rheo_redis::Redis::connect(url).await?)
}

#[cfg(feature = "mongo")]
async fn open_mongo(url: &str) -> Result<Arc<dyn Backend>> {
    Ok(rheo_mongo::Mongo::connect(url).await?)
}

fn config(context: String) -> Error {
    Error::new(ErrorKind::Config, "connect", context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_scheme_of_its_own_backend() {
        for backend in BACKENDS {
            let scheme = backend.example.split(':').next().unwrap();
            assert!(backend.schemes.contains(&scheme), "{backend:?}");
        }
    }

    #[test]
    fn no_scheme_is_of_two_backends() {
        let schemes = || BACKENDS.iter().flat_map(|backend| backend.schemes);
        for scheme in schemes() {
            assert_eq!(schemes().filter(|other| *other == scheme).count(), 1, "{scheme}");
        }
    }

    #[tokio::test]
    async fn a_wrong_url_says_what_would_be_right() {
        for url in ["", "nosuch://host", "Memory:"] {
            let error = open(url).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{url}");
            for backend in BACKENDS {
                assert!(error.context().contains(backend.example), "{error}");
            }
        }
    }

    #[cfg(feature = "memory")]
    #[tokio::test]
    async fn nothing_follows_memory() {
        let error = open("memory:name").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.context().contains("memory:"), "{error}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_database_in_memory_opens() {
        let sqlite = open("sqlite::memory:").await.unwrap();
        assert_eq!(sqlite.ping().await.unwrap().product, "SQLite");
    }

    /// Whether its server is there or not, the scheme is known.
    #[cfg(feature = "mysql")]
    #[tokio::test]
    async fn mariadb_is_a_scheme_too() {
        let error = open("mariadb://user@127.0.0.1:1/database").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }

    /// Whether its nodes are there or not, the scheme is known.
    #[cfg(feature = "redis")]
    #[tokio::test]
    async fn a_cluster_is_a_scheme_too() {
        let error = open("redis+cluster://127.0.0.1:1,127.0.0.1:2").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }

    /// Whether its server is there or not, the scheme is known.
    #[cfg(feature = "mongo")]
    #[tokio::test]
    async fn mongodb_is_a_scheme() {
        let url = "mongodb://127.0.0.1:1/database?connect_timeout_ms=50";
        let error = open(url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }

    #[tokio::test]
    async fn a_backend_that_is_not_built_in_names_its_feature() {
        for backend in BACKENDS.iter().filter(|backend| !backend.enabled) {
            let error = open(backend.example).await.unwrap_err();
            let feature = format!("feature {:?}", backend.feature);
            assert!(error.context().contains(&feature), "{error}");
        }
    }
}

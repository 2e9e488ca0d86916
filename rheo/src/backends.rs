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

    #[tokio::test]
    async fn a_wrong_url_says_what_would_be_right() {
        for url in ["", "nosuch://host", "memory:name"] {
            let error = open(url).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{url}");
            assert!(error.context().contains("memory:"), "{error}");
        }
    }

    #[cfg(not(feature = "memory"))]
    #[tokio::test]
    async fn a_backend_that_is_not_built_in_names_its_feature() {
        let error = open("memory:").await.unwrap_err();
        assert!(error.context().contains("feature \"memory\""), "{error}");
    }
}

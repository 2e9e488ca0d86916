//! The servers of tests that are no conformance suites.

use rheo_conformance::NotConfigured;

/// The server, or none where there is none and `RHEO_REQUIRE` does not name it.
pub(crate) fn found<T>(store: &str, started: Result<T, NotConfigured>) -> Option<T> {
    match started {
        Ok(server) => Some(server),
        Err(NotConfigured { fix }) => {
            assert!(!is_required(store), "{store} is required: {fix}");
            eprintln!("not tried on {store}: {fix}");
            None
        }
    }
}

/// Whether `RHEO_REQUIRE` names the store.
pub(crate) fn is_required(store: &str) -> bool {
    let required = std::env::var("RHEO_REQUIRE").unwrap_or_default();
    required.split([' ', ',']).any(|name| name == store)
}

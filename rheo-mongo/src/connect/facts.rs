//! [`ServerFacts`]: what is known of a server, and whether Rheo works on it.

use mongodb::Client;
use mongodb::bson::{Document, doc};
use rheo_core::adapter::config;
use rheo_core::{Error, ErrorKind, Result};

use super::CONNECT;
use crate::error::Failure;
use crate::trouble::{NO_PRIMARY, STANDALONE};

/// What is known of a server, as it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    /// `MongoDB`, or what stands in for it.
    pub(crate) product: String,
    pub(crate) version: String,
}

impl ServerFacts {
    /// Asks a server, and refuses one on which Rheo cannot work.
    pub(super) async fn read(client: &Client, database: &str) -> Result<Self, Failure> {
        let database = client.database(database);
        let hello = database.run_command(doc! { "hello": 1 }).await?;
        check_role(&hello)?;
        let build = database.run_command(doc! { "buildInfo": 1 }).await?;
        Ok(Self::of(&build)?)
    }

    fn of(build: &Document) -> Result<Self> {
        let version = build.get_str("version").unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        if major.is_none_or(|major: u32| major < 5) {
            return Err(config(format!("MongoDB {version} is too old: 5.0 or later is wanted")));
        }
        let (product, version) = match build.get_str("secantusVersion") {
            Ok(version) => ("SecantusDB", version),
            Err(_) => ("MongoDB", version),
        };
        Ok(Self { product: product.into(), version: version.into() })
    }
}

/// Transactions are there on replica sets and behind routers alone.
fn check_role(hello: &Document) -> Result<()> {
    let says = |key| hello.get_bool(key).unwrap_or(false);
    if matches!(hello.get_str("msg"), Ok("isdbgrid")) {
        return Ok(());
    }
    if says("isreplicaset") {
        return Err(config("the server waits to be a replica set: run rs.initiate() once"));
    }
    if !hello.contains_key("setName") {
        return Err(config(STANDALONE));
    }
    // The driver looks for the primary, unless it is to use this server alone.
    if !says("isWritablePrimary") {
        let context = format!("the server is not the primary, or {NO_PRIMARY}");
        return Err(Error::new(ErrorKind::Unavailable, CONNECT, context));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_and_version_are_told() {
        let facts = ServerFacts::of(&doc! { "version": "8.0.17" }).unwrap();
        assert_eq!((&*facts.product, &*facts.version), ("MongoDB", "8.0.17"));
        let facts = ServerFacts::of(&doc! { "version": "8.2.11", "secantusVersion": "0.5.3" });
        assert_eq!(facts.unwrap().product, "SecantusDB");
    }

    #[test]
    fn servers_that_will_not_do_are_refused() {
        let told = |result: Result<()>| {
            let error = result.unwrap_err();
            (error.kind(), error.context().to_string())
        };
        for version in ["4.4.29", "", "new"] {
            let (kind, context) = told(ServerFacts::of(&doc! { "version": version }).map(drop));
            assert!(kind == ErrorKind::Config && context.contains("too old"), "{context}");
        }
        let (kind, context) = told(check_role(&doc! { "isWritablePrimary": true }));
        assert!(kind == ErrorKind::Config && context.contains("--replSet NAME"), "{context}");
        let waits = doc! { "isWritablePrimary": false, "isreplicaset": true };
        assert!(told(check_role(&waits)).1.contains("rs.initiate()"));
        let (kind, context) =
            told(check_role(&doc! { "setName": "rs", "isWritablePrimary": false }));
        assert!(kind == ErrorKind::Unavailable && context.contains("no primary"), "{context}");
    }

    #[test]
    fn primaries_and_routers_will_do() {
        check_role(&doc! { "setName": "rs", "isWritablePrimary": true }).unwrap();
        check_role(&doc! { "msg": "isdbgrid", "isWritablePrimary": true }).unwrap();
    }
}

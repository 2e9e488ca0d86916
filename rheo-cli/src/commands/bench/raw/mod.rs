//! The bare drivers, each doing the least that could be called the same work: a
//! log with what Rheo's can be searched by, and one consumer's progress.

mod mongo;
mod mysql;
mod postgres;
mod redis;
mod sql;
mod sqlite;

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::events::Plain;
use super::place::feature;
use super::setting::Client;
use crate::failure::{Failure, Outcome};

/// A client of a bare driver, with a log and a partition of it.
#[async_trait]
pub(crate) trait Raw: Send {
    /// Makes the log, empty.
    async fn create(&mut self) -> Outcome;

    /// Another client of the same log, with this partition to itself.
    async fn another(&mut self, partition: u32) -> Result<Box<dyn Raw>, Failure>;

    /// Appends events, in one request.
    async fn append(&mut self, events: &[Plain]) -> Outcome;

    /// Takes up to so many events and marks them as done; how many there were.
    async fn consume(&mut self, size: u64) -> Result<u64, Failure>;

    /// Begins anew to consume.
    async fn rewind(&mut self) -> Outcome;

    /// Deletes the log.
    async fn delete(&mut self) -> Outcome;

    /// How much the store holds, where it can tell cheaply.
    async fn bytes(&mut self) -> Result<Option<u64>, Failure>;
}

/// Whether the store of this URL has a bare driver.
pub(crate) fn is_there(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    feature(url).is_some_and(|feature| feature != "memory") && !scheme.ends_with("+cluster")
}

/// Connects to the store of this URL, for a log of this name; none where there
/// is no bare driver.
pub(crate) async fn open(url: &str, log: &str) -> Result<Option<Box<dyn Raw>>, Failure> {
    if !is_there(url) {
        return Ok(None);
    }
    let (address, options) = url.split_once('?').unwrap_or((url, ""));
    Ok(Some(match feature(url) {
        Some("sqlite") => Box::new(sqlite::open(&drivers_own(address, options, SQL), log).await?),
        Some("postgres") => {
            Box::new(postgres::open(&drivers_own(address, options, SQL), log).await?)
        }
        Some("mysql") => Box::new(mysql::open(&drivers_own(address, options, SQL), log).await?),
        Some("redis") => Box::new(redis::Log::open(address, log).await?),
        _ => {
            let prefix = option(options, "collection_prefix").unwrap_or("rheo_");
            let url = drivers_own(address, options, MONGO);
            Box::new(mongo::Log::open(&url, log, &format!("{prefix}events")).await?)
        }
    }))
}

/// So many clients of a new log, each with a partition to itself.
pub(crate) async fn clients(url: &str, log: &str, count: u32) -> Result<Vec<Client>, Failure> {
    let mut clients: Vec<Box<dyn Raw>> = Vec::new();
    if count > 0
        && let Some(mut first) = open(url, log).await?
    {
        first.create().await?;
        for partition in 1..count {
            clients.push(first.another(partition).await?);
        }
        clients.insert(0, first);
    }
    Ok(clients.into_iter().map(|client| Arc::new(Mutex::new(client))).collect())
}

/// Rheo's own options in a URL, which a driver would not know.
const SQL: &[&str] = &[
    "table_prefix",
    "schema",
    "max_connections",
    "wake",
    "poll_ms",
    "connect_timeout_ms",
    "statement_timeout_ms",
    "transaction_pooling",
];
const MONGO: &[&str] = &[
    "collection_prefix",
    "max_connections",
    "wake",
    "poll_ms",
    "connect_timeout_ms",
    "operation_timeout_ms",
];

/// A URL without Rheo's own options.
fn drivers_own(address: &str, options: &str, ours: &[&str]) -> String {
    let is_theirs = |pair: &&str| !ours.contains(&pair.split('=').next().unwrap_or_default());
    let theirs: Vec<_> = options.split('&').filter(|pair| !pair.is_empty()).collect();
    let theirs: Vec<_> = theirs.into_iter().filter(is_theirs).collect();
    if theirs.is_empty() { address.into() } else { format!("{address}?{}", theirs.join("&")) }
}

/// An option's value in a URL.
fn option<'a>(options: &'a str, name: &str) -> Option<&'a str> {
    let pairs = options.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
}

/// What a driver says went wrong.
fn told(error: impl Display) -> Failure {
    Failure::new(format!("the bare driver: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_gets_its_own_options_alone() {
        assert_eq!(drivers_own("m://h/d", "wake=off&tls=true", MONGO), "m://h/d?tls=true");
        assert_eq!(drivers_own("m://h/d", "wake=off", MONGO), "m://h/d");
        assert_eq!(drivers_own("m://h/d", "", MONGO), "m://h/d");
        assert_eq!(option("wake=off&collection_prefix=a_", "collection_prefix"), Some("a_"));
        assert_eq!(option("wake=off", "collection_prefix"), None);
    }

    #[test]
    fn not_every_store_has_a_bare_driver() {
        assert!(is_there("sqlite:log.db") && is_there("valkey://host"));
        assert!(!is_there("memory:") && !is_there("redis+cluster://host"));
    }
}

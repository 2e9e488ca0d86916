//! What tests of the binary share: running it, and stores to run it on.

#![allow(dead_code, reason = "no test uses all of it")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheo::{FetchOptions, NewEvent};
use rheo_conformance::servers::{self, MariaDb, Mongo, Postgres, Redis};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The binary, without what the surroundings say.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
    command.env_remove("RHEO_URL").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// What it answers, with nothing on its standard input.
pub(crate) fn rheo(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    command().args(args).stdin(std::process::Stdio::null()).output().expect("the binary runs")
}

/// What it answers about a store.
pub(crate) fn rheo_on(url: &str, args: &[&str]) -> Output {
    rheo(["--url", url].iter().chain(args))
}

/// What it prints when all is done as asked.
#[track_caller]
pub(crate) fn done(url: &str, args: &[&str]) -> String {
    let output = rheo_on(url, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

/// The same as the one JSON document that `--json` prints.
#[track_caller]
pub(crate) fn json(url: &str, args: &[&str]) -> Value {
    let text = done(url, &[&["--json"], args].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
}

/// The sentence on standard error with which it ends with this status.
#[track_caller]
pub(crate) fn refused(url: &str, status: i32, args: &[&str]) -> String {
    let output = rheo_on(url, args);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {told}");
    assert_eq!(stdout(&output), "", "{args:?}");
    told
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("it prints text")
}

/// Appends events of type `numbered` with payloads `{"n": 1}`, `{"n": 2}`, …,
/// all to partition 0.
pub(crate) fn fill(url: &str, stream: &str, count: u64) {
    block_on(async {
        let rheo = rheo::connect(url).await.expect("the store is there");
        let event = |n| NewEvent::new("numbered", json!({ "n": n })).partition(0);
        let events = (1..=count).map(event).collect();
        rheo.append_batch(stream, events).await.expect("they are appended");
    });
}

/// Fetches so many events for a group, and rejects them because `it is broken`.
pub(crate) fn reject(url: &str, stream: &str, group: &str, count: usize) {
    block_on(async {
        let rheo = rheo::connect(url).await.expect("the store is there");
        let fetched = rheo.fetch(stream, group, count, FetchOptions::default()).await;
        let fetched = fetched.expect("they are there");
        assert_eq!(fetched.len(), count);
        for delivery in fetched {
            rheo.reject(&delivery, "it is broken").await.expect("the lease is current");
        }
    });
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    Runtime::new().expect("the operating system gives threads").block_on(work)
}

/// A temporary directory, with a database of SQLite to be made in it.
#[derive(Debug)]
pub(crate) struct Sqlite {
    directory: PathBuf,
    url: String,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("rheo-cli-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).expect("a temporary directory can be made");
        let url = format!("sqlite:{}", directory.join("rheo.db").display());
        Self { directory, url }
    }

    /// With a stream in it.
    pub(crate) fn with_stream(stream: &str) -> Self {
        let sqlite = Self::new();
        done(sqlite.url(), &["create-stream", stream]);
        sqlite
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// For files beside the database.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A store, which is there as long as this is.
pub(crate) struct Store {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    server: Held,
}

/// What a store is gone with.
enum Held {
    Sqlite(Sqlite),
    Postgres(Postgres, Arc<Runtime>),
    MySql(MariaDb, Arc<Runtime>),
    Redis(Redis, Arc<Runtime>),
    Mongo(Mongo, Arc<Runtime>),
}

/// Every store that can be started here and that processes can share.
pub(crate) fn stores() -> Vec<Store> {
    let runtime = Arc::new(Runtime::new().expect("the operating system gives threads"));
    let (postgres, mysql, redis, mongo) = runtime.block_on(async {
        tokio::join!(Postgres::start(), MariaDb::start(), Redis::start(), Mongo::start())
    });
    let sqlite = Sqlite::new();
    let url = sqlite.url().to_string();
    let mut stores = vec![Store { name: "sqlite", url, server: Held::Sqlite(sqlite) }];
    let mut add = |name, url: String, server| {
        stores.push(Store { name, url, server });
    };
    if let Some(server) = servers::found("postgres", postgres) {
        add("postgres", server.url().into(), Held::Postgres(server, Arc::clone(&runtime)));
    }
    if let Some(server) = servers::found("mysql", mysql) {
        add("mysql", server.url().into(), Held::MySql(server, Arc::clone(&runtime)));
    }
    if let Some(server) = servers::found("redis", redis) {
        add("redis", server.url().into(), Held::Redis(server, Arc::clone(&runtime)));
    }
    if let Some(server) = servers::found("mongo", mongo) {
        add("mongo", server.url().into(), Held::Mongo(server, Arc::clone(&runtime)));
    }
    stores
}

//! What happens to a Redis server, and what becomes of Rheo on it.

#![cfg(unix)]

mod losing;
mod refusing;
mod replicas;
mod showing;
mod waiting;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, RedisError};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{
    Delivery, FetchOptions, GroupInfo, GroupOptions, ManualClock, NewEvent, Outcome, Rheo,
};
use rheo_redis::{Options, Redis};

pub(crate) const LEASE: Duration = Duration::from_secs(10);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A server of its own, an instance on it with a stream `s` of one partition
/// and a group `g`, and the server as its operator sees it.
pub(crate) struct Bench {
    pub(crate) server: Server,
    pub(crate) rheo: Rheo,
    pub(crate) clock: ManualClock,
    operator: MultiplexedConnection,
}

impl Bench {
    /// None where there is no server, and none is required.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(Options::default()).await
    }

    pub(crate) async fn start_with(options: Options) -> Option<Self> {
        let server = servers::found("redis", Server::private().await)?;
        let operator = operator_of(&server).await;
        let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
        let rheo = instance(server.url(), options, &clock).await;
        let bench = Self { server, rheo, clock, operator };
        bench.create().await;
        Some(bench)
    }

    /// Creates the stream and the group.
    pub(crate) async fn create(&self) {
        self.rheo.create_stream("s", 1).await.unwrap();
        self.rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    }

    /// Another process: its own instance on the same server and clock.
    pub(crate) async fn other(&self, options: Options) -> Rheo {
        instance(self.server.url(), options, &self.clock).await
    }

    /// What the server answers to the operator's command.
    pub(crate) async fn operator<T: FromRedisValue>(&self, command: &str) -> T {
        ask(&self.operator, command).await.unwrap()
    }

    /// A line of the operator's INFO.
    pub(crate) async fn fact(&self, name: &str) -> String {
        fact(&self.operator, name).await
    }

    pub(crate) async fn append(&self, count: u64) {
        let events = (1..=count).map(|number| NewEvent::new("t", number)).collect();
        self.rheo.append_batch("s", events).await.unwrap();
    }

    pub(crate) async fn fetch(&self, limit: usize) -> Vec<Delivery> {
        let options = FetchOptions::default().lease(LEASE).consumer("c");
        self.rheo.fetch("s", "g", limit, options).await.unwrap()
    }

    pub(crate) async fn settle<'a>(
        &self,
        settlements: impl IntoIterator<Item = (&'a Delivery, Outcome)>,
    ) {
        for answer in self.rheo.settle(settlements).await {
            answer.unwrap();
        }
    }

    pub(crate) async fn info(&self) -> GroupInfo {
        self.rheo.group_info("s", "g").await.unwrap()
    }
}

pub(crate) async fn instance(url: &str, options: Options, clock: &ManualClock) -> Rheo {
    let redis = Redis::connect_with(url, options).await.unwrap();
    Rheo::builder(redis).clock(clock.clone()).lease(LEASE).build().await.unwrap()
}

pub(crate) async fn operator_of(server: &Server) -> MultiplexedConnection {
    let client = Client::open(server.url()).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

/// Runs a command whose words are separated by spaces.
pub(crate) async fn ask<T: FromRedisValue>(
    connection: &MultiplexedConnection,
    command: &str,
) -> Result<T, RedisError> {
    let mut words = command.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query_async(&mut connection.clone()).await
}

pub(crate) async fn fact(connection: &MultiplexedConnection, name: &str) -> String {
    let info: String = ask(connection, "INFO").await.unwrap();
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("there is no {name} in {info}")).trim_end().to_owned()
}

pub(crate) fn sequences(deliveries: &[Delivery]) -> Vec<u64> {
    deliveries.iter().map(|delivery| delivery.event.sequence()).collect()
}

/// Waits until the condition holds, and fails where it does not in time.
pub(crate) async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let holds = async {
        while !condition().await {
            tokio::task::yield_now().await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(20), holds).await;
    assert!(in_time.is_ok(), "it never came true that {what}");
}

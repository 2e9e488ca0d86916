//! Waking other processes through PUBLISH, also after the connection that
//! hears it was cut.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, cmd};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
use rheo_redis::{Options, Redis};

const HOUR: Duration = Duration::from_secs(3600);
/// Far less than the waits here.
const SOON: Duration = Duration::from_secs(20);
const CHANNEL: &str = "rheo:wake:s";

async fn instance(url: &str) -> Rheo {
    // Nobody polls here.
    let redis = Redis::connect_with(url, Options::default().poll(HOUR)).await.unwrap();
    Rheo::builder(redis).build().await.unwrap()
}

/// The server as an administrator sees it.
struct Admin(MultiplexedConnection);

impl Admin {
    async fn connect(url: &str) -> Self {
        let client = Client::open(url).unwrap();
        Self(client.get_multiplexed_async_connection().await.unwrap())
    }

    async fn asks<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        cmd(words[0]).arg(&words[1..]).query_async(&mut self.0).await.unwrap()
    }

    /// Returns once so many connections hear of the stream.
    async fn sees_listening(&mut self, count: usize) {
        while self.asks::<(String, usize)>(&["PUBSUB", "NUMSUB", CHANNEL]).await.1 != count {
            tokio::task::yield_now().await;
        }
    }

    /// How often somebody has looked for work.
    async fn looks(&mut self) -> u64 {
        let stats: String = self.asks(&["INFO", "commandstats"]).await;
        let looks = stats.lines().find_map(|line| line.strip_prefix("cmdstat_fcall_ro:calls="));
        looks.and_then(|looks| looks.split(',').next()).map_or(0, |looks| looks.parse().unwrap())
    }

    async fn cuts(&mut self) {
        assert_eq!(self.asks::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await, 1);
    }
}

/// Waits with one instance until an append of another wakes it.
async fn assert_woken(waiting: &Rheo, appending: &Rheo, admin: &mut Admin) {
    let before = admin.looks().await;
    let wait = tokio::spawn({
        let waiting = waiting.clone();
        async move { waiting.wait("s", "g", HOUR).await }
    });
    admin.sees_listening(1).await;
    while admin.looks().await == before {
        tokio::task::yield_now().await;
    }
    // Where it listened before, only a signal makes it look again.
    appending.append("s", NewEvent::new("t", 1)).await.unwrap();
    wait.await.unwrap().unwrap();
    let deliveries = waiting.fetch("s", "g", 10, FetchOptions::default()).await.unwrap();
    assert_eq!(deliveries.len(), 1);
    waiting.ack(&deliveries[0]).await.unwrap();
}

#[tokio::test]
async fn a_cut_connection_comes_back_and_wakes_again() {
    let Some(server) = servers::found("redis", Server::private().await) else { return };
    let mut admin = Admin::connect(server.url()).await;
    let (waiting, appending) = (instance(server.url()).await, instance(server.url()).await);
    waiting.create_stream("s", 1).await.unwrap();
    waiting.create_group("s", "g", GroupOptions::default()).await.unwrap();
    admin.sees_listening(0).await;
    let test = async {
        for _ in 0..3 {
            assert_woken(&waiting, &appending, &mut admin).await;
            assert_woken(&waiting, &appending, &mut admin).await;
            admin.cuts().await;
        }
        assert_woken(&waiting, &appending, &mut admin).await;
        drop(waiting);
        admin.sees_listening(0).await;
    };
    tokio::time::timeout(SOON, test)
        .await
        .expect("it is woken, and listens no longer than it lives");
}

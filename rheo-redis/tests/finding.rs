//! What a search finds is what the matcher says, with an index and without, and
//! also where entries are missing.

#![cfg(unix)]

use redis::{Client, cmd};
use rheo_conformance::finding::{Finding, Plan};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{Event, Rheo};
use rheo_redis::{Index, Options, Redis};

/// Of few partitions, of more than go into a page, and of one that is longer
/// than a page.
const PLANS: [Plan<'static>; 3] = [
    Plan { stream: "short", partitions: 3, events: 300, queries: 300 },
    Plan { stream: "wide", partitions: 300, events: 900, queries: 50 },
    Plan { stream: "long", partitions: 1, events: 3000, queries: 50 },
];

/// Deletes some entries by hand.
async fn lose_some(server: &Server, prefix: &str, stream: &str, stored: &mut Vec<Event>) {
    let client = Client::open(server.url()).unwrap();
    let mut by_hand = client.get_multiplexed_async_connection().await.unwrap();
    for at in (0..stored.len()).rev().step_by(20) {
        let gone = stored.remove(at);
        let log = format!("{prefix}{{{stream}/{}}}", gone.partition());
        let mut delete = cmd("XDEL");
        delete.arg(log).arg(format!("0-{}", gone.sequence()));
        assert_eq!(delete.query_async::<u32>(&mut by_hand).await.unwrap(), 1);
    }
}

async fn queries_find_what_the_matcher_says(options: Options) {
    let Some(server) = servers::found("redis", Server::start().await) else { return };
    let prefix = format!("finding-{}:", fastrand::u64(..));
    let redis = Redis::connect_with(server.url(), options.prefix(&prefix)).await.unwrap();
    let rheo = Rheo::builder(redis.clone()).build().await.unwrap();
    let mut finding = Finding::new("redis", redis);
    for plan in PLANS {
        let mut stored = finding.fill(&plan).await;
        lose_some(&server, &prefix, plan.stream, &mut stored).await;
        finding.try_queries(&plan, &stored).await;
        let expected = stored.iter().filter(|event| event.partition() == 0);
        let read = rheo.read(plan.stream, 0, 0, 10_000).await.unwrap();
        assert_eq!(read.iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn by_reading_everything() {
    queries_find_what_the_matcher_says(Options::default()).await;
}

#[tokio::test]
async fn by_the_index() {
    let all = [Index::Type, Index::Key, Index::Lineage];
    queries_find_what_the_matcher_says(Options::default().index(all)).await;
}

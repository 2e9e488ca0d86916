//! What the server's own commands show is what Rheo says.

use std::collections::BTreeMap;
use std::time::Duration;

use rheo_core::{Outcome, Replay, ReplayOptions};

use crate::{Bench, HOUR, LEASE};

/// The group as XINFO GROUPS shows it.
#[derive(Debug, PartialEq)]
struct Shown {
    last_delivered: u64,
    pending: u64,
    lag: Option<u64>,
}

async fn shown(bench: &Bench) -> Shown {
    let groups: Vec<BTreeMap<String, redis::Value>> =
        bench.operator("XINFO GROUPS rheo:{s/0}").await;
    let field = |name: &str| groups[0][name].clone();
    let number = |name: &str| redis::from_redis_value::<Option<u64>>(field(name)).unwrap();
    let id: String = redis::from_redis_value(field("last-delivered-id")).unwrap();
    Shown {
        last_delivered: id.strip_prefix("0-").unwrap().parse().unwrap(),
        pending: number("pending").unwrap(),
        lag: number("lag"),
    }
}

/// The events on the pending list, and how often each was delivered.
async fn pending(bench: &Bench) -> Vec<(u64, u64)> {
    let entries: Vec<(String, String, u64, u64)> =
        bench.operator("XPENDING rheo:{s/0} g - + 1000").await;
    let entry = |(id, _, _, count): &(String, String, u64, u64)| {
        (id.strip_prefix("0-").unwrap().parse().unwrap(), *count)
    };
    entries.iter().map(entry).collect()
}

/// The server's view agrees with Rheo's: what is open is pending, and the rest
/// of the lag is new.
async fn assert_agrees(bench: &Bench, expected: &[(u64, u64)]) {
    let (info, shown) = (bench.info().await, shown(bench).await);
    let progress = info.partitions[0];
    assert_eq!(pending(bench).await, expected);
    assert_eq!(shown.pending, progress.leased + progress.waiting, "{shown:?} {progress:?}");
    assert_eq!(shown.lag, Some(progress.high_watermark - shown.last_delivered), "{shown:?}");
    let lowest = expected.first().map_or(shown.last_delivered, |(first, _)| first - 1);
    assert_eq!(progress.frontier, lowest);
}

#[tokio::test]
async fn the_server_shows_what_rheo_says() {
    let Some(bench) = Bench::start().await else { return };
    assert_agrees(&bench, &[]).await;
    bench.append(10).await;
    assert_agrees(&bench, &[]).await;

    let held = bench.fetch(6).await;
    assert_agrees(&bench, &[(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)]).await;
    let outcomes = [
        Outcome::Ack,
        Outcome::retry("again"),
        Outcome::retry_after("later", HOUR),
        Outcome::Release,
        Outcome::reject("never"),
    ];
    bench.settle(held.iter().zip(outcomes)).await;
    assert_agrees(&bench, &[(2, 1), (3, 1), (4, 0), (6, 1)]).await;

    assert_eq!(crate::sequences(&bench.fetch(3).await), [2, 4, 7]);
    assert_agrees(&bench, &[(2, 2), (3, 1), (4, 1), (6, 1), (7, 1)]).await;
    bench.clock.advance(LEASE + Duration::from_secs(1));
    assert_eq!(crate::sequences(&bench.fetch(9).await), [2, 4, 6, 7, 8, 9, 10]);
    let open = [(2, 3), (3, 1), (4, 2), (6, 2), (7, 2), (8, 1), (9, 1), (10, 1)];
    assert_agrees(&bench, &open).await;
}

/// After replays and a reset too.
#[tokio::test]
async fn the_server_shows_replays() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(6).await;
    let held = bench.fetch(4).await;
    bench.settle(held[..3].iter().map(|one| (one, Outcome::Ack))).await;
    assert_agrees(&bench, &[(4, 1)]).await;

    let second = vec![rheo_core::Position::new(0, 2)];
    let options = ReplayOptions::default;
    bench.rheo.replay("s", "g", Replay::Positions(second), options()).await.unwrap();
    assert_agrees(&bench, &[(2, 1), (4, 1)]).await;
    let again = bench.fetch(1).await;
    assert_eq!((again[0].event.sequence(), again[0].lease.attempt()), (2, 2));
    assert_agrees(&bench, &[(2, 2), (4, 1)]).await;

    bench.rheo.replay("s", "g", Replay::AfterSequence(0), options()).await.unwrap();
    let all = bench.fetch(10).await;
    let attempts: Vec<_> = all.iter().map(|one| u64::from(one.lease.attempt())).collect();
    assert_eq!(attempts, [2, 3, 2, 2, 1, 1]);
    assert_agrees(&bench, &[(1, 2), (2, 3), (3, 2), (4, 2), (5, 1), (6, 1)]).await;
    bench.settle(all.iter().map(|one| (one, Outcome::Ack))).await;
    assert_agrees(&bench, &[]).await;

    let start = rheo_core::Start::AfterSequence(4);
    bench.rheo.reset_group("s", "g", rheo_core::Confirm::Yes, start).await.unwrap();
    let shown = shown(&bench).await;
    assert_eq!(shown, Shown { last_delivered: 4, pending: 0, lag: Some(2) });
}

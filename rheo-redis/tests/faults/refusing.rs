//! Servers that refuse: each refusal has its kind, and tells what to do.

use rheo_core::{
    Confirm, Effect, Error, ErrorKind, GroupOptions, NewEvent, Outcome, Result, Retry, Rheo,
};
use rheo_redis::{Options, Redis};

use crate::{Bench, ask, eventually, fact, operator_of, sequences};

async fn append(rheo: &Rheo) -> Result<u64> {
    Ok(rheo.append("s", NewEvent::new("t", 1)).await?.sequence())
}

/// Nothing was done, and after a pause it may be.
#[track_caller]
fn assert_not_now(error: &Error, word: &str) {
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!((error.retry(), error.effect()), (Retry::After, Effect::NotApplied), "{error}");
    assert!(error.context().contains(word), "{error} does not say {word:?}");
}

/// With its memory used up a server takes no events. What frees memory still works.
#[tokio::test]
async fn memory_is_used_up() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(6).await;
    let deliveries = bench.fetch(5).await;
    bench.rheo.create_stream("wide", 3).await.unwrap();
    for group in ["kept", "gone"] {
        bench.rheo.create_group("wide", group, GroupOptions::default()).await.unwrap();
    }
    bench.operator::<()>("CONFIG SET maxmemory 1mb").await;

    assert_not_now(&append(&bench.rheo).await.unwrap_err(), "maxmemory");
    let batch = (0..100).map(|number| NewEvent::new("t", number)).collect();
    assert_not_now(&bench.rheo.append_batch("s", batch).await.unwrap_err(), "maxmemory");
    let fetched = bench.rheo.fetch("s", "g", 1, rheo_core::FetchOptions::default()).await;
    assert_not_now(&fetched.unwrap_err(), "maxmemory");
    let created = bench.rheo.create_stream("more", 4).await;
    assert_not_now(&created.unwrap_err(), "maxmemory");

    assert_eq!(bench.rheo.read("s", 0, 0, 100).await.unwrap().len(), 6);
    bench.rheo.ack(&deliveries[0]).await.unwrap();
    let acks = deliveries[1..3].iter().map(|one| (one, Outcome::Ack));
    bench.settle(acks).await;
    bench.rheo.release(&deliveries[3]).await.unwrap();
    bench.rheo.reject(&deliveries[4], "no").await.unwrap();
    assert_eq!(bench.info().await.partitions[0].frontier, 3);
    assert_eq!(bench.rheo.lag("wide", "kept").await.unwrap().total(), 0);
    bench.rheo.delete_group("wide", "gone", Confirm::Yes).await.unwrap();
    bench.rheo.delete_stream("wide", Confirm::Yes).await.unwrap();

    bench.operator::<()>("CONFIG SET maxmemory 0").await;
    assert_eq!(append(&bench.rheo).await.unwrap(), 7);
    bench.rheo.create_stream("more", 4).await.unwrap();
    assert_eq!(sequences(&bench.fetch(10).await), [4, 6, 7]);
}

/// A primary that became a replica of one that cannot be reached: it takes no
/// writes, and then does not even answer from old data.
#[tokio::test]
async fn a_replica_takes_no_writes() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(2).await;
    let delivery = bench.fetch(1).await.remove(0);
    bench.operator::<()>("REPLICAOF 127.0.0.1 1").await;
    assert_not_now(&append(&bench.rheo).await.unwrap_err(), "replica");
    assert_not_now(&bench.rheo.ack(&delivery).await.unwrap_err(), "replica");
    assert_eq!(bench.rheo.read("s", 0, 0, 9).await.unwrap().len(), 2);
    bench.operator::<()>("CONFIG SET replica-serve-stale-data no").await;
    assert_not_now(&append(&bench.rheo).await.unwrap_err(), "replica");
    assert_not_now(&bench.rheo.read("s", 0, 0, 9).await.unwrap_err(), "replica");
    bench.operator::<()>("REPLICAOF NO ONE").await;
    bench.rheo.ack(&delivery).await.unwrap();
    assert_eq!(append(&bench.rheo).await.unwrap(), 3);
}

/// A server that begins to follow another loads what that has: until then it
/// refuses, and once it leads again it is as good as before.
#[tokio::test]
async fn a_loading_server_asks_for_patience() {
    let Some(bench) = Bench::start().await else { return };
    bench.append(2).await;
    for number in 0..2000 {
        bench.operator::<()>(&format!("SET filler:{number} {}", "x".repeat(2000))).await;
    }
    let other = Bench::start().await.expect("there is one already").server;
    let its_operator = operator_of(&other).await;
    let address = bench.server.url().trim_start_matches("redis://").replace(':', " ");
    ask::<()>(&its_operator, &format!("REPLICAOF {address}")).await.unwrap();
    eventually("the other has all of it", async || {
        fact(&its_operator, "master_link_status").await == "up"
    })
    .await;
    ask::<()>(&its_operator, "REPLICAOF NO ONE").await.unwrap();

    // What the other does not have makes it send everything.
    bench.operator::<()>("SET filler:late 1").await;
    bench.operator::<()>("CONFIG SET loading-process-events-interval-bytes 1024").await;
    bench.operator::<()>("CONFIG SET key-load-delay 500").await;
    let address = other.url().trim_start_matches("redis://").replace(':', " ");
    bench.operator::<()>(&format!("REPLICAOF {address}")).await;
    eventually("it loads", async || bench.fact("loading").await == "1").await;
    assert_not_now(&bench.rheo.read("s", 0, 0, 9).await.unwrap_err(), "load");
    // Of the two reasons against a write it tells the other.
    assert_not_now(&append(&bench.rheo).await.unwrap_err(), "replica");
    eventually("it has loaded", async || bench.fact("master_link_status").await == "up").await;
    bench.operator::<()>("REPLICAOF NO ONE").await;
    assert_eq!(append(&bench.rheo).await.unwrap(), 3);
    assert_eq!(sequences(&bench.fetch(9).await), [1, 2, 3]);
}

/// The error of a user who may do everything but this.
async fn connecting_without(bench: &Bench, user: &str, rights: &str) -> Error {
    bench.operator::<()>(&format!("ACL SETUSER {user} on >secret {rights}")).await;
    let url = bench.server.url().replace("//", &format!("//{user}:secret@"));
    let connected = async {
        let redis = Redis::connect_with(&url, Options::default()).await?;
        let rheo = Rheo::builder(redis).build().await?;
        append(&rheo).await
    };
    connected.await.unwrap_err()
}

/// A privilege that is missing is named, and no secret is.
#[tokio::test]
async fn a_missing_privilege_is_named() {
    let Some(bench) = Bench::start().await else { return };
    for (user, rights, named) in [
        ("a", "~* &* +@all -fcall", "fcall"),
        ("b", "~* &* +@all -function", "function"),
        // From inside a function the server does not tell which command it was.
        ("c", "~* &* +@all -xadd", "privilege"),
        ("d", "~other:* &* +@all", "key"),
    ] {
        let error = connecting_without(&bench, user, rights).await;
        assert_eq!((error.kind(), error.retry()), (ErrorKind::Config, Retry::Never), "{error}");
        let text = error.to_string().to_lowercase();
        assert!(text.contains(named), "{error} does not name {named}");
        assert!(!text.contains("secret"), "{error}");
    }
    assert_eq!(append(&bench.rheo).await.unwrap(), 1);
}

/// Who may not publish still appends: waking is no privilege that anything needs.
#[tokio::test]
async fn without_channels_everything_but_waking_works() {
    let Some(bench) = Bench::start().await else { return };
    bench.operator::<()>("ACL SETUSER mute on >secret ~* +@all resetchannels").await;
    let url = bench.server.url().replace("//", "//mute:secret@");
    let mute = crate::instance(&url, Options::default(), &bench.clock).await;
    assert_eq!(append(&mute).await.unwrap(), 1);
    mute.wait("s", "g", crate::HOUR).await.unwrap();
    let waiting = mute.wait("s", "g", std::time::Duration::from_secs(20));
    bench.rheo.ack(bench.fetch(1).await.remove(0)).await.unwrap();
    let (waited, appended) = tokio::join!(waiting, append(&bench.rheo));
    waited.unwrap();
    assert_eq!(appended.unwrap(), 2);
    assert_eq!(sequences(&bench.fetch(9).await), [2]);
}

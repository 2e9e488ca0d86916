//! Waiting for replicas, with a real one.

use std::time::Duration;

use rheo_conformance::servers::Redis as Server;
use rheo_core::{Effect, ErrorKind, NewEvent};
use rheo_redis::Options;

use crate::{Bench, ask, eventually, operator_of, sequences};

/// A write is there once a replica has it; where none has, that is told, and
/// the write is there all the same.
#[tokio::test]
async fn a_write_waits_for_its_replica() {
    let Some(bench) = Bench::start().await else { return };
    let replica = Server::private().await.expect("there is one already");
    let at_replica = operator_of(&replica).await;
    let address = bench.server.url().trim_start_matches("redis://").replace(':', " ");
    ask::<()>(&at_replica, &format!("REPLICAOF {address}")).await.unwrap();
    eventually("it follows", async || bench.fact("connected_slaves").await == "1").await;

    let options = Options::default().replicas(1).replica_timeout(Duration::from_secs(9));
    let careful = bench.other(options.response_timeout(Duration::from_secs(20))).await;
    for number in 1..=20 {
        careful.append("s", NewEvent::new("t", number)).await.unwrap();
        let there: u64 = ask(&at_replica, "XLEN rheo:{s/0}").await.unwrap();
        assert_eq!(there, number);
    }
    careful.ack(bench.fetch(1).await.remove(0)).await.unwrap();

    replica.stop().await.unwrap();
    eventually("it is missed", async || bench.fact("connected_slaves").await == "0").await;
    let options = Options::default().replicas(1).replica_timeout(Duration::from_millis(50));
    let hasty = bench.other(options).await;
    let error = hasty.append("s", NewEvent::new("t", 21)).await.unwrap_err();
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown));
    assert!(error.context().contains("replica"), "{error}");
    assert_eq!(hasty.read("s", 0, 20, 9).await.unwrap().len(), 1);
    assert_eq!(sequences(&bench.fetch(100).await), (2..=21).collect::<Vec<_>>());
}

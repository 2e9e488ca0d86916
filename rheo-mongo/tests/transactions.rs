//! The user's own transactions, ended and unended, and sessions that have none.

#![cfg(unix)]

use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{Delivery, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Rheo};
use rheo_mongo::mongodb::{Client, ClientSession};
use rheo_mongo::{InTransaction, Mongo, Options};

/// A stream `s` of two partitions with a group `g`, and the client beneath.
struct Joined {
    client: Client,
    rheo: Rheo,
}

impl Joined {
    async fn on(server: &Server, prefix: &str) -> Self {
        let client = Client::with_uri_str(server.url()).await.unwrap();
        let database = client.default_database().unwrap();
        let options = Options::default().collection_prefix(prefix);
        let mongo = Mongo::on_client(client.clone(), database.name(), options).await.unwrap();
        let rheo = Rheo::builder(mongo).build().await.unwrap();
        rheo.create_stream("s", 2).await.unwrap();
        rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
        Self { client, rheo }
    }

    async fn begin(&self) -> ClientSession {
        let mut session = self.client.start_session().await.unwrap();
        session.start_transaction().await.unwrap();
        session
    }

    async fn append(&self, session: &mut ClientSession, number: u32) -> rheo_core::Result<u64> {
        Ok(self.rheo.append_in(session, "s", event(number)).await?.sequence())
    }

    async fn payloads(&self) -> Vec<u64> {
        let events = self.rheo.read("s", 0, 0, 1000).await.unwrap();
        assert!(events.iter().map(|event| event.sequence()).eq(1..=events.len() as u64));
        events.iter().map(|event| event.payload().as_u64().unwrap()).collect()
    }

    async fn fetch_one(&self) -> Delivery {
        self.rheo.fetch("s", "g", 1, FetchOptions::default()).await.unwrap().remove(0)
    }
}

fn event(number: u32) -> NewEvent {
    NewEvent::new("t", number).partition(0)
}

/// What is aborted was never there, and its sequence goes to the next event.
#[tokio::test]
async fn an_aborted_append_leaves_nothing() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let joined = Joined::on(&server, "aborted_").await;
    let mut session = joined.begin().await;
    assert_eq!(joined.append(&mut session, 1).await.unwrap(), 1);
    let both = vec![event(2), event(3)];
    let others = joined.rheo.append_batch_in(&mut session, "s", both).await.unwrap();
    assert_eq!(others[1].sequence(), 3);
    session.abort_transaction().await.unwrap();
    assert_eq!(joined.payloads().await, [0; 0]);

    session.start_transaction().await.unwrap();
    assert_eq!(joined.append(&mut session, 4).await.unwrap(), 1);
    session.commit_transaction().await.unwrap();
    assert_eq!(joined.rheo.append("s", event(5)).await.unwrap().sequence(), 2);
    assert_eq!(joined.payloads().await, [4, 5]);
}

/// A lease that was settled in a transaction ends with its commit, and not without it.
#[tokio::test]
async fn a_settle_ends_with_its_transaction() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let joined = Joined::on(&server, "settled_").await;
    joined.rheo.append("s", event(1)).await.unwrap();
    let Delivery { lease, .. } = joined.fetch_one().await;
    let mut session = joined.begin().await;
    joined.rheo.settle_in(&mut session, &lease, Outcome::Ack).await.unwrap();
    session.abort_transaction().await.unwrap();
    assert_eq!(joined.rheo.group_info("s", "g").await.unwrap().leased(), 1);

    session.start_transaction().await.unwrap();
    joined.rheo.settle_in(&mut session, &lease, Outcome::Ack).await.unwrap();
    session.commit_transaction().await.unwrap();
    assert_eq!(joined.rheo.group_info("s", "g").await.unwrap().lag(), 0);

    session.start_transaction().await.unwrap();
    let again = joined.rheo.settle_in(&mut session, &lease, Outcome::Ack).await;
    assert_eq!(again.unwrap_err().kind(), ErrorKind::StaleLease);
    session.abort_transaction().await.unwrap();
}

/// Of two that append to one partition, the second is told to do all of it
/// again. Others wait, in other partitions nobody does.
#[tokio::test]
async fn a_conflict_is_told_and_nothing_of_it_is_left() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let joined = Joined::on(&server, "conflict_").await;
    let (mut first, mut second) = (joined.begin().await, joined.begin().await);
    joined.append(&mut first, 1).await.unwrap();
    let error = joined.append(&mut second, 2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    second.abort_transaction().await.unwrap();
    joined.rheo.append("s", event(3).partition(1)).await.unwrap();
    let waiting = tokio::spawn({
        let rheo = joined.rheo.clone();
        async move { rheo.append("s", event(4)).await }
    });
    tokio::task::yield_now().await;
    first.commit_transaction().await.unwrap();
    waiting.await.unwrap().unwrap();

    second.start_transaction().await.unwrap();
    assert_eq!(joined.append(&mut second, 2).await.unwrap(), 3);
    second.commit_transaction().await.unwrap();
    assert_eq!(joined.payloads().await, [1, 4, 2]);
}

/// Without a transaction nothing is written, and the session can still begin one.
#[tokio::test]
async fn a_session_without_a_transaction_is_refused() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let joined = Joined::on(&server, "none_").await;
    joined.rheo.append("s", event(1)).await.unwrap();
    let Delivery { lease, .. } = joined.fetch_one().await;
    let mut session = joined.client.start_session().await.unwrap();
    let error = joined.append(&mut session, 2).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.context().contains("start_transaction"), "{error}");
    let settled = joined.rheo.settle_in(&mut session, &lease, Outcome::Ack).await;
    assert_eq!(settled.unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(joined.payloads().await, [1]);

    session.start_transaction().await.unwrap();
    assert_eq!(joined.append(&mut session, 2).await.unwrap(), 2);
    session.commit_transaction().await.unwrap();
    assert_eq!(joined.payloads().await, [1, 2]);
}

/// Another client may be another server.
#[tokio::test]
async fn a_session_of_another_client_is_refused() {
    let Some(server) = servers::found("mongo", Server::start().await) else { return };
    let joined = Joined::on(&server, "other_").await;
    let other = Client::with_uri_str(server.url()).await.unwrap();
    let mut session = other.start_session().await.unwrap();
    session.start_transaction().await.unwrap();
    let error = joined.append(&mut session, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.context().contains("on_client"), "{error}");
    session.abort_transaction().await.unwrap();
    assert_eq!(joined.payloads().await, [0; 0]);
}

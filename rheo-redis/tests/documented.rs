//! What the documentation tells an operator to type does what it says.

#![cfg(unix)]

use std::time::Duration;

use redis::{Client, Value};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{
    Confirm, Delivery, FetchOptions, GroupOptions, NewEvent, Outcome, Query, Replay, ReplayOptions,
    Result, Rheo, Start,
};
use rheo_redis::{Index, Options, Redis};
use uuid::Uuid;

const DOCUMENT: &str = include_str!("../../docs/redis.md");

/// The words of the command of that name which the document shows, as a shell
/// passes them on.
fn command(name: &str) -> redis::Cmd {
    let (_, rest) = DOCUMENT.split_once(&format!("redis-cli {name} ")).expect("it is there");
    let (line, _) = rest.split_once("```").expect("the block ends");
    let words = line.split_whitespace().filter(|word| *word != "\\");
    let mut command = redis::Cmd::new();
    name.split(' ').chain(words.map(|word| word.trim_matches('\''))).for_each(|word| {
        command.arg(word);
    });
    command
}

/// The user of the document may do all that Rheo does, and is refused nothing.
#[tokio::test]
async fn the_user_has_the_rights_it_needs() {
    let Some(server) = servers::found("redis", Server::private().await) else { return };
    let client = Client::open(server.url()).unwrap();
    let mut operator = client.get_multiplexed_async_connection().await.unwrap();
    command("ACL SETUSER").exec_async(&mut operator).await.unwrap();

    let url = server.url().replace("//", "//rheo:password@") + "/1";
    let options = Options::default().index([Index::Type, Index::Key, Index::Lineage]);
    let redis = Redis::connect_with(&url, options).await.unwrap();
    let rheo = Rheo::builder(redis).build().await.unwrap();
    use_all_of(&rheo).await.unwrap();

    let mut log = redis::cmd("ACL");
    let refused: Vec<Value> = log.arg("LOG").query_async(&mut operator).await.unwrap();
    let sets_info = |entry: &&Value| !format!("{entry:?}").contains("client|setinfo");
    let refused: Vec<_> = refused.iter().filter(sets_info).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Whatever a function may run is in that list, also where no test runs it.
#[test]
fn the_user_may_run_what_the_functions_run() {
    let line = command("ACL SETUSER").get_packed_command();
    let line = String::from_utf8(line).unwrap();
    let allows = |command: &str| {
        let command = format!("+{}", command.to_lowercase());
        line.lines().any(|word| word == command || word.starts_with(&format!("{command}|")))
    };
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lua");
    for file in std::fs::read_dir(directory).unwrap() {
        let code = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for call in code.split("call('").skip(1) {
            let (command, _) = call.split_once('\'').unwrap();
            assert!(allows(command), "{command} is missing from the document");
        }
    }
}

/// Makes each kind of call once, and every outcome of a lease.
async fn use_all_of(rheo: &Rheo) -> Result<()> {
    rheo.ping().await?;
    rheo.create_stream("s", 2).await?;
    for group in ["plain", "ordered"] {
        let options = GroupOptions::default().ordered(group == "ordered");
        rheo.create_group("s", group, options).await?;
    }
    let event = |number| NewEvent::new("t", number).key("k").id(Uuid::now_v7()).partition(0);
    rheo.append_batch("s", (0..6).map(event).collect()).await?;
    let leased = fetch(rheo, "plain").await?;
    let outcomes = [Outcome::Ack, Outcome::retry("again"), Outcome::Release, Outcome::reject("no")];
    for answer in rheo.settle(leased.iter().zip(outcomes)).await {
        answer?;
    }
    rheo.renew(&leased[4], Duration::from_secs(60)).await?;
    fetch(rheo, "plain").await?;
    assert_eq!(rheo.dead_letters("s", "plain", 10, None).await?.len(), 1);
    for replay in [Replay::DeadLetters, Replay::AfterSequence(0)] {
        rheo.replay("s", "plain", replay, ReplayOptions::default()).await?;
    }
    fetch(rheo, "ordered").await?;
    rheo.group_info("s", "ordered").await?;
    rheo.reset_group("s", "ordered", Confirm::Yes, Start::End).await?;
    rheo.wait("s", "ordered", Duration::from_millis(20)).await?;

    assert_eq!(rheo.read("s", 0, 0, 10).await?.len(), 6);
    assert_eq!(rheo.query("s", &Query::default().key("k")).await?.len(), 6);
    rheo.list_groups("s").await?;
    rheo.delete_group("s", "plain", Confirm::Yes).await?;
    rheo.delete_stream("s", Confirm::Yes).await?;
    assert!(rheo.list_streams().await?.is_empty());
    Ok(())
}

async fn fetch(rheo: &Rheo, group: &str) -> Result<Vec<Delivery>> {
    rheo.fetch("s", group, 10, FetchOptions::default()).await
}

/// The document's way to look at a group is an answer, and its numbers are there.
#[tokio::test]
async fn the_commands_show_a_group() {
    let Some(server) = servers::found("redis", Server::private().await) else { return };
    let redis = Redis::connect_with(server.url(), Options::default()).await.unwrap();
    let rheo = Rheo::builder(redis).build().await.unwrap();
    rheo.create_stream("orders", 1).await.unwrap();
    rheo.create_group("orders", "billing", GroupOptions::default()).await.unwrap();
    rheo.append("orders", NewEvent::new("t", 1)).await.unwrap();
    let options = FetchOptions::default().consumer("worker-7");
    rheo.fetch("orders", "billing", 1, options).await.unwrap();

    let mut operator =
        Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let mut ask = redis::cmd("XPENDING");
    ask.arg("rheo:{orders/0}").arg("billing").arg("-").arg("+").arg(1);
    let pending: Vec<(String, String, u64, u64)> = ask.query_async(&mut operator).await.unwrap();
    let [(id, consumer, _, attempt)] = &pending[..] else { panic!("{pending:?}") };
    assert_eq!((&**id, &**consumer, *attempt), ("0-1", "worker-7", 1));
}

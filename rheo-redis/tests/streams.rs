//! Streams and groups whose creation or deletion was cut off, as it can be in
//! a cluster between any two partitions, and calls that arrive late.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, Value, cmd};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{
    Confirm, ErrorKind, FetchOptions, GroupOptions, NewEvent, Outcome, Result, Rheo, Start,
};
use rheo_redis::{Options, Redis};

/// An instance, and its server as an administrator sees it.
struct World {
    rheo: Rheo,
    admin: MultiplexedConnection,
    /// The name of the library of functions.
    library: String,
    server: Server,
}

impl World {
    async fn new() -> Option<Self> {
        let server = servers::found("redis", Server::private().await)?;
        let client = Client::open(server.url()).unwrap();
        let admin = client.get_multiplexed_async_connection().await.unwrap();
        let rheo = instance(&server).await;
        let mut world = Self { rheo, admin, library: String::new(), server };
        let libraries: Vec<HashMap<String, Value>> = world.asks(&["FUNCTION", "LIST"]).await;
        let name = libraries[0]["library_name"].clone();
        world.library = String::from_redis_value(name).unwrap();
        Some(world)
    }

    async fn asks<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        cmd(words[0]).arg(&words[1..]).query_async(&mut self.admin).await.unwrap()
    }

    /// Calls a function on these keys.
    async fn calls(&mut self, function: &str, keys: &[String], args: &[&str]) -> Value {
        let function = format!("{}_{function}", self.library);
        let mut call = cmd("FCALL");
        call.arg(function).arg(keys.len()).arg(keys).arg(args);
        call.query_async(&mut self.admin).await.unwrap()
    }

    /// Says in the catalog how stream `s` stands.
    async fn enters(&mut self, entry: &str) {
        self.asks::<Value>(&["HSET", "rheo:streams", "s", entry]).await;
    }

    /// What the catalog says of stream `s`, word by word.
    async fn entry(&mut self) -> Option<Vec<String>> {
        let entry: Option<String> = self.asks(&["HGET", "rheo:streams", "s"]).await;
        entry.map(|entry| entry.split(' ').map(String::from).collect())
    }

    /// The number that tells stream `s` from others of its name.
    async fn made(&mut self) -> String {
        self.entry().await.unwrap()[0].clone()
    }

    /// The number that tells group `g` from others of its name.
    async fn made_of_group(&mut self) -> String {
        self.asks(&["HGET", "rheo:{s/0}:group:g", "made"]).await
    }

    /// All keys but the catalog and the short memories of what was dropped.
    async fn keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = self.asks(&["KEYS", "rheo:{*"]).await;
        keys.retain(|key| !key.ends_with(":dropped"));
        keys
    }

    /// The sequences that group `g` is handed from one partition.
    async fn fetches(&self, partition: u32) -> Result<Vec<u64>> {
        let options = FetchOptions::default().partitions([partition]);
        let deliveries = self.rheo.fetch("s", "g", 10, options).await?;
        Ok(deliveries.iter().map(|delivery| delivery.event.sequence()).collect())
    }

    async fn appends(&self, partition: u32) {
        let event = NewEvent::new("t", 1).partition(partition);
        self.rheo.append("s", event).await.unwrap();
    }

    /// A stream of three partitions with an event in each, and a group of
    /// which partition 0 alone knows: its creation was cut off.
    async fn has_half_a_group(&mut self) {
        self.rheo.create_stream("s", 3).await.unwrap();
        for partition in 0..3 {
            self.appends(partition).await;
        }
        self.calls("enter_group", &group(0), &["3", "g", "2", "0", "0", "0 0 0"]).await;
    }

    async fn creates_group(&self) -> Result<()> {
        self.rheo.create_group("s", "g", GroupOptions::default()).await
    }
}

async fn instance(server: &Server) -> Rheo {
    let redis = Redis::connect_with(server.url(), Options::default()).await.unwrap();
    Rheo::builder(redis).build().await.unwrap()
}

/// The keys of a partition of stream `s`.
fn partition(number: u32) -> Vec<String> {
    vec![format!("rheo:{{s/{number}}}"), format!("rheo:{{s/{number}}}:meta")]
}

/// The keys of group `g` in a partition of stream `s`.
fn group(number: u32) -> Vec<String> {
    let mut keys = partition(number);
    let hash = format!("rheo:{{s/{number}}}:group:g");
    let parts = ["open", "leased", "delayed", "ready", "attempts", "dead", "graves"];
    keys.push(hash.clone());
    keys.extend(parts.iter().map(|part| format!("{hash}:{part}")));
    keys
}

#[track_caller]
fn assert_kind<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    assert_eq!(result.unwrap_err().kind(), kind);
}

#[tokio::test]
async fn a_cut_off_creation_is_finished_by_whoever_meets_it() {
    let Some(mut world) = World::new().await else { return };
    for way in ["partitions", "list_streams", "create_stream", "delete_stream"] {
        world.enters("7 3 making ").await;
        world.calls("make_partition", &partition(1), &["3", "7", ""]).await;
        match way {
            "partitions" => assert_eq!(world.rheo.partitions("s").await.unwrap(), 3),
            "list_streams" => assert_eq!(world.rheo.list_streams().await.unwrap().len(), 1),
            "create_stream" => {
                assert_kind(world.rheo.create_stream("s", 5).await, ErrorKind::AlreadyExists);
            }
            _ => world.rheo.delete_stream("s", Confirm::Yes).await.unwrap(),
        }
        if way == "delete_stream" {
            assert_eq!(world.entry().await, None);
            assert_eq!(world.keys().await, Vec::<String>::new());
        } else {
            assert_eq!(world.entry().await.unwrap(), ["7", "3", "ready", ""], "{way}");
            assert_eq!(world.rheo.partitions("s").await.unwrap(), 3);
            world.appends(2).await;
            world.asks::<Value>(&["FLUSHALL"]).await;
        }
    }
}

#[tokio::test]
async fn a_cut_off_deletion_is_finished_by_whoever_meets_it() {
    let Some(mut world) = World::new().await else { return };
    for way in ["partitions", "list_streams", "create_stream", "delete_stream"] {
        world.rheo.create_stream("s", 3).await.unwrap();
        world.creates_group().await.unwrap();
        world.appends(2).await;
        let made = world.made().await;
        world.enters(&format!("{made} 3 dropping ")).await;
        world.calls("drop_partition", &partition(1), &[&made, ""]).await;
        let fresh = instance(&world.server).await;
        match way {
            "partitions" => assert_kind(fresh.partitions("s").await, ErrorKind::StreamNotFound),
            "list_streams" => assert_eq!(fresh.list_streams().await.unwrap(), []),
            "create_stream" => {
                fresh.create_stream("s", 5).await.unwrap();
                assert_eq!(fresh.partitions("s").await.unwrap(), 5);
                assert_eq!(fresh.read("s", 2, 0, 10).await.unwrap(), []);
                assert_eq!(fresh.list_groups("s").await.unwrap(), []);
                fresh.delete_stream("s", Confirm::Yes).await.unwrap();
            }
            _ => {
                let deleted = fresh.delete_stream("s", Confirm::Yes).await;
                assert_kind(deleted, ErrorKind::StreamNotFound);
            }
        }
        assert_eq!(world.entry().await, None, "{way}");
        assert_eq!(world.keys().await, Vec::<String>::new(), "{way}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_racing_creates_one_wins_with_all_its_partitions() {
    let Some(mut world) = World::new().await else { return };
    for _ in 0..5 {
        let mut creates = Vec::new();
        for partitions in 1..=32 {
            let rheo = instance(&world.server).await;
            creates.push(tokio::spawn(async move {
                (partitions, rheo.create_stream("s", partitions).await)
            }));
        }
        let mut winners = Vec::new();
        for create in creates {
            match create.await.unwrap() {
                (partitions, Ok(())) => winners.push(partitions),
                (_, lost) => assert_kind(lost, ErrorKind::AlreadyExists),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(world.entry().await.unwrap()[1..], [&winners[0].to_string(), "ready", ""]);
        let metas: Vec<String> = world.asks(&["KEYS", "rheo:{*}:meta"]).await;
        assert_eq!(metas.len(), winners[0] as usize);
        world.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
    }
}

#[tokio::test]
async fn late_calls_on_an_older_stream_change_nothing() {
    let Some(mut world) = World::new().await else { return };
    world.rheo.create_stream("s", 3).await.unwrap();
    let old = world.made().await;
    world.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
    world.calls("make_partition", &partition(1), &["3", &old, ""]).await;
    assert_eq!(world.keys().await, Vec::<String>::new(), "what was dropped stays so");

    world.rheo.create_stream("s", 2).await.unwrap();
    world.creates_group().await.unwrap();
    world.appends(1).await;
    let entry = world.entry().await.unwrap().join(" ");
    world.calls("make_partition", &partition(1), &["3", &old, ""]).await;
    world.calls("drop_partition", &partition(1), &[&old, ""]).await;
    let before = format!("{old} 3 making ");
    let streams = ["rheo:streams".to_string()];
    world.calls("turn_stream", &streams, &["s", &before, "1 1 ready "]).await;
    world.calls("turn_stream", &streams, &["s", &before, ""]).await;
    assert_eq!(world.entry().await.unwrap().join(" "), entry);
    assert_eq!(world.rheo.partitions("s").await.unwrap(), 2);
    assert_eq!(world.fetches(1).await.unwrap(), [1]);

    // A newer one takes the place of what is left of an older one.
    world.calls("make_partition", &partition(1), &["2", "9000000000000000", ""]).await;
    assert_eq!(world.rheo.read("s", 1, 0, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_cut_off_group_is_finished_by_whoever_misses_it() {
    let Some(mut world) = World::new().await else { return };
    for way in ["fetch", "wait", "group_info", "create_group", "reset_group", "replay"] {
        world.has_half_a_group().await;
        let rheo = &world.rheo;
        match way {
            "fetch" => assert_eq!(world.fetches(2).await.unwrap(), [1]),
            "wait" => rheo.wait("s", "g", std::time::Duration::ZERO).await.unwrap(),
            "group_info" => {
                let info = rheo.group_info("s", "g").await.unwrap();
                assert_eq!((info.max_attempts, info.lag()), (2, 3));
            }
            "create_group" => assert_kind(world.creates_group().await, ErrorKind::AlreadyExists),
            "reset_group" => {
                rheo.reset_group("s", "g", Confirm::Yes, Start::Beginning).await.unwrap();
            }
            _ => {
                let everything = rheo_core::Replay::AfterSequence(0);
                rheo.replay("s", "g", everything, Default::default()).await.unwrap();
            }
        }
        let pending: Option<String> = world.asks(&["HGET", "rheo:{s/0}:group:g", "pending"]).await;
        assert_eq!(pending, None, "{way}");
        for partition in if way == "fetch" { 0..2 } else { 0..3 } {
            assert_eq!(world.fetches(partition).await.unwrap(), [1], "{way}");
        }
        assert_eq!(world.rheo.list_groups("s").await.unwrap()[0].as_str(), "g");
        world.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
        assert_eq!(world.keys().await, Vec::<String>::new(), "{way}");
    }
}

#[tokio::test]
async fn late_calls_on_an_older_group_change_nothing() {
    let Some(mut world) = World::new().await else { return };
    world.has_half_a_group().await;
    let (stream, old) = (world.made().await, world.made_of_group().await);
    let late = ["3", "g", &stream, &old, "9", "1", "0"];
    world.rheo.delete_group("s", "g", Confirm::Yes).await.unwrap();
    world.calls("make_group", &group(1), &late).await;
    assert_kind(world.fetches(1).await, ErrorKind::GroupNotFound);
    let groups: Vec<Value> = world.asks(&["XINFO", "GROUPS", "rheo:{s/1}"]).await;
    assert_eq!(groups, [], "what was dropped stays so");

    world.creates_group().await.unwrap();
    assert_eq!(world.fetches(1).await.unwrap(), [1]);
    world.calls("make_group", &group(1), &late).await;
    world.calls("drop_group", &group(1), &["3", "g", &stream, &old, ""]).await;
    world.calls("drop_group", &group(0), &["3", "g", &stream, &old, ""]).await;
    world.calls("finish_group", &group(0), &["3", "g", &old]).await;
    let info = world.rheo.group_info("s", "g").await.unwrap();
    assert_eq!((info.max_attempts, info.ordered, info.leased()), (5, false, 1));

    // Another stream of that name is none of theirs.
    world.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
    world.rheo.create_stream("s", 3).await.unwrap();
    let newer = ["3", "g", &stream, "9000000000000000", "9", "1", "0"];
    world.calls("make_group", &group(1), &newer).await;
    assert_kind(world.fetches(1).await, ErrorKind::GroupNotFound);
}

#[tokio::test]
async fn a_cut_off_deletion_of_a_group_is_finished_by_the_next() {
    let Some(mut world) = World::new().await else { return };
    world.has_half_a_group().await;
    assert_eq!(world.fetches(1).await.unwrap(), [1]);
    let (stream, made) = (world.made().await, world.made_of_group().await);
    world.calls("drop_group", &group(1), &["3", "g", &stream, &made, ""]).await;
    assert_kind(world.fetches(1).await, ErrorKind::GroupNotFound);
    assert_kind(world.creates_group().await, ErrorKind::AlreadyExists);
    world.rheo.delete_group("s", "g", Confirm::Yes).await.unwrap();
    for partition in 0..3 {
        assert_kind(world.fetches(partition).await, ErrorKind::GroupNotFound);
    }
    world.creates_group().await.unwrap();
    assert_eq!(world.fetches(1).await.unwrap(), [1]);
}

#[tokio::test]
async fn a_start_beyond_the_log_is_no_negative_lag() {
    let Some(mut world) = World::new().await else { return };
    world.rheo.create_stream("s", 1).await.unwrap();
    world.appends(0).await;
    for after in [0, 1, 2, 1 << 60, u64::MAX] {
        let options = GroupOptions::default().start(Start::AfterSequence(after));
        world.rheo.create_group("s", "g", options).await.unwrap();
        let lag = if after == 0 { 1 } else { 0 };
        for _ in ["created", "reset"] {
            let groups: Vec<HashMap<String, Value>> =
                world.asks(&["XINFO", "GROUPS", "rheo:{s/0}"]).await;
            let native = Option::<i64>::from_redis_value(groups[0]["lag"].clone()).unwrap();
            assert_eq!(native.unwrap_or(0), lag, "after {after}");
            assert_eq!(world.rheo.lag("s", "g").await.unwrap().total(), lag as u64);
            let start = Start::AfterSequence(after);
            world.rheo.reset_group("s", "g", Confirm::Yes, start).await.unwrap();
        }
        world.rheo.delete_group("s", "g", Confirm::Yes).await.unwrap();
    }
}

#[tokio::test]
async fn a_reset_forgets_all_but_the_rules() {
    let Some(mut world) = World::new().await else { return };
    world.rheo.create_stream("s", 1).await.unwrap();
    let options = GroupOptions::default().max_attempts(3);
    world.rheo.create_group("s", "g", options).await.unwrap();
    for _ in 0..4 {
        world.appends(0).await;
    }
    let deliveries = world.rheo.fetch("s", "g", 3, FetchOptions::default()).await.unwrap();
    let outcomes = [Outcome::reject("bad"), Outcome::retry("later")];
    let settlements = deliveries.iter().zip(outcomes).collect::<Vec<_>>();
    for settled in world.rheo.settle(settlements).await {
        settled.unwrap();
    }
    world.rheo.reset_group("s", "g", Confirm::Yes, Start::AfterSequence(1)).await.unwrap();
    let kept = ["rheo:{s/0}", "rheo:{s/0}:group:g", "rheo:{s/0}:groups", "rheo:{s/0}:meta"];
    let mut keys = world.keys().await;
    keys.sort();
    assert_eq!(keys, kept);
    let pending: (u64, Value, Value, Value) = world.asks(&["XPENDING", "rheo:{s/0}", "g"]).await;
    assert_eq!(pending.0, 0);
    assert_eq!(world.rheo.group_info("s", "g").await.unwrap().max_attempts, 3);
    assert_eq!(world.fetches(0).await.unwrap(), [2, 3, 4]);
    assert_kind(world.rheo.ack(&deliveries[2]).await, ErrorKind::StaleLease);
}

#[tokio::test]
async fn a_stream_of_many_partitions_comes_and_goes() {
    let Some(mut world) = World::new().await else { return };
    world.rheo.create_stream("s", 1024).await.unwrap();
    world.creates_group().await.unwrap();
    world.appends(1023).await;
    assert_eq!(world.fetches(1023).await.unwrap(), [1]);
    world.rheo.reset_group("s", "g", Confirm::Yes, Start::Beginning).await.unwrap();
    world.rheo.delete_group("s", "g", Confirm::Yes).await.unwrap();
    world.rheo.delete_stream("s", Confirm::Yes).await.unwrap();
    assert_eq!(world.keys().await, Vec::<String>::new());
}

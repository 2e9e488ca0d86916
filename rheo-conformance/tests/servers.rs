//! The throwaway servers start, crash, come back, and end with their test.
#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rheo_conformance::servers::{MariaDb, Mongo, Postgres, Redis, RedisCluster, Server, found};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Set for the copy of this test that is to be killed.
const TO_BE_KILLED: &str = "RHEO_TEST_TO_BE_KILLED";

/// Where a URL leads.
fn address(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, after)| after);
    let after = after.rsplit_once('@').map_or(after, |(_, after)| after);
    after.split(['/', '?']).next().unwrap_or(after)
}

/// Connects, says `hello`, and reads the first byte of the answer.
async fn greets(url: &str, hello: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address(url)).await?;
    stream.write_all(hello).await?;
    stream.read_u8().await?;
    Ok(stream)
}

async fn goes_through_everything(server: &Server, hello: &[u8]) {
    let (direct, proxied) = (server.url(), server.proxied_url());
    greets(direct, hello).await.expect("it answers");
    let mut before = greets(proxied, hello).await.expect("it answers");

    let proxy = server.proxy().expect("its clients can go through one");
    proxy.cut().await;
    assert!(before.read_to_end(&mut Vec::new()).await.is_err(), "it was not cut");
    let mut before = greets(proxied, hello).await.expect("it answers after a cut");

    server.crash().await.expect("it starts again");
    let _ = before.read_to_end(&mut Vec::new()).await;
    greets(proxied, hello).await.expect("it answers after a crash");

    server.stop().await.expect("it is killed");
    assert!(greets(proxied, hello).await.is_err(), "it answers though it is stopped");
    server.start_again().await.expect("it starts again");
    greets(proxied, hello).await.expect("it answers after a stop");
}

/// Waits until nobody listens there any longer.
async fn ends(url: &str) {
    let gone = async {
        while TcpStream::connect(address(url)).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("it ends with its test");
}

/// A request that encryption be used, which PostgreSQL answers with one byte.
const POSTGRES_HELLO: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

#[tokio::test]
async fn postgres() {
    let Some(server) = found("postgres", Postgres::start().await) else { return };
    goes_through_everything(&server, POSTGRES_HELLO).await;
    let url = server.url().to_owned();
    drop(server);
    if env::var_os("RHEO_TEST_POSTGRES_URL").is_none() {
        ends(&url).await;
    }
}

#[tokio::test]
async fn mariadb() {
    let Some(server) = found("mysql", MariaDb::start().await) else { return };
    goes_through_everything(&server, b"").await;
    let url = server.url().to_owned();
    drop(server);
    if env::var_os("RHEO_TEST_MYSQL_URL").is_none() {
        ends(&url).await;
    }
}

#[tokio::test]
async fn redis() {
    let Some(server) = found("redis", Redis::start().await) else { return };
    goes_through_everything(&server, b"PING\r\n").await;
}

/// What one answers to a command on a connection of its own.
async fn says(url: &str, command: &str) -> String {
    let mut stream = TcpStream::connect(address(url)).await.expect("it lets one in");
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let answer = answer.strip_suffix("+OK\r\n").expect("it says farewell");
    answer.trim_end().to_owned()
}

/// One that keeps its data has all of it back, and the other has none.
#[tokio::test]
async fn redis_with_its_data() {
    let Some(server) = found("redis-aof", Redis::persistent().await) else { return };
    assert_eq!(says(server.url(), "SET rheo-test 1").await, "+OK");
    server.crash().await.expect("it starts again");
    assert_eq!(says(server.url(), "DEL rheo-test").await, ":1");
    let fleeting = Redis::private().await.expect("it is installed");
    assert_eq!(says(fleeting.url(), "SET rheo-test 1").await, "+OK");
    fleeting.crash().await.expect("it starts again");
    assert_eq!(says(fleeting.url(), "DEL rheo-test").await, ":0");
}

/// The nodes of a cluster send clients to each other's address before the
/// proxy, and know each other again after a crash.
#[tokio::test]
async fn redis_cluster() {
    let Some(server) = found("redis-cluster", RedisCluster::start().await) else { return };
    let Some(proxy) = server.proxy() else { return };
    for address in proxy.addresses() {
        let slots = says(server.url(), "CLUSTER SLOTS").await;
        assert!(slots.contains(&format!(":{}\r\n", address.port())), "{slots}");
    }
    let goes_to = says(server.url(), "SET b 1").await;
    goes_through_everything(&server, b"PING\r\n").await;
    assert_eq!(says(server.url(), "SET b 1").await, goes_to);
    let info = says(server.url(), "CLUSTER INFO").await;
    for fact in ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"] {
        assert!(info.contains(fact), "{info}");
    }
}

/// A message of MongoDB's protocol with one command for the database `rheo`:
/// its fields are BSON, but for the database's name and the end.
fn mongo_message(fields: &[u8]) -> Vec<u8> {
    let document = mongo_document(&[fields, b"\x02$db\0\x05\0\0\0rheo\0"].concat());
    let length = 21 + document.len() as i32;
    let header: Vec<u8> = [length, 1, 0, 2013, 0].into_iter().flat_map(i32::to_le_bytes).collect();
    [&header, &b"\0"[..], &document].concat()
}

fn mongo_document(fields: &[u8]) -> Vec<u8> {
    let length = 5 + fields.len() as i32;
    [&length.to_le_bytes(), fields, b"\0"].concat()
}

/// What it answers to a command.
async fn mongo_says(url: &str, fields: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address(url)).await.expect("it lets one in");
    stream.write_all(&mongo_message(fields)).await.expect("it listens");
    let length = stream.read_i32_le().await.expect("it answers");
    let mut answer = vec![0; usize::try_from(length).expect("it is one") - 4];
    stream.read_exact(&mut answer).await.expect("it answers");
    answer
}

fn holds(answer: &[u8], what: &[u8]) -> bool {
    answer.windows(what.len()).any(|part| part == what)
}

/// A question for who it is, which needs no password.
const MONGO_HELLO: &[u8] = b"\x10hello\0\x01\0\0\0";

/// One that takes writes as soon as it has started, with what it had before.
#[tokio::test]
async fn mongo() {
    let Some(server) = found("mongo", Mongo::start().await) else { return };
    let id = mongo_document(&[&b"\x10_id\0"[..], &std::process::id().to_le_bytes()].concat());
    let documents = mongo_document(&[b"\x030\0", &id[..]].concat());
    let insert = [b"\x02insert\0\x05\0\0\0test\0\x04documents\0", &documents[..]].concat();
    let refused = b"writeErrors\0";
    goes_through_everything(&server, &mongo_message(MONGO_HELLO)).await;
    assert!(!holds(&mongo_says(server.url(), &insert).await, refused), "it was there before");
    server.crash().await.expect("it starts again");
    assert!(holds(&mongo_says(server.url(), &insert).await, refused), "it is lost");
    let hello = mongo_says(server.url(), MONGO_HELLO).await;
    assert!(holds(&hello, b"setName\0") && holds(&hello, b"\x08isWritablePrimary\0\x01"));
    let url = server.url().to_owned();
    drop(server);
    if env::var_os("RHEO_TEST_MONGO_URL").is_none() {
        ends(&url).await;
    }
}

#[tokio::test]
async fn mongo_that_is_no_replica_set() {
    if env::var_os("RHEO_TEST_MONGO_URL").is_some() {
        return;
    }
    let Some(server) = found("mongo", Mongo::standalone().await) else { return };
    goes_through_everything(&server, &mongo_message(MONGO_HELLO)).await;
    let hello = mongo_says(server.url(), MONGO_HELLO).await;
    assert!(!holds(&hello, b"setName\0") && holds(&hello, b"\x08isWritablePrimary\0\x01"));
}

/// Tells where the server is, and stays with it.
async fn stay_with(server: &Server) {
    println!("\nurl {}", server.url());
    std::future::pending().await
}

/// A test that is killed takes its server with it, and its directory.
#[tokio::test]
async fn a_killed_test_leaves_nothing() {
    if env::var_os(TO_BE_KILLED).is_some() {
        stay_with(&Postgres::start().await.expect("it has started before")).await;
    }
    if found("postgres", Postgres::start().await).is_some() {
        is_killed("a_killed_test_leaves_nothing").await;
    }
}

/// Nor any node of a cluster.
#[tokio::test]
async fn a_killed_test_leaves_no_cluster() {
    if env::var_os(TO_BE_KILLED).is_some() {
        stay_with(&RedisCluster::start().await.expect("it has started before")).await;
    }
    if found("redis-cluster", RedisCluster::start().await).is_some() {
        is_killed("a_killed_test_leaves_no_cluster").await;
    }
}

/// Kills a copy of the test that has a private server.
async fn is_killed(name: &str) {
    let directory = env::temp_dir().join(format!("rheo-{name}-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("it is new");
    open_to_all(&directory);
    let mut test = Command::new(env::current_exe().expect("it has a path"))
        .args(["--exact", name, "--nocapture"])
        .env(TO_BE_KILLED, "1")
        .env("TMPDIR", &directory)
        .env_remove("RHEO_TEST_POSTGRES_URL")
        .env_remove("RHEO_TEST_REDIS_CLUSTER_URL")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let output = BufReader::new(test.stdout.take().expect("it is piped"));
    let url = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("url ")?.to_owned()));
    test.kill().expect("it runs");
    test.wait().expect("it is its parent");
    ends(&url.expect("it tells its server")).await;
    // Succeeds once nothing is left in it.
    let removed = async {
        while std::fs::remove_dir(&directory).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), removed).await.expect("nothing is left");
}

/// Lets the user that a server runs under enter the directory.
fn open_to_all(directory: &PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(directory, all).expect("it is this test's");
}

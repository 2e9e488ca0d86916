//! Query, read and tail, by the binary.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use common::{Sqlite, command, done, refused};
use rheo::{NewEvent, Rheo};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How long to wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does something with the library first, on the same database.
fn with_library<T>(sqlite: &Sqlite, work: impl AsyncFnOnce(Rheo) -> rheo::Result<T>) -> T {
    let runtime = Runtime::new().expect("the operating system gives threads");
    runtime
        .block_on(async { work(rheo::connect(sqlite.url()).await?).await })
        .expect("the library does its part")
}

/// The lines of the market's file.
fn market_lines() -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../rheo/examples/data/market.ndjson");
    let text = fs::read_to_string(file).expect("the file is there");
    text.lines().map(|line| serde_json::from_str(line).expect("lines are JSON")).collect()
}

/// The market's events in a stream of four partitions.
fn market() -> Sqlite {
    let sqlite = Sqlite::new();
    let events = market_lines().into_iter().map(|line| {
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_string();
        NewEvent::new(text("type"), &line["payload"]).key(text("key"))
    });
    with_library(&sqlite, async |rheo| {
        rheo.create_stream("market", 4).await?;
        rheo.append_batch("market", events.collect()).await
    });
    sqlite
}

/// Six orders in one partition: something for every filter.
fn orders() -> Sqlite {
    let sqlite = Sqlite::new();
    let order = |key: &str, payload: Value| NewEvent::new("order.placed", payload).key(key);
    let events = vec![
        order("ann", json!({"total": 25, "currency": "EUR", "to": {"zip": "01234"}})),
        order("ann", json!({"total": 250.5, "currency": "USD", "gift": true}))
            .metadata("producer", "shop"),
        order("42", json!({"total": 2500, "currency": "GBP", "coupon": null}))
            .metadata("correlation_id", "c-1")
            .metadata("build", 7),
        NewEvent::new("order.paid", json!({"a.b": 1, "type": "card", "tags": ["x", "y"]})),
        NewEvent::new("note", "hello, world"),
        order("e\u{1b}[31m", json!({"total": "25", "note": "x".repeat(500)})),
    ];
    with_library(&sqlite, async |rheo| {
        rheo.create_stream("orders", 1).await?;
        rheo.append_batch("orders", events).await
    });
    sqlite
}

/// The events that a command prints as JSON.
#[track_caller]
fn events(sqlite: &Sqlite, args: &[&str]) -> Vec<Value> {
    let text = done(sqlite.url(), &[&["--json"], args].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[track_caller]
fn sequences(sqlite: &Sqlite, args: &[&str]) -> Vec<u64> {
    let sequence = |event: &Value| event["sequence"].as_u64().expect("a number");
    events(sqlite, args).iter().map(sequence).collect()
}

fn position(event: &Value) -> (u64, u64) {
    (event["sequence"].as_u64().unwrap(), event["partition"].as_u64().unwrap())
}

#[test]
fn the_market_comes_out_as_it_went_in() {
    let market = market();
    let found = events(&market, &["query", "market", "--limit", "1000"]);
    assert!(found.is_sorted_by_key(position));
    let entry = |event: &Value| format!("{} {} {}", event["type"], event["key"], event["payload"]);
    let mut came: Vec<String> = found.iter().map(entry).collect();
    let mut went: Vec<String> = market_lines().iter().map(entry).collect();
    assert_eq!(came.len(), 560);
    came.sort();
    went.sort();
    assert_eq!(came, went);

    let expensive =
        |line: &&Value| line["key"] == "IBM" && line["payload"]["price"].as_f64() > Some(120.0);
    let expected = market_lines().iter().filter(expensive).count();
    let args = ["query", "market", "key=IBM", "price>120", "--limit", "1000"];
    assert_eq!(events(&market, &args).len(), expected);
}

#[test]
fn an_event_is_one_line_of_json() {
    let orders = orders();
    let args = ["--json", "query", "orders", "sequence=3"];
    let line = done(orders.url(), &args);
    let event: Value = serde_json::from_str(&line).unwrap();
    let (id, timestamp) = (&event["id"], &event["timestamp"]);
    let start = format!(
        r#"{{"stream":"orders","partition":0,"sequence":3,"id":{id},"timestamp":{timestamp},"#
    );
    let end = r#""type":"order.placed","key":"42","metadata":"#;
    assert!(line.starts_with(&(start + end)), "{line}");
    assert_eq!(event["metadata"], json!({"correlation_id": "c-1", "build": 7}));
    assert_eq!(event["payload"], json!({"total": 2500, "currency": "GBP", "coupon": null}));
    assert_eq!(events(&orders, &["query", "orders", "type=note"])[0]["key"], Value::Null);
}

#[test]
fn filters_of_every_kind() {
    let orders = orders();
    let third = events(&orders, &["query", "orders", "sequence=3"]).remove(0);
    let id = format!("id={}", third["id"].as_str().unwrap());
    let at = format!("timestamp={}", third["timestamp"].as_str().unwrap());
    assert!(sequences(&orders, &["query", "orders", &at]).contains(&3));
    let table: [(&[&str], &[u64]); 27] = [
        (&[], &[1, 2, 3, 4, 5, 6]),
        (&[&id], &[3]),
        (&["type=order.paid"], &[4]),
        (&["type=order.paid,note"], &[4, 5]),
        (&["key=ann"], &[1, 2]),
        (&["key=42"], &[3]),
        (&["key?"], &[1, 2, 3, 6]),
        (&["partition=0", "sequence>=5"], &[5, 6]),
        (&["partition=1"], &[]),
        (&["timestamp>=15m"], &[1, 2, 3, 4, 5, 6]),
        (&["timestamp<15m"], &[]),
        (&["producer=shop"], &[2]),
        (&["metadata.build=7"], &[3]),
        (&["correlation_id?"], &[3]),
        (&["total=25"], &[1]),
        (&["total=\"25\""], &[6]),
        (&["total>25"], &[2, 3]),
        (&["total>=25", "total<2500"], &[1, 2]),
        (&["payload.currency=EUR,USD"], &[1, 2]),
        (&["to.zip=01234"], &[1]),
        (&["gift=true"], &[2]),
        (&["coupon=null"], &[3]),
        (&["payload.\"a.b\"=1"], &[4]),
        (&["\"type\"=card"], &[4]),
        (&["tags=[\"x\",\"y\"]"], &[4]),
        (&["payload=\"hello, world\""], &[5]),
        (&["payload=hello, world"], &[]),
    ];
    for (filters, expected) in table {
        let args = [&["query", "orders"], filters].concat();
        assert_eq!(sequences(&orders, &args), expected, "{filters:?}");
    }
}

#[test]
fn bounds_order_and_limit() {
    let orders = orders();
    let table: [(&[&str], &[u64]); 9] = [
        (&["--limit", "2"], &[1, 2]),
        (&["--limit", "2", "--order", "desc"], &[6, 5]),
        (&["--after", "4"], &[5, 6]),
        (&["--after", "1", "--until-sequence", "3"], &[2, 3]),
        (&["--after", "1", "--until-sequence", "3", "--order", "desc"], &[3, 2]),
        (&["--since", "1h", "--limit", "1"], &[1]),
        (&["--until", "1h"], &[]),
        (&["--since", "2000-01-01", "--until", "9000-01-01T00:00:00Z", "key=42"], &[3]),
        (&["--partition", "0", "type=note"], &[5]),
    ];
    for (options, expected) in table {
        let args = [&["query", "orders"], options].concat();
        assert_eq!(sequences(&orders, &args), expected, "{options:?}");
    }
    let market = market();
    let chosen = events(&market, &["query", "market", "--partition", "0,2", "--limit", "1000"]);
    assert!(chosen.iter().all(|event| [0, 2].contains(&event["partition"].as_u64().unwrap())));
}

/// Also where a page ends amid the partitions of one sequence.
#[test]
fn more_than_a_page_in_both_orders() {
    let sqlite = Sqlite::new();
    let of_all = |count: u32| (0..count).map(|n| NewEvent::new("n", n).partition(n % 3)).collect();
    with_library(&sqlite, async |rheo| {
        rheo.create_stream("numbers", 3).await?;
        rheo.append_batch("numbers", of_all(9_000)).await?;
        rheo.append_batch("numbers", of_all(1_100)).await
    });
    for (order, limit, expected) in [("asc", "10050", 10_050), ("desc", "20000", 10_100)] {
        let args = ["query", "numbers", "--order", order, "--limit", limit];
        let mut positions: Vec<_> = events(&sqlite, &args).iter().map(position).collect();
        if order == "desc" {
            positions.reverse();
        }
        assert!(positions.is_sorted(), "{order}");
        assert_eq!(positions.len(), expected, "{order}");
        assert_eq!(positions.into_iter().collect::<BTreeSet<_>>().len(), expected, "{order}");
    }
    assert_eq!(sequences(&sqlite, &["read", "numbers", "0", "--limit", "2500"]).len(), 2500);
}

#[test]
fn people_see_lines_that_are_whole_and_harmless() {
    let orders = orders();
    let text = done(orders.url(), &["query", "orders"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("0-1 "), "{}", lines[0]);
    for cell in ["order.placed", "ann", r#""currency":"EUR""#] {
        assert!(lines[0].contains(cell), "{}", lines[0]);
    }
    assert!(lines[4].contains("  -  "), "no key: {}", lines[4]);
    assert!(lines[5].contains(&"x".repeat(500)), "{}", lines[5]);
    assert!(lines[5].contains(r"e\u{1b}[31m"), "{}", lines[5]);
    assert!(!text.contains('\u{1b}'));
}

/// `script` runs it on a terminal. Each line turns wrapping off and on again.
#[test]
fn a_terminal_cuts_lines() {
    let orders = orders();
    let run = format!("'{}' query orders", env!("CARGO_BIN_EXE_rheo"));
    let output = Command::new("script")
        .args(["-qec", &run, "/dev/null"])
        .env("RHEO_URL", orders.url())
        .stdin(Stdio::null())
        .output()
        .expect("script is there");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    assert_eq!(lines.len(), 6, "{text}");
    for line in lines {
        assert!(line.starts_with("\u{1b}[?7l0-") && line.ends_with("\u{1b}[?7h"), "{line:?}");
    }
}

#[test]
fn a_partition_is_read_by_sequence() {
    let orders = orders();
    let table: [(&[&str], &[u64]); 4] = [
        (&[], &[1, 2, 3, 4, 5, 6]),
        (&["--after", "4"], &[5, 6]),
        (&["--after", "2", "--limit", "2"], &[3, 4]),
        (&["--after", "6"], &[]),
    ];
    for (options, expected) in table {
        let args = [&["read", "orders", "0"], options].concat();
        assert_eq!(sequences(&orders, &args), expected, "{options:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let orders = orders();
    let usage: [(&[&str], &str); 8] = [
        (&["query", "orders", "total!=2"], "no condition says that something is not so"),
        (&["query", "orders", "total"], "after the field comes"),
        (&["query", "orders", "total>1,2"], "after > comes one value"),
        (&["query", "orders", "--since", "noon"], "noon is no instant"),
        (&["query", "orders", "--limit", "0"], "0 is not in 1.."),
        (&["query", "orders", "--order", "down"], "possible values: asc, desc"),
        (&["tail", "orders", "--poll", "5"], "5 is no duration"),
        (&["tail", "orders", "--poll", "0s"], "--poll is the pause"),
    ];
    for (args, why) in usage {
        let told = refused(orders.url(), 2, args);
        assert!(told.contains(why), "{args:?}: {told}");
    }
    let refusals: [(&[&str], &str); 5] = [
        (&["query", "missing"], "missing"),
        (&["read", "missing", "0"], "missing"),
        (&["tail", "missing"], "missing"),
        (&["read", "orders", "7"], "partition 7 is out of range"),
        (&["query", "orders", "--partition", "7"], "partition 7 is out of range"),
    ];
    for (args, why) in refusals {
        let told = refused(orders.url(), 1, args);
        assert!(told.starts_with("rheo: ") && told.contains(why), "{args:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let market = market();
    for args in
        [&["query", "market", "--limit", "1000"][..], &["read", "market", "0"], &["tail", "market"]]
    {
        for json in [&[][..], &["--json"]] {
            let mut child = command()
                .args([&["--url", market.url()], args, json].concat())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the binary runs");
            drop(child.stdout.take());
            let output = child.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{args:?}: {:?}", output.status);
            assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
        }
    }
}

#[test]
fn the_tail_is_the_latest_of_all_partitions() {
    let sqlite = Sqlite::new();
    with_library(&sqlite, async |rheo| {
        rheo.create_stream("numbers", 3).await?;
        for (number, partition) in [0, 0, 0, 0, 1, 0, 2].into_iter().enumerate() {
            rheo.append("numbers", NewEvent::new("n", number).partition(partition)).await?;
        }
        Ok(())
    });
    let numbers = |args: &[&str]| -> Vec<u64> {
        let args = [&["tail", "numbers"], args].concat();
        events(&sqlite, &args).iter().map(|event| event["payload"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers(&[]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers(&["-n", "3"]), [4, 5, 6]);
    assert_eq!(numbers(&["-n", "2", "payload<4"]), [2, 3]);
    assert!(numbers(&["-n", "0"]).is_empty());
}

/// A running command, which ends with the test at the latest.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut child =
            command().args(args).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The payload of the next event that it prints.
    fn payload(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line comes");
        serde_json::from_str::<Value>(&line).expect("it is JSON")["payload"].take()
    }

    /// Ends it as Ctrl-C does.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let closed = self.lines.recv_timeout(PATIENCE);
        assert_eq!(
            closed,
            Err(mpsc::RecvTimeoutError::Disconnected),
            "it ends, and prints no more"
        );
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_tail_goes_on_until_ctrl_c() {
    let orders = orders();
    let args =
        ["--url", orders.url(), "--json", "tail", "orders", "-n", "1", "-f", "--poll", "20ms"];
    let running = Running::start(&[&args[..], &["type=note"]].concat());
    assert_eq!(running.payload(), "hello, world");
    for number in 1..3 {
        with_library(&orders, async |rheo| {
            rheo.append("orders", NewEvent::new("other", number)).await?;
            rheo.append("orders", NewEvent::new("note", number)).await
        });
        assert_eq!(running.payload(), number);
    }
    assert_eq!(running.interrupt(), Some(0));
}

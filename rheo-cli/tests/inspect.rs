//! Looking at streams, groups and the store, by the binary.

mod common;

use common::{Sqlite, done, fill, json, refused, reject};
use serde_json::json;

/// A stream of two partitions with three events in the first one, and a group
/// that has given up one of them.
fn sqlite() -> Sqlite {
    let sqlite = Sqlite::new();
    let url = sqlite.url();
    done(url, &["create-stream", "orders", "--partitions", "2"]);
    done(url, &["create-group", "orders", "billing", "--max-attempts", "3", "--ordered"]);
    fill(url, "orders", 3);
    reject(url, "orders", "billing", 1);
    sqlite
}

/// The lines of a table, with its cells apart.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| line.split("  ").map(str::trim).collect::<Vec<_>>())
        .map(filled)
        .collect()
}

fn filled(cells: Vec<&str>) -> Vec<&str> {
    cells.into_iter().filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn streams_are_listed_with_their_events() {
    let sqlite = sqlite();
    done(sqlite.url(), &["create-stream", "audit"]);
    let streams = json!([
        { "name": "audit", "partitions": 1, "events": 0 },
        { "name": "orders", "partitions": 2, "events": 3 },
    ]);
    assert_eq!(json(sqlite.url(), &["streams"]), streams);
    let table = done(sqlite.url(), &["streams"]);
    let lines = [["STREAM", "PARTITIONS", "EVENTS"], ["audit", "1", "0"], ["orders", "2", "3"]];
    assert_eq!(cells(&table), lines);
}

#[test]
fn no_stream_is_an_empty_list() {
    let sqlite = Sqlite::new();
    assert_eq!(json(sqlite.url(), &["streams"]), json!([]));
    assert_eq!(done(sqlite.url(), &["streams"]).lines().count(), 1);
}

#[test]
fn groups_are_listed_with_their_progress() {
    let sqlite = sqlite();
    let group = json!({
        "name": "billing", "lag": 2, "leased": 0, "waiting": 0, "dead_letters": 1,
        "max_attempts": 3, "ordered": true,
    });
    assert_eq!(json(sqlite.url(), &["groups", "orders"]), json!([group]));
    let table = done(sqlite.url(), &["groups", "orders"]);
    assert_eq!(cells(&table)[1], ["billing", "2", "0", "0", "1", "3", "yes"]);
}

#[test]
fn lag_is_told_by_partition_for_one_group_or_all() {
    let sqlite = sqlite();
    let url = sqlite.url();
    done(url, &["create-group", "orders", "audit", "--start", "end"]);
    let line = |group: &str, partition: u32, last: u64, frontier: u64| {
        json!({
            "group": group, "partition": partition, "high_watermark": last,
            "frontier": frontier, "lag": last - frontier,
        })
    };
    let (audit, billing) = (
        [line("audit", 0, 3, 3), line("audit", 1, 0, 0)],
        [line("billing", 0, 3, 1), line("billing", 1, 0, 0)],
    );
    assert_eq!(json(url, &["lag", "orders", "billing"]), json!(billing));
    assert_eq!(json(url, &["lag", "orders"]), json!([&audit[..], &billing[..]].concat()));
    assert_eq!(
        cells(&done(url, &["lag", "orders", "billing"]))[1],
        ["billing", "0", "3", "1", "2"]
    );
}

#[test]
fn a_group_is_shown_with_its_settings() {
    let sqlite = sqlite();
    let info = json(sqlite.url(), &["info", "orders", "billing"]);
    assert_eq!((&info["name"], &info["ordered"]), (&json!("billing"), &json!(true)));
    let first = json!({
        "high_watermark": 3, "frontier": 1, "leased": 0, "waiting": 0, "dead_letters": 1,
    });
    assert_eq!(info["partitions"][0], first);
    let text = done(sqlite.url(), &["info", "orders", "billing"]);
    assert!(text.starts_with("at most 3 attempts, ordered\n"), "{text}");
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn dead_letters_are_listed_with_their_events_page_by_page() {
    let sqlite = Sqlite::with_stream("orders");
    let url = sqlite.url();
    done(url, &["create-group", "orders", "billing"]);
    fill(url, "orders", 3);
    reject(url, "orders", "billing", 3);
    let letters = json(url, &["dead-letters", "orders", "billing"]);
    assert_eq!(letters.as_array().map(Vec::len), Some(3));
    let first = &letters[0];
    assert_eq!((&first["attempt"], &first["reason"]), (&json!(1), &json!("it is broken")));
    let event = &first["event"];
    assert_eq!((&event["stream"], &event["partition"]), (&json!("orders"), &json!(0)));
    assert_eq!((&event["sequence"], &event["type"]), (&json!(1), &json!("numbered")));
    assert_eq!((&event["key"], &event["payload"]), (&json!(null), &json!({ "n": 1 })));

    let page = ["dead-letters", "orders", "billing", "--limit", "1", "--after", "0-1"];
    assert_eq!(json(url, &page)[0]["event"]["sequence"], 2);
    let table = done(url, &page);
    assert!(table.contains("0-2") && table.contains("it is broken"), "{table}");
    refused(url, 2, &["dead-letters", "orders", "billing", "--after", "first"]);
}

#[test]
fn stored_control_characters_do_not_reach_a_terminal() {
    let sqlite = Sqlite::with_stream("orders");
    let url = sqlite.url();
    done(url, &["create-group", "orders", "billing"]);
    common::block_on(async {
        let rheo = rheo::connect(url).await.expect("the store is there");
        let event = rheo::NewEvent::new("red\u{1b}[31m", 1);
        rheo.append("orders", event).await.expect("it is appended");
    });
    reject(url, "orders", "billing", 1);
    let table = done(url, &["dead-letters", "orders", "billing"]);
    assert!(table.contains("red\\u{1b}[31m") && !table.contains("red\u{1b}"), "{table:?}");
}

#[test]
fn the_store_tells_what_it_is() {
    let sqlite = Sqlite::new();
    let answer = json(sqlite.url(), &["ping"]);
    assert_eq!(answer["product"], "SQLite");
    assert!(answer["milliseconds"].is_number());
    assert!(done(sqlite.url(), &["ping"]).starts_with("SQLite "));

    let capabilities = json(sqlite.url(), &["capabilities"]);
    assert_eq!(capabilities["guarantees"]["durable"], true);
    let table = done(sqlite.url(), &["capabilities"]);
    assert!(cells(&table).contains(&vec!["durable", "yes"]), "{table}");
    assert!(table.contains("largest event: "));
    assert!(done("memory:", &["capabilities"]).contains("durable"));
}

#[test]
fn the_url_may_stand_in_the_variable() {
    let sqlite = Sqlite::with_stream("orders");
    let output = common::command().arg("streams").env("RHEO_URL", sqlite.url()).output();
    assert!(common::stdout(&output.expect("the binary runs")).contains("orders"));
}

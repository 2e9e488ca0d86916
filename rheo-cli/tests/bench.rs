//! `rheo bench`: what it prints, and that it leaves nothing behind. No time is
//! asserted.

mod common;

use common::{Sqlite, done, json, refused};

/// A run that is over soon.
const SMALL: [&str; 5] = ["bench", "--events", "200", "--runs", "2"];

/// What the bare driver takes turns in.
const BESIDE: [&str; 3] = ["bytes", "append", "consume"];

#[test]
fn a_store_is_measured_beside_its_bare_driver() {
    let sqlite = Sqlite::new();
    let report = json(sqlite.url(), &[&SMALL[..], &["--raw"]].concat());
    assert_eq!(report["seed"], 42);
    assert_eq!(report["runs"], 2);
    assert_eq!(report["payload_bytes"], 200);
    let measured = &report["stores"][0];
    assert_eq!(measured["store"], "sqlite");
    assert_eq!(measured["product"], "SQLite");
    assert_eq!(measured["events"], 200);
    let rows = measured["rows"].as_array().expect("rows");
    for subject in ["bytes", "append", "consume", "latency", "groups", "workers", "length"] {
        assert!(rows.iter().any(|row| row["subject"] == subject), "{subject}: {rows:?}");
    }
    for row in rows {
        let beside = BESIDE.iter().any(|subject| row["subject"] == *subject);
        for (side, is_there) in [("rheo", true), ("raw", beside), ("ratio", beside)] {
            let spread = &row[side];
            assert_eq!(spread.is_object(), is_there, "{row}");
            let number = |name: &str| spread[name].as_f64().unwrap_or_default();
            assert!(number("least") <= number("median"), "{row}");
            assert!(number("median") <= number("greatest"), "{row}");
            assert!(!is_there || number("least") > 0.0, "{row}");
        }
    }
    assert_eq!(json(sqlite.url(), &["streams"]), serde_json::json!([]));
}

#[test]
fn what_is_asked_for_is_a_table() {
    let sqlite = Sqlite::new();
    let text = done(sqlite.url(), &[&SMALL[..], &["--only", "consume", "latency"]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("sqlite: SQLite 3."), "{text}");
    let heads: Vec<_> = lines[1].split_whitespace().collect();
    assert_eq!(heads[..5], ["MEASURED", "UNIT", "RHEO", "LEAST", "GREATEST"]);
    let begins =
        ["fetch and settle 1 ", "fetch and settle 100 ", "from append to the handler, p50"];
    for (line, begin) in lines[2..].iter().zip(begins) {
        assert!(line.starts_with(begin), "{text}");
    }
    assert!(!text.contains("append 100"), "{text}");
}

#[test]
fn a_document_gets_markdown() {
    let sqlite = Sqlite::new();
    let text = done(sqlite.url(), &[&SMALL[..], &["--only", "groups", "--markdown"]].concat());
    assert!(text.starts_with("| store | measured | unit | Rheo | bare driver | ratio |"), "{text}");
    assert!(text.contains("\n| sqlite | 4 groups, "), "{text}");
}

#[test]
fn memory_has_no_bare_driver_and_says_so() {
    let report = json("memory:", &[&SMALL[..], &["--raw", "--only", "bytes,workers"]].concat());
    let notes = report["stores"][0]["notes"].as_array().expect("notes");
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes.iter().all(|note| note.as_str().is_some_and(|note| note.contains("memory"))));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let output = common::rheo(SMALL);
    assert_eq!(output.status.code(), Some(2));
    assert!(common::stderr(&output).contains("--url"));
    let told = refused("memory:", 2, &["bench", "--json", "--markdown"]);
    assert!(told.contains("either --json or --markdown"), "{told}");
    refused("memory:", 2, &["bench", "--events", "0"]);
    refused("memory:", 2, &["bench", "--only", "speed"]);
}

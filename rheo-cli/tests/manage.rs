//! Creating, replaying, resetting and deleting, migrations, completions and
//! the conformance suite, by the binary.

mod common;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use common::{Sqlite, done, fill, json, refused, reject, rheo, rheo_on, stderr, stdout};
use serde_json::json;

/// A stream of one partition with three events, and a group.
fn sqlite() -> Sqlite {
    let sqlite = Sqlite::with_stream("orders");
    done(sqlite.url(), &["create-group", "orders", "billing"]);
    fill(sqlite.url(), "orders", 3);
    sqlite
}

fn frontier(url: &str, group: &str) -> serde_json::Value {
    json(url, &["info", "orders", group])["partitions"][0]["frontier"].clone()
}

fn progress(url: &str, what: &str) -> serde_json::Value {
    json(url, &["groups", "orders"])[0][what].clone()
}

#[test]
fn a_stream_is_created_once() {
    let sqlite = Sqlite::new();
    let create = ["create-stream", "orders", "--partitions", "4"];
    assert_eq!(json(sqlite.url(), &create), json!({ "stream": "orders", "partitions": 4 }));
    assert!(refused(sqlite.url(), 1, &create).contains("already exists"));
    let told = done(sqlite.url(), &["create-stream", "audit"]);
    assert_eq!(told, "stream \"audit\" is there, with 1 partition\n");
    assert!(
        refused(sqlite.url(), 1, &["create-stream", "a", "--partitions", "0"]).contains("1024")
    );
    refused(sqlite.url(), 1, &["create-stream", ""]);
    refused(sqlite.url(), 2, &["create-stream", "a", "--partitions", "many"]);
}

#[test]
fn a_group_begins_where_it_is_told_to() {
    let sqlite = sqlite();
    let url = sqlite.url();
    for (group, start, begins) in [
        ("beginning", "beginning", 0),
        ("end", "end", 3),
        ("after", "after:2", 2),
        ("list", "after:1", 1),
        ("long-ago", "at:2020-01-01T00:00:00Z", 0),
        ("never", "at:2920-01-01T00:00:00Z", 3),
    ] {
        let created = json(url, &["create-group", "orders", group, "--start", start]);
        assert_eq!(created, json!({ "stream": "orders", "group": group }));
        assert_eq!(frontier(url, group), begins, "{start}");
    }
    assert!(refused(url, 1, &["create-group", "orders", "end"]).contains("already exists"));
    let two = ["create-group", "orders", "two", "--start", "after:1,2"];
    assert!(refused(url, 1, &two).contains("one sequence for each"));
    let wrong = refused(url, 2, &["create-group", "orders", "new", "--start", "middle"]);
    assert!(wrong.contains("after:17"), "{wrong}");
}

#[test]
fn a_replay_takes_exactly_one_choice() {
    let sqlite = sqlite();
    let replay = ["replay", "orders", "billing"];
    refused(sqlite.url(), 2, &replay);
    refused(sqlite.url(), 2, &[&replay[..], &["--after", "1", "--dead-letters"]].concat());
    refused(sqlite.url(), 2, &[&replay[..], &["--positions", "first"]].concat());
    refused(sqlite.url(), 2, &[&replay[..], &["--matching", "=nothing"]].concat());
    let missing = [&replay[..], &["--positions", "0-17"]].concat();
    assert!(refused(sqlite.url(), 1, &missing).contains("no event 17"));
}

#[test]
fn what_a_replay_chooses_is_claimable_again() {
    for (choice, waiting) in [
        (&["--after", "1"][..], 2),
        (&["--from", "2020-01-01T00:00:00Z"], 3),
        (&["--from", "1h"], 3),
        (&["--matching", "type=numbered", "n>1"], 2),
        (&["--matching", "type=other"], 0),
        (&["--positions", "0-1,0-3"], 2),
        (&["--dead-letters"], 3),
        (&["--dead-letters", "--partition", "0"], 3),
    ] {
        let sqlite = sqlite();
        reject(sqlite.url(), "orders", "billing", 3);
        assert_eq!(progress(sqlite.url(), "dead_letters"), 3);
        let replay = [&["replay", "orders", "billing"], choice].concat();
        let told = json!({ "stream": "orders", "group": "billing", "waiting": waiting });
        assert_eq!(json(sqlite.url(), &replay), told, "{choice:?}");
        assert_eq!(progress(sqlite.url(), "waiting"), waiting, "{choice:?}");
        assert_eq!(progress(sqlite.url(), "dead_letters"), 3 - waiting, "{choice:?}");
    }
}

#[test]
fn what_destroys_wants_to_be_meant() {
    let sqlite = sqlite();
    let url = sqlite.url();
    reject(url, "orders", "billing", 1);
    for args in [
        &["reset", "orders", "billing", "--start", "beginning"][..],
        &["delete-group", "orders", "billing"],
        &["delete-stream", "orders"],
    ] {
        let told = refused(url, 1, args);
        assert!(told.contains("--yes says that it is meant"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    assert_eq!(progress(url, "dead_letters"), 1);

    let reset = ["reset", "orders", "billing", "--start", "after:2", "--yes"];
    assert_eq!(done(url, &reset), "group \"billing\" of stream \"orders\" begins anew\n");
    assert_eq!((progress(url, "dead_letters"), frontier(url, "billing")), (json!(0), json!(2)));
    let deleted = json(url, &["delete-group", "orders", "billing", "--yes"]);
    assert_eq!(deleted, json!({ "stream": "orders", "group": "billing" }));
    assert_eq!(json(url, &["groups", "orders"]), json!([]));
    done(url, &["delete-stream", "orders", "--yes"]);
    assert_eq!(json(url, &["streams"]), json!([]));
}

/// Runs it on a terminal, where someone types an answer.
fn on_a_terminal(url: &str, arguments: &str, typed: &str) -> Output {
    let command = format!("\"$RHEO\" --url \"$STORE\" {arguments}");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]);
    script.env("RHEO", env!("CARGO_BIN_EXE_rheo")).env("STORE", url).env("SHELL", "/bin/sh");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = script.spawn().expect("script of util-linux is there");
    let mut input = running.stdin.take().expect("it is piped");
    writeln!(input, "{typed}").expect("it reads");
    let output = running.wait_with_output().expect("it ends");
    drop(input);
    output
}

#[test]
fn on_a_terminal_it_asks() {
    let sqlite = sqlite();
    let url = sqlite.url();
    let refused = on_a_terminal(url, "delete-stream orders", "order");
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    let told = stdout(&refused);
    assert!(told.contains("this deletes stream \"orders\" with 3 events and 1 group"), "{told}");
    assert!(told.contains("nothing was done"), "{told}");
    assert_eq!(json(url, &["streams"])[0]["name"], "orders");
    let deleted = on_a_terminal(url, "delete-stream orders", "orders");
    assert!(deleted.status.success(), "{}", stdout(&deleted));
    assert_eq!(json(url, &["streams"]), json!([]));
}

#[test]
fn a_database_is_made_ready_again_and_again() {
    let sqlite = Sqlite::new();
    for _ in 0..2 {
        assert_eq!(done(sqlite.url(), &["migrate"]), "SQLite: the tables are ready\n");
    }
    assert_eq!(json(sqlite.url(), &["migrate"])["tables"], true);
    assert!(done("memory:", &["migrate"]).contains("no tables to make"));
}

#[test]
fn the_sql_is_printed_without_a_server() {
    let nowhere = "postgres://user:secret@127.0.0.1:1/database?table_prefix=audit_&schema=own";
    let sql = done(nowhere, &["migrate", "--print"]);
    assert!(sql.contains("CREATE TABLE \"own\".audit_events"), "{sql}");
    let sql = done(nowhere, &["migrate", "--print", "--dialect", "sqlite", "--prefix", "p_"]);
    assert!(sql.contains("CREATE TABLE p_events"), "{sql}");
    let bare = rheo(["migrate", "--print", "--dialect", "mysql"]);
    assert!(bare.status.success(), "{}", stderr(&bare));
    assert!(stdout(&bare).contains("rheo_events"));
    let unsaid = rheo(["migrate", "--print"]);
    assert_eq!(unsaid.status.code(), Some(2));
    assert!(json(nowhere, &["migrate", "--print"])["sql"].is_string());
    refused(nowhere, 1, &["migrate", "--print", "--prefix", "No!"]);
    refused(nowhere, 2, &["migrate", "--prefix", "p_"]);
}

#[test]
fn shells_get_their_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = rheo(["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("dead-letters"), "{shell}");
    }
    assert_eq!(rheo(["completions", "smell"]).status.code(), Some(2));
}

#[test]
fn the_suite_runs_on_a_store_in_use_and_leaves_it_as_it_was() {
    let sqlite = sqlite();
    let url = sqlite.url();
    let text = done(url, &["conformance", "--filter", "append."]);
    assert!(text.lines().any(|line| line.starts_with("pass: append.")), "{text}");
    let last = text.lines().last().expect("there are totals");
    assert!(last.starts_with("sqlite (SQLite ") && last.contains(" 0 failed"), "{last}");

    let report = json(url, &["conformance", "--filter", "guarantee."]);
    assert_eq!((&report["store"], &report["totals"]["fail"]), (&json!("sqlite"), &json!(0)));
    let cases = report["cases"].as_array().expect("it lists cases");
    let verdict = |id: &str| cases.iter().find(|case| case["id"] == id).map(|it| &it["verdict"]);
    assert_eq!(verdict("guarantee.events_survive_a_crash"), Some(&json!("not_configured")));
    assert_eq!(tables(&sqlite), ["orders"]);
    assert!(
        refused(url, 1, &["conformance", "--filter", "no such"])
            .contains("no case has a name with")
    );
}

/// The streams that any table of the database knows.
fn tables(sqlite: &Sqlite) -> Vec<String> {
    use rheo::sql::sqlx::{Connection, Row, query, sqlite::SqliteConnection};
    common::block_on(async {
        let mut connection = SqliteConnection::connect(sqlite.url()).await.expect("it opens");
        let left = query("SELECT name FROM sqlite_master WHERE name LIKE 'rheo_check%'");
        let left = left.fetch_all(&mut connection).await.expect("it is a table");
        assert_eq!(left.len(), 0, "tables were left behind");
        let streams = query("SELECT name FROM rheo_streams").fetch_all(&mut connection).await;
        streams.expect("it is a table").iter().map(|row| row.get("name")).collect()
    })
}

#[test]
fn the_suite_runs_in_this_process_as_well() {
    let output = rheo_on("memory:", &["conformance", "--filter", "claim."]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(stderr(&output), "");
}

//! `rheo watch`, by its binary: also on a terminal, which `script` makes.

mod common;
mod running;

use std::process::Command;

use common::{Sqlite, done, refused};
use rheo::NewEvent;
use running::Running;
use serde_json::{Value, json};

/// A database with the stream `orders` of three events and these groups.
fn orders(groups: &[&str]) -> Sqlite {
    let sqlite = Sqlite::with_stream("orders");
    for group in groups {
        done(sqlite.url(), &["create-group", "orders", group]);
    }
    append(&sqlite, 3);
    sqlite
}

fn append(sqlite: &Sqlite, events: usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let rheo = rheo::connect(sqlite.url()).await.unwrap();
        let events = vec![NewEvent::new("order.placed", json!(null)); events];
        rheo.append_batch("orders", events).await.unwrap();
    });
}

/// `watch` on a terminal of this size, with or without colour.
fn on_terminal(sqlite: &Sqlite, columns: u16, lines: u16, arguments: &str, plain: bool) -> Running {
    let watch = format!(
        "stty cols {columns} rows {lines}; exec '{}' --url '{}' watch {arguments}",
        env!("CARGO_BIN_EXE_rheo"),
        sqlite.url()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &watch, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm");
    if plain {
        script.env("NO_COLOR", "1");
    } else {
        script.env_remove("NO_COLOR");
    }
    Running::start(script)
}

#[test]
fn elsewhere_there_is_a_table_for_each_interval() {
    let sqlite = orders(&["billing", "shipping"]);
    done(sqlite.url(), &["create-stream", "payments"]);
    let printed = done(sqlite.url(), &["watch", "--interval", "10ms", "--count", "2"]);
    assert!(!printed.contains('\x1b'), "{printed}");
    let tables: Vec<&str> = printed.split("\n\n").collect();
    let [first, second] = tables[..] else { panic!("{printed}") };
    let cells = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = first.lines().skip(1).map(cells).collect();
    assert_eq!(rows[0], ["orders", "billing", "3", "-", "3", "0", "0", "0", "-"]);
    assert_eq!(rows[2], ["payments", "-", "0", "-", "-", "-", "-", "-", "-"]);
    let row = cells(second.lines().nth(1).unwrap());
    assert_eq!(row, ["orders", "billing", "3", "0.0", "3", "0", "0", "0", "0.0"]);
}

#[test]
fn programs_get_a_line_for_each_interval() {
    let sqlite = orders(&["billing"]);
    let args = ["--json", "watch", "orders", "--interval", "10ms", "--count", "2"];
    let printed = done(sqlite.url(), &args);
    let looks: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stream = |look: usize| &looks[look]["streams"][0];
    assert_eq!(looks.len(), 2);
    assert!(looks[0]["at"].is_string());
    assert_eq!(stream(0)["appended_per_second"], Value::Null);
    assert_eq!(stream(1)["appended_per_second"], json!(0.0));
    let group = json!({
        "name": "billing", "lag": 3, "leased": 0, "waiting": 0, "dead_letters": 0,
        "settled_per_second": 0.0,
    });
    assert_eq!(stream(1)["groups"], json!([group]));
}

#[test]
fn rates_are_of_the_last_interval() {
    let sqlite = orders(&["billing"]);
    let mut command = common::command();
    command.args(["--url", sqlite.url(), "--json", "watch", "--interval", "20ms"]);
    let mut running = Running::start(command);
    running.out.until("\n");
    append(&sqlite, 100);
    running.out.until(r#""events":103"#);
    done(sqlite.url(), &["consume", "orders", "billing", "--exec", "true", "--limit", "1"]);
    running.out.until(r#""lag":102"#);
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert!(ended.status.success(), "{}", ended.err);
    let look = |line| serde_json::from_str::<Value>(line).unwrap()["streams"][0].clone();
    let looks: Vec<Value> = ended.out.lines().map(look).collect();
    let positive = |rate: &Value| rate.as_f64().is_some_and(|rate| rate > 0.0);
    let fast = |look: &&Value| positive(&look["appended_per_second"]);
    assert_eq!(looks.iter().filter(fast).count(), 1);
    let busy = |look: &&Value| positive(&look["groups"][0]["settled_per_second"]);
    assert_eq!(looks.iter().filter(busy).count(), 1);
}

#[test]
fn on_a_terminal_it_is_redrawn_in_place_until_ctrl_c() {
    let sqlite = orders(&["billing", "shipping"]);
    let mut running = on_terminal(&sqlite, 100, 24, "orders --interval 50ms", false);
    running.out.until("shipping");
    append(&sqlite, 1000);
    running.out.until("1003");
    running.press("\x03");
    let ended = running.end();
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    let begun = ended.out.find("\x1b[?25l").expect("the cursor is hidden");
    let shown = ended.out.rfind("\x1b[?25h").expect("the cursor is shown again");
    assert!(begun < shown && !ended.out[shown..].contains("billing"), "{:?}", ended.out);
    assert!(ended.out.contains("\x1b[?7h"), "{:?}", ended.out);
    let frames: Vec<&str> = ended.out[begun..shown].split("\x1b[J").collect();
    // A head and two groups, drawn over each other.
    assert!(frames[1..frames.len() - 1].iter().all(|frame| frame.starts_with("\x1b[3A")));
    assert!(frames[0].contains("\x1b[1mSTREAM"), "{:?}", frames[0]);
}

#[test]
fn it_is_no_larger_than_the_terminal() {
    let groups: Vec<String> = (1..=12).map(|number| format!("group-{number}")).collect();
    let sqlite = orders(&groups.iter().map(String::as_str).collect::<Vec<_>>());
    let running = on_terminal(&sqlite, 30, 8, "--interval 10ms --count 3", false);
    let ended = running.end();
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    assert_eq!(ended.out.matches("\x1b[7A").count(), 2, "{:?}", ended.out);
    assert_eq!(ended.out.matches("… 7 more").count(), 3, "{:?}", ended.out);
    for line in ended.out.lines() {
        let shown = anstream::adapter::strip_str(line).to_string();
        assert!(shown.trim_matches('\r').chars().count() <= 30, "{shown:?}");
    }
}

#[test]
fn without_colour_it_is_still_redrawn() {
    let sqlite = orders(&["billing"]);
    let ended = on_terminal(&sqlite, 100, 24, "orders --interval 10ms --count 2", true).end();
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("\x1b[2A") && !ended.out.contains("\x1b[1m"), "{:?}", ended.out);
}

#[test]
fn what_can_not_be_watched_is_told_in_a_sentence() {
    let sqlite = orders(&[]);
    assert!(refused(sqlite.url(), 1, &["watch", "payments"]).contains("payments"));
    refused(sqlite.url(), 2, &["watch", "--count", "0"]);
    refused(sqlite.url(), 2, &["watch", "--interval", "0s"]);
}

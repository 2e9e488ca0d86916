//! What goes wrong ends with the right status and one sentence.

mod common;

use std::process::Stdio;

use common::{Sqlite, command, done, fill, refused, rheo, stderr, stdout};

const COMMANDS: [&str; 24] = [
    "streams",
    "groups",
    "lag",
    "info",
    "dead-letters",
    "capabilities",
    "ping",
    "watch",
    "query",
    "read",
    "tail",
    "append",
    "consume",
    "create-stream",
    "create-group",
    "replay",
    "reset",
    "delete-group",
    "delete-stream",
    "migrate",
    "conformance",
    "bench",
    "completions",
    "help",
];

/// One that is told in one line, by the binary itself.
#[track_caller]
fn sentence(url: &str, status: i32, args: &[&str]) -> String {
    let told = refused(url, status, args);
    assert!(told.starts_with("rheo: ") && told.lines().count() == 1, "{args:?}: {told}");
    told
}

#[test]
fn a_bad_url_says_what_would_be_right() {
    for url in ["", "nosuch://host", "Memory:", "postgres:", "rheo.db"] {
        sentence(url, 1, &["streams"]);
    }
    assert!(sentence("nosuch://host", 1, &["streams"]).contains("sqlite:rheo.db"));
    assert!(sentence("sqlite:a?colour=red", 1, &["ping"]).contains("unknown option"));
}

#[test]
fn a_missing_server_is_out_of_reach_and_its_password_is_not_told() {
    for url in [
        "postgres://user:hunter2@127.0.0.1:1/database?connect_timeout_ms=200",
        "mysql://user:hunter2@127.0.0.1:1/database?connect_timeout_ms=200",
        "redis://user:hunter2@127.0.0.1:1/?connect_timeout_ms=200",
        "mongodb://user:hunter2@127.0.0.1:1/database?connect_timeout_ms=200",
    ] {
        for args in [&["streams"][..], &["migrate"], &["conformance"]] {
            let told = sentence(url, 1, args);
            assert!(told.contains("unavailable"), "{told}");
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}

#[test]
fn a_malformed_url_keeps_its_password_too() {
    for url in [
        "postgres://user:hunter2@:bad:port/database",
        "mysql://user:hunter2@host:port/database",
        "redis://user:hunter2@host:port",
        "mongodb://user:hunter2@host:port/database",
        "nosuch://user:hunter2@host",
    ] {
        assert!(!sentence(url, 1, &["streams"]).contains("hunter2"), "{url}");
    }
}

#[test]
fn help_shows_no_password() {
    for args in [&["--help"][..], &["streams", "--help"], &["streams", "--nonsense"]] {
        let mut command = command();
        command.args(args).env("RHEO_URL", "postgres://user:hunter2@host/database");
        let output = command.output().expect("the binary runs");
        let text = stdout(&output) + &stderr(&output);
        assert!(text.contains("rheo") && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_stream_or_group_that_is_not_there_is_told() {
    let sqlite = Sqlite::with_stream("orders");
    for args in [
        &["groups", "nowhere"][..],
        &["lag", "nowhere"],
        &["info", "nowhere", "billing"],
        &["dead-letters", "nowhere", "billing"],
        &["query", "nowhere"],
        &["read", "nowhere", "0"],
        &["tail", "nowhere"],
        &["append", "nowhere", "--type", "t", "1"],
        &["consume", "nowhere", "billing", "--exec", "true"],
        &["create-group", "nowhere", "billing"],
        &["replay", "nowhere", "billing", "--after", "0"],
        &["reset", "nowhere", "billing", "--start", "end", "--yes"],
        &["delete-group", "nowhere", "billing", "--yes"],
        &["delete-stream", "nowhere", "--yes"],
        &["watch", "nowhere", "--count", "1"],
    ] {
        assert!(sentence(sqlite.url(), 1, args).contains("nowhere"), "{args:?}");
    }
    for args in [
        &["lag", "orders", "nobody"][..],
        &["info", "orders", "nobody"],
        &["dead-letters", "orders", "nobody"],
        &["consume", "orders", "nobody", "--exec", "true"],
        &["replay", "orders", "nobody", "--dead-letters"],
        &["reset", "orders", "nobody", "--start", "end", "--yes"],
        &["delete-group", "orders", "nobody", "--yes"],
    ] {
        assert!(sentence(sqlite.url(), 1, args).contains("nobody"), "{args:?}");
    }
}

#[test]
fn a_wrong_command_line_is_another_failure() {
    for args in [
        &[][..],
        &["nonsense"],
        &["streams", "--nonsense"],
        &["groups"],
        &["--json"],
        &["read", "orders", "first"],
        &["delete-stream", "orders", "--yes", "--yes"],
    ] {
        let output = rheo(["--url", "memory:"].iter().chain(args));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty(), "{args:?}");
    }
}

#[test]
fn without_a_url_there_is_no_store() {
    for args in [&["streams"][..], &["ping", "--json"], &["migrate"], &["conformance"]] {
        let output = rheo(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let told = stderr(&output);
        assert!(told.contains("--url") && told.contains("RHEO_URL"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let overview = stdout(&rheo(["--help"]));
    for command in COMMANDS {
        assert!(overview.contains(&format!("  {command} ")), "{command}");
    }
    let listed = overview.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    assert_eq!(listed.take_while(|line| !line.is_empty()).count(), COMMANDS.len());
    for command in COMMANDS.iter().filter(|command| **command != "help") {
        let output = rheo([command, "--help"]);
        assert!(output.status.success(), "{command}");
        let help = stdout(&output);
        let example = help.lines().find_map(|line| line.trim().strip_prefix("Example: "));
        let example = example.unwrap_or_else(|| panic!("{command} has no example: {help}"));
        assert!(example.contains("rheo ") && example.contains(command), "{example}");
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let sqlite = Sqlite::with_stream("orders");
    done(sqlite.url(), &["create-group", "orders", "billing"]);
    fill(sqlite.url(), "orders", 3);
    for args in [
        &["streams"][..],
        &["groups", "orders"],
        &["lag", "orders"],
        &["info", "orders", "billing"],
        &["dead-letters", "orders", "billing"],
        &["capabilities"],
        &["ping"],
        &["query", "orders"],
        &["read", "orders", "0"],
        &["tail", "orders"],
        &["watch", "orders", "--count", "1"],
        &["migrate", "--print"],
        &["conformance", "--filter", "append."],
        &["completions", "bash"],
    ] {
        for form in [&[][..], &["--json"]] {
            let (reader, writer) = std::io::pipe().expect("there are pipes");
            drop(reader);
            let mut command = command();
            command.args(["--url", sqlite.url()]).args(args).args(form).stdin(Stdio::null());
            let output = command.stdout(writer).stderr(Stdio::piped()).output();
            let output = output.expect("the binary runs");
            let told = stderr(&output);
            assert!(output.status.success() && told.is_empty(), "{args:?} {form:?}: {told}");
        }
    }
}

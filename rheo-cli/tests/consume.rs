//! `rheo consume`, by its binary.

mod common;
mod running;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{Sqlite, command, done, json, refused, rheo_on, stderr, stdout};
use rheo::NewEvent;
use running::Running;
use rustix::process::Signal;
use serde_json::{Value, json};

/// A database with the stream `orders` of so many events and the group `billing`.
fn orders(events: u64, attempts: &str) -> Sqlite {
    let sqlite = Sqlite::with_stream("orders");
    done(sqlite.url(), &["create-group", "orders", "billing", "--max-attempts", attempts]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let rheo = rheo::connect(sqlite.url()).await.unwrap();
        let order = |total| NewEvent::new("order.placed", json!({"total": total})).key("k1");
        rheo.append_batch("orders", (1..=events).map(order).collect::<Vec<_>>()).await.unwrap();
    });
    sqlite
}

fn consume<'a>(exec: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    [&["consume", "orders", "billing", "--exec", exec], options].concat()
}

fn start(sqlite: &Sqlite, exec: &str, options: &[&str]) -> Running {
    let mut command = command();
    command.args(["--url", sqlite.url()]).args(consume(exec, options));
    Running::start(command)
}

/// A named pipe by which commands wait for the test, or tell that they are gone.
fn fifo(sqlite: &Sqlite) -> PathBuf {
    let path = sqlite.directory().join("fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Both ends, so that opening waits for nobody.
fn held(fifo: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(fifo).unwrap()
}

fn dead_letters(sqlite: &Sqlite) -> Vec<(u64, u64, String)> {
    let letters = json(sqlite.url(), &["dead-letters", "orders", "billing"]);
    let shown = |letter: &Value| {
        let sequence = letter["event"]["sequence"].as_u64().unwrap();
        (sequence, letter["attempt"].as_u64().unwrap(), letter["reason"].as_str().unwrap().into())
    };
    letters.as_array().unwrap().iter().map(shown).collect()
}

#[test]
fn the_status_is_the_outcome() {
    let sqlite = orders(3, "5");
    let exec = r#"case $RHEO_SEQUENCE-$RHEO_ATTEMPT in
        2-1) echo "not now" >&2; exit 75;;
        3-*) echo >&2; echo " no stock " >&2; echo "and more" >&2; exit 1;;
    esac; echo "$RHEO_SEQUENCE at $RHEO_ATTEMPT""#;
    let args = consume(exec, &["--on-failure", "reject", "--until-drained"]);
    let output = rheo_on(sqlite.url(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1 at 1", "2 at 2"]);
    let told = stderr(&output);
    assert!(told.contains("not now\n") && told.contains("and more\n"), "{told}");
    assert!(told.ends_with("2 acked, 1 retried, 1 rejected, 0 released, 0 lost\n"), "{told}");
    assert_eq!(dead_letters(&sqlite), [(3, 1, "no stock".to_string())]);
}

#[test]
fn failures_are_retried_until_the_attempts_are_used_up() {
    let sqlite = orders(1, "2");
    let args = consume(r#"test $RHEO_ATTEMPT = 1 && echo first >&2; exit 3"#, &["--until-drained"]);
    let printed = done(sqlite.url(), &[&["--json"], args.as_slice()].concat());
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let counts = json!({"acked": 0, "retried": 2, "rejected": 0, "released": 0, "lost": 0});
    assert_eq!(summary, counts);
    let reason = "the command ended with status 3".to_string();
    assert_eq!(dead_letters(&sqlite), [(1, 2, reason)]);
}

#[test]
fn a_signal_is_a_retry_whatever_becomes_of_failures() {
    let sqlite = orders(2, "5");
    // Once of the shell itself, once of what it runs.
    let exec = r#"case $RHEO_SEQUENCE-$RHEO_ATTEMPT in
        1-1) kill -9 $$;;
        2-1) sh -c 'kill -9 $$'; exit $?;;
    esac"#;
    let args = consume(exec, &["--on-failure", "reject", "--until-drained"]);
    let told = stderr(&rheo_on(sqlite.url(), &args));
    assert!(told.ends_with("2 acked, 2 retried, 0 rejected, 0 released, 0 lost\n"), "{told}");
}

#[test]
fn a_retry_waits_as_long_as_it_is_told() {
    let sqlite = orders(1, "5");
    done(sqlite.url(), &consume("exit 75", &["--retry-after", "1h", "--limit", "1"]));
    let groups = json(sqlite.url(), &["groups", "orders"]);
    assert_eq!((&groups[0]["lag"], &groups[0]["waiting"]), (&json!(1), &json!(1)));
}

#[test]
fn the_command_is_told_all_of_the_event() {
    let sqlite = orders(1, "5");
    let exec = r#"cat; echo "$RHEO_STREAM $RHEO_GROUP $RHEO_PARTITION $RHEO_SEQUENCE $RHEO_POSITION"
        echo "$RHEO_TYPE $RHEO_KEY $RHEO_ATTEMPT $RHEO_ID $RHEO_TIMESTAMP""#;
    let printed = done(sqlite.url(), &consume(exec, &["--limit", "1"]));
    let mut lines = printed.lines();
    let event: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(event["payload"], json!({"total": 1}));
    assert_eq!((&event["group"], &event["attempt"]), (&json!("billing"), &json!(1)));
    assert_eq!(lines.next(), Some("orders billing 0 1 0-1"));
    let (id, timestamp) = (event["id"].as_str().unwrap(), event["timestamp"].as_str().unwrap());
    assert_eq!(lines.next(), Some(format!("order.placed k1 1 {id} {timestamp}").as_str()));
}

#[test]
fn lines_of_commands_at_once_are_whole_and_the_limit_holds() {
    let sqlite = orders(30, "5");
    let exec = r#"printf "begin $RHEO_SEQUENCE "; printf "end\n"; printf "unended""#;
    let args = consume(exec, &["--concurrency", "8", "--limit", "20"]);
    let printed = done(sqlite.url(), &args).replace("unended", "");
    assert_eq!(printed.lines().count(), 20);
    for line in printed.lines() {
        assert!(line.starts_with("begin ") && line.ends_with(" end"), "{line}");
    }
    // The others were handed back at once, whichever they are.
    let rest = done(sqlite.url(), &consume("echo $RHEO_ATTEMPT", &["--until-drained"]));
    assert_eq!(rest, "1\n".repeat(10));
}

#[test]
fn ctrl_c_lets_commands_end_and_hands_back_the_rest() {
    let sqlite = orders(2, "5");
    let fifo = fifo(&sqlite);
    let mut fifo_end = held(&fifo);
    let exec = format!("echo started; read line < '{}'; echo \"$line\"", fifo.display());
    let mut running = start(&sqlite, &exec, &[]);
    running.out.until("started\n");
    running.signal(Signal::INT);
    running.err.until("ending once 1 running");
    fifo_end.write_all(b"go on\n").unwrap();
    let ended = running.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert_eq!(ended.out, "started\ngo on\n");
    assert!(
        ended.err.ends_with("1 acked, 0 retried, 0 rejected, 1 released, 0 lost\n"),
        "{}",
        ended.err
    );
    let rest =
        done(sqlite.url(), &consume("echo $RHEO_POSITION $RHEO_ATTEMPT", &["--until-drained"]));
    assert_eq!(rest, "0-2 1\n");
}

#[test]
fn sigterm_ends_an_idle_consumer() {
    let sqlite = orders(1, "5");
    let mut running = start(&sqlite, "echo done", &[]);
    running.out.until("done\n");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains("1 acked"), "{}", ended.err);
}

/// Runs as long as it is let, and so do those it has started, all of which
/// hold the pipe open.
fn endless(fifo: &Path) -> String {
    format!("exec 3> '{}'; echo started; sleep 600 & wait", fifo.display())
}

#[test]
fn a_second_ctrl_c_kills_commands_with_all_they_started() {
    let sqlite = orders(1, "5");
    let fifo = fifo(&sqlite);
    let mut running = start(&sqlite, &endless(&fifo), &[]);
    let mut open = BufReader::new(File::open(&fifo).unwrap());
    running.out.until("started\n");
    running.signal(Signal::INT);
    running.err.until("ending once 1 running");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.err.contains("ended at once with 1 left"), "{}", ended.err);
    assert_eq!(open.read_line(&mut String::new()).unwrap(), 0, "all of them are gone");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
    let sqlite = orders(1, "1");
    let fifo = fifo(&sqlite);
    let running = start(&sqlite, &endless(&fifo), &["--timeout", "500ms", "--until-drained"]);
    let mut open = BufReader::new(File::open(&fifo).unwrap());
    assert_eq!(open.read_line(&mut String::new()).unwrap(), 0, "all of them are gone");
    let ended = running.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(dead_letters(&sqlite)[0].2.contains("took longer than 500ms"));
}

#[test]
fn the_events_of_a_killed_process_come_again_by_expiry() {
    let sqlite = orders(1, "5");
    let fifo = fifo(&sqlite);
    let mut fifo_end = held(&fifo);
    let exec = format!("echo started; read line < '{}'", fifo.display());
    let mut running = start(&sqlite, &exec, &["--lease", "500ms"]);
    running.out.until("started\n");
    running.signal(Signal::KILL);
    let again = done(sqlite.url(), &consume("echo $RHEO_ATTEMPT", &["--limit", "1"]));
    assert_eq!(again, "2\n");
    // The command itself has outlived it.
    fifo_end.write_all(b"go on\n").unwrap();
    running.end();
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let sqlite = orders(50, "5");
    let mut command = command();
    command.args(["--url", sqlite.url()]).args(consume("echo $RHEO_ATTEMPT", &[]));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!((line.as_str(), stderr(&output).as_str()), ("1\n", ""));
    // What was not shown is not lost, and its attempt not counted.
    let rest = done(sqlite.url(), &consume("echo $RHEO_ATTEMPT", &["--until-drained"]));
    assert!(!rest.is_empty() && rest.lines().all(|attempt| attempt == "1"), "{rest}");
}

#[test]
fn output_that_can_not_be_written_fails_and_complaints_need_no_reader() {
    let sqlite = orders(1, "5");
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut loud = command();
    loud.args(["--url", sqlite.url()]).args(consume("echo lost", &[])).stdout(full);
    let output = loud.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));

    let mut unheard = command();
    let exec = "seq 100000 >&2; echo $RHEO_ATTEMPT";
    unheard.args(["--url", sqlite.url()]).args(consume(exec, &["--until-drained"]));
    unheard.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = unheard.spawn().unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(stdout(&output), "1\n");
}

#[test]
fn a_command_need_not_read_its_input() {
    let sqlite = Sqlite::with_stream("orders");
    done(sqlite.url(), &["create-group", "orders", "billing"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let rheo = rheo::connect(sqlite.url()).await.unwrap();
        let large = NewEvent::new("large", json!("x".repeat(500_000)));
        rheo.append("orders", large).await.unwrap();
    });
    let told = stderr(&rheo_on(sqlite.url(), &consume("true", &["--until-drained"])));
    assert!(told.starts_with("1 acked"), "{told}");
    done(sqlite.url(), &["replay", "orders", "billing", "--after", "0"]);
    let length = done(sqlite.url(), &consume("wc -l", &["--until-drained"]));
    assert_eq!(length.trim(), "1");
}

#[test]
fn what_can_not_be_consumed_is_told_in_a_sentence() {
    let sqlite = orders(0, "5");
    let missing = ["consume", "payments", "billing", "--exec", "true"];
    assert!(refused(sqlite.url(), 1, &missing).contains("payments"));
    let missing = ["consume", "orders", "shipping", "--exec", "true"];
    assert!(refused(sqlite.url(), 1, &missing).contains("shipping"));
    refused(sqlite.url(), 1, &consume("true", &["--partition", "7"]));
    refused(sqlite.url(), 2, &consume("true", &["--concurrency", "0"]));
    refused(sqlite.url(), 2, &consume("true", &["--timeout", "soon"]));
    refused(sqlite.url(), 2, &["consume", "orders", "billing"]);
}

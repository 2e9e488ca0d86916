//! `rheo append`: events from arguments, NDJSON and CSV.

mod common;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use common::{Sqlite, command, json, refused, rheo_on, stderr, stdout};
use rheo::{Event, Query, Rheo};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const MARKET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rheo/examples/data/market.ndjson");

fn with_library<T>(url: &str, use_it: impl AsyncFnOnce(Rheo) -> rheo::Result<T>) -> T {
    let runtime = Runtime::new().expect("the operating system gives threads");
    runtime.block_on(async { use_it(rheo::connect(url).await?).await }).unwrap()
}

/// A store with a stream `s`.
fn store(partitions: u32) -> Sqlite {
    let sqlite = Sqlite::new();
    with_library(sqlite.url(), async |rheo| rheo.create_stream("s", partitions).await);
    sqlite
}

fn events(sqlite: &Sqlite) -> Vec<Event> {
    let query = Query::new().limit(10_000);
    with_library(sqlite.url(), async |rheo| rheo.query("s", &query).await)
}

fn payloads(sqlite: &Sqlite) -> Vec<Value> {
    events(sqlite).iter().map(Event::payload).collect()
}

/// Runs `append s` with this on its standard input.
fn append(sqlite: &Sqlite, args: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = command()
        .args(["--url", sqlite.url(), "append", "s"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // It may end before it has read everything.
    let _ = child.stdin.take().expect("it was asked for").write_all(input.as_ref());
    child.wait_with_output().expect("it ends")
}

/// The document of a run that ends with this status.
#[track_caller]
fn tally(output: &Output, status: i32) -> Value {
    assert_eq!(output.status.code(), Some(status), "{}", stderr(output));
    let mut tally: Value = serde_json::from_str(&stdout(output)).expect("one document");
    assert_eq!(tally.as_object_mut().unwrap().remove("stream"), Some(json!("s")));
    tally
}

/// Numbers as events, with something else on one line.
fn numbers(count: u64, bad: &[(u64, &str)]) -> String {
    let line = |number| {
        let bad = bad.iter().find(|(line, _)| *line == number);
        bad.map_or(format!(r#"{{"type":"n","payload":{number}}}"#), |(_, text)| (*text).into())
    };
    (1..=count).map(|number| line(number) + "\n").collect()
}

#[test]
fn one_event_goes_in_from_arguments() {
    let sqlite = store(4);
    let args = ["append", "s", "--type", "t", "--key", "k", "--metadata", "schema_version=2"];
    let event = json(sqlite.url(), &[&args[..], &[r#"{"a": 1.0}"#]].concat());
    assert_eq!(event["payload"], json!({"a": 1.0}));
    assert_eq!(event["metadata"], json!({"schema_version": "2"}));
    assert_eq!((&event["type"], &event["key"]), (&json!("t"), &json!("k")));

    let text = json(sqlite.url(), &["append", "s", "--type", "t", "--text", "5"]);
    assert_eq!((&text["payload"], &text["key"]), (&json!("5"), &Value::Null));
    let negative = json(sqlite.url(), &["append", "s", "--type", "t", "--partition", "3", "-5"]);
    assert_eq!((&negative["payload"], &negative["partition"]), (&json!(-5), &json!(3)));
    assert_eq!(events(&sqlite).len(), 3);
}

#[test]
fn one_event_with_an_id_goes_in_once() {
    let sqlite = store(1);
    let args = ["append", "s", "--type", "t", "--id-field", "n.o", r#"{"n":{"o":"A-17"}}"#];
    let first = stdout(&rheo_on(sqlite.url(), &args));
    let second = stdout(&rheo_on(sqlite.url(), &args));
    assert!(first.starts_with("0-1  "), "{first}");
    assert_eq!(second, format!("{}  (there already)\n", first.trim_end()));
}

#[test]
fn a_wrong_command_line_is_told() {
    let sqlite = store(1);
    let refused = |status, args: &[&str], why: &str| {
        let told = refused(sqlite.url(), status, &[&["append", "s"], args].concat());
        assert!(told.contains(why), "{told}");
    };
    refused(2, &["--type", "t"], "required");
    refused(2, &["--type", "t", "--ndjson", "-", "--csv", "-"], "cannot be used with");
    refused(2, &["1"], "--type or --type-field");
    refused(2, &["--csv"], "--type or --type-field");
    refused(2, &["--type", "t", "five"], "no JSON");
    refused(2, &["--type", "t", "--key-field", "k", "5"], "no field \"k\"");
    refused(2, &["--type", "t", "--metadata", "x", "5"], "NAME=VALUE");
    refused(2, &["--ndjson", "--batch", "0"], "0 is not in");
    refused(1, &["--type", "t", "--partition", "1", "5"], "out of range");
    refused(1, &["--type", "t", r#""\u0000""#], "U+0000");
    refused(1, &["--ndjson", "/nowhere.ndjson"], "/nowhere.ndjson");
    assert!(events(&sqlite).is_empty());
}

#[test]
fn an_unknown_stream_is_told() {
    let sqlite = store(1);
    for source in [&["--type", "t", "1"][..], &["--ndjson", MARKET]] {
        let told = refused(sqlite.url(), 1, &[&["append", "nowhere"], source].concat());
        assert!(told.contains("stream not found: \"nowhere\""), "{told}");
    }
}

#[test]
fn the_market_goes_in_once() {
    let sqlite = store(4);
    let ids = ["--id-field", "symbol", "--id-field", "date"];
    let args = [&["append", "s", "--ndjson", MARKET], &ids[..]].concat();
    let mut first = json(sqlite.url(), &args);
    first.as_object_mut().unwrap().remove("stream");
    let right = json!({"read": 560, "appended": 560, "known": 0, "skipped": 0, "last_line": 560});
    assert_eq!(first, right);
    let again = json(sqlite.url(), &args);
    assert_eq!((&again["appended"], &again["known"]), (&json!(0), &json!(560)));

    let stored = events(&sqlite);
    assert_eq!(stored.len(), 560);
    let apple = stored.iter().find(|event| event.key() == Some("AAPL")).unwrap();
    let payload = json!({"symbol": "AAPL", "date": "2000-01-01", "price": 25.94});
    assert_eq!((apple.event_type(), apple.payload()), ("price", payload));
}

#[test]
fn people_are_told_on_standard_error() {
    let sqlite = store(1);
    let output = append(&sqlite, &["--ndjson"], numbers(3, &[]));
    assert!(output.status.success());
    assert_eq!(stdout(&output), "");
    let right = "3 read: 3 appended, 0 there already, 0 left out; done up to line 3\n";
    assert_eq!(stderr(&output), right);
}

#[test]
fn a_bad_line_holds_back_its_batch_and_no_earlier_one() {
    let sqlite = store(1);
    let bad = [(15, "{"), (17, r#"{"type":"n"}"#), (25, "x")];
    let output = append(&sqlite, &["--ndjson", "-", "--batch", "10", "--json"], numbers(30, &bad));
    let done = json!({"read": 10, "appended": 10, "known": 0, "skipped": 0, "last_line": 10});
    assert_eq!(tally(&output, 1), done);
    let told = stderr(&output);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("rheo: line 15: it is no JSON: "), "{told}");
    assert!(lines[1].starts_with("rheo: line 17: missing field `payload`"), "{told}");
    assert!(lines[2].starts_with("rheo: 2 bad lines"), "{told}");
    assert!(lines[2].contains("lines 11 to 20") && lines[2].contains("--from-line 11"), "{told}");
    assert_eq!(lines.len(), 3, "{told}");
    assert_eq!(payloads(&sqlite), (1..=10).map(Value::from).collect::<Vec<_>>());
}

#[test]
fn after_a_correction_it_goes_on_from_a_line() {
    let sqlite = store(1);
    let batch = ["--ndjson", "-", "--batch", "10", "--json"];
    append(&sqlite, &batch, numbers(25, &[(15, "{")]));
    let output = append(&sqlite, &[&batch[..], &["--from-line", "11"]].concat(), numbers(25, &[]));
    let done = json!({"read": 15, "appended": 15, "known": 0, "skipped": 0, "last_line": 25});
    assert_eq!(tally(&output, 0), done);
    assert_eq!(payloads(&sqlite), (1..=25).map(Value::from).collect::<Vec<_>>());
}

#[test]
fn bad_lines_are_left_out_where_that_is_asked_for() {
    let sqlite = store(1);
    let large = format!(r#"{{"type":"n","payload":"{}"}}"#, "x".repeat(1 << 20));
    let bad = [
        (2, "{"),
        (3, r#"{"type":"n","payload":1,"partition":1}"#),
        (4, r#"{"type":"n","payload":"\u0000"}"#),
        (5, &large),
        (6, r#"{"type":"","payload":1}"#),
        (7, r#"{"type":"n","payload":1,"kye":"a"}"#),
        (8, r#"{"type":"n","payload":1,"id":""}"#),
    ];
    let mut input = numbers(9, &bad).into_bytes();
    input.extend(b"\n\xff\n");
    let output = append(&sqlite, &["--ndjson", "-", "--skip-bad", "--json"], input);
    let done = json!({"read": 10, "appended": 2, "known": 0, "skipped": 8, "last_line": 11});
    assert_eq!(tally(&output, 0), done);
    let told = stderr(&output);
    let why = [
        "line 2: it is no JSON",
        "line 3: partition 1 is out of range",
        "line 4: the payload cannot be stored: a string in it holds the character U+0000",
        "line 5: the event has 1048581 bytes encoded, the limit is 1048576",
        "line 6: an event's type has at least one character",
        "line 7: unknown field `kye`",
        "line 8: its id is empty",
        "line 11: it is no UTF-8 from its byte 1 on",
    ];
    for (told, why) in told.lines().zip(why) {
        assert!(told.starts_with(&format!("rheo: {why}")), "{told}");
    }
    assert_eq!(told.lines().count(), why.len(), "{told}");
    assert_eq!(payloads(&sqlite), [json!(1), json!(9)]);
}

#[test]
fn whole_objects_are_payloads_where_an_option_gives_the_type() {
    let sqlite = store(1);
    let input = r#"{"id": 12345678901234567890123, "kind": "a", "payload": {"by": {"name": "k"}}}
{"id": 12345678901234567890124, "kind": "b", "payload": {"by": {"name": null}}}
"#;
    let fields = ["--type-field", "kind", "--key-field", "payload.by.name", "--id-field", "id"];
    let output = append(&sqlite, &[&["--ndjson", "--json"], &fields[..]].concat(), input);
    assert_eq!(tally(&output, 0)["appended"], json!(2));
    let stored = events(&sqlite);
    let types_and_keys: Vec<_> =
        stored.iter().map(|event| (event.event_type(), event.key())).collect();
    assert_eq!(types_and_keys, [("a", Some("k")), ("b", None)]);
    assert_eq!(stored[0].payload()["kind"], json!("a"));
}

#[test]
fn events_that_were_printed_go_into_another_store() {
    let (from, to) = (store(4), store(4));
    let args = ["append", "s", "--type", "t", "--key", "AAPL", "--metadata", "a=b", "[1e300]"];
    let printed = json(from.url(), &args).to_string();
    for appended in [1, 0] {
        let output = append(&to, &["--ndjson", "--json"], &printed);
        assert_eq!(tally(&output, 0)["appended"], json!(appended));
    }
    let (from, to) = (&events(&from)[0], &events(&to)[0]);
    assert_eq!((from.id(), from.position()), (to.id(), to.position()));
    assert_eq!((from.metadata(), from.payload()), (to.metadata(), to.payload()));
}

#[test]
fn an_id_that_comes_twice_in_a_file_goes_in_once() {
    let sqlite = store(1);
    let line = r#"{"type":"n","id":"A-17","payload":1}"#;
    let output = append(&sqlite, &["--ndjson", "--json"], format!("{line}\n{line}\n"));
    let done = json!({"read": 2, "appended": 1, "known": 1, "skipped": 0, "last_line": 2});
    assert_eq!(tally(&output, 0), done);
}

#[test]
fn rows_go_in_with_quotes_and_types() {
    let sqlite = store(1);
    let csv = "no,name,price,paid,note\r\n\
        007,\"a, \"\"b\"\"\",2.50,true,\r\n\
        008,\"two\nlines\",17,false,null\r\n";
    let args = ["--csv", "-", "--type", "order", "--id-field", "no", "--key-field", "name"];
    let strings = append(&sqlite, &args, csv);
    assert!(strings.status.success(), "{}", stderr(&strings));
    let first = &payloads(&sqlite)[0];
    let right =
        json!({"no": "007", "name": "a, \"b\"", "price": "2.50", "paid": "true", "note": ""});
    assert_eq!(first, &right);

    let sqlite = store(1);
    let inferred = append(&sqlite, &[&args[..], &["--infer", "--json"]].concat(), csv);
    let done = json!({"read": 2, "appended": 2, "known": 0, "skipped": 0, "last_line": 4});
    assert_eq!(tally(&inferred, 0), done);
    let right = [
        json!({"no": "007", "name": "a, \"b\"", "price": 2.5, "paid": true, "note": null}),
        json!({"no": "008", "name": "two\nlines", "price": 17, "paid": false, "note": null}),
    ];
    assert_eq!(payloads(&sqlite), right);
    assert_eq!(events(&sqlite)[1].key(), Some("two\nlines"));
}

#[test]
fn bad_rows_and_headers_are_told() {
    let sqlite = store(1);
    let csv = "a,b\n\"1\n1\",2\n3\n\n,4\n5,6\n7,\"8\n9,10\n";
    let args = ["--csv", "--type", "t", "--id-field", "a", "--json", "--skip-bad"];
    let output = append(&sqlite, &args, csv);
    let done = json!({"read": 5, "appended": 2, "known": 0, "skipped": 3, "last_line": 9});
    assert_eq!(tally(&output, 0), done);
    let right = "rheo: line 4: it has 1 cells, the header has 2\n\
        rheo: line 6: its field \"a\", of the id, is empty\n\
        rheo: line 8: a quote in it is not closed\n";
    assert_eq!(stderr(&output), right);

    for (header, why) in [("", "there is none"), ("a,a\n", "two columns"), ("b\n", "no column")] {
        let output = append(&sqlite, &args, header);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).starts_with(&format!("rheo: the header: {why}")), "{header}");
    }
}

#[test]
fn nothing_on_standard_input_is_no_event() {
    let sqlite = store(1);
    let tally = json(sqlite.url(), &["append", "s", "--ndjson"]);
    assert_eq!((&tally["read"], &tally["last_line"]), (&json!(0), &json!(0)));
}

#[test]
fn what_cannot_be_read_is_told() {
    let sqlite = store(1);
    let directory: PathBuf = sqlite.directory().into();
    let output = rheo_on(sqlite.url(), &["append", "s", "--ndjson", directory.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the input cannot be read"), "{}", stderr(&output));
}

#[test]
fn control_characters_of_the_input_are_shown_only() {
    let sqlite = store(1);
    let line = "{\"type\":\"n\",\"payload\":1,\"\\u001b[31m\":1}";
    let output = append(&sqlite, &["--ndjson"], line);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("\\u{1b}[31m"), "{}", stderr(&output));
}

//! Every command on every store that can be started here, by the binary.

mod common;

use common::{done, json, stores};
use serde_json::json;

/// 560 prices, the input of the library's example.
const MARKET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rheo/examples/data/market.ndjson");

#[test]
fn every_command_works_on_every_store() {
    for store in stores() {
        eprintln!("on {}", store.name);
        the_store_is_there(&store.url);
        events_go_in_and_come_out(&store.url);
        a_group_is_delivered(&store.url);
        what_was_done_is_undone(&store.url);
        the_market_goes_in_and_comes_out(&store.url);
    }
}

fn the_store_is_there(url: &str) {
    assert!(json(url, &["ping"])["milliseconds"].is_number());
    assert!(done(url, &["migrate"]).contains("ready"));
    assert_eq!(json(url, &["capabilities"])["guarantees"]["replay"], true);
    let report = json(url, &["conformance", "--filter", "append.a_batch"]);
    assert_eq!(report["totals"]["fail"], 0, "{report}");
    assert_eq!(json(url, &["streams"]), json!([]));
}

fn events_go_in_and_come_out(url: &str) {
    done(url, &["create-stream", "orders", "--partitions", "2"]);
    for total in ["5", "50"] {
        let payload = format!("{{\"total\":{total}}}");
        let append = ["append", "orders", "--type", "placed", "--key", "k", "--partition", "1"];
        done(url, &[&append[..], &[&payload]].concat());
    }
    assert_eq!(
        json(url, &["streams"])[0],
        json!({ "name": "orders", "partitions": 2, "events": 2 })
    );
    assert_eq!(done(url, &["query", "orders", "type=placed", "total>10"]).lines().count(), 1);
    assert_eq!(done(url, &["read", "orders", "1"]).lines().count(), 2);
    assert_eq!(done(url, &["tail", "orders", "-n", "1"]).lines().count(), 1);
    let found = done(url, &["--json", "query", "orders", "key=k"]);
    let found: Vec<serde_json::Value> =
        found.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(found.len(), 2);
    assert_eq!((&found[0]["partition"], &found[0]["sequence"]), (&json!(1), &json!(1)));
    assert_eq!(found[0]["payload"], json!({ "total": 5 }));
}

fn a_group_is_delivered(url: &str) {
    done(url, &["create-group", "orders", "billing", "--max-attempts", "2"]);
    done(url, &["create-group", "orders", "audit", "--start", "end"]);
    assert_eq!(json(url, &["groups", "orders"]).as_array().map(Vec::len), Some(2));
    assert_eq!(json(url, &["lag", "orders", "billing"])[1]["lag"], 2);

    let consume = ["consume", "orders", "billing", "--until-drained", "--exec"];
    done(url, &[&consume[..], &["cat >/dev/null"]].concat());
    let settled = &json(url, &["info", "orders", "billing"])["partitions"][1];
    assert_eq!((&settled["frontier"], &settled["dead_letters"]), (&json!(2), &json!(0)));

    let replayed = json(url, &["replay", "orders", "billing", "--matching", "total=50"]);
    assert_eq!(replayed["waiting"], 1);
    let given_up = [&consume[..], &["exit 1", "--on-failure", "reject"]].concat();
    done(url, &given_up);
    let letters = json(url, &["dead-letters", "orders", "billing"]);
    assert_eq!(letters.as_array().map(Vec::len), Some(1));
    assert_eq!(letters[0]["event"]["sequence"], 2);
    assert!(done(url, &["watch", "orders", "--count", "1"]).contains("billing"));
}

fn what_was_done_is_undone(url: &str) {
    done(url, &["replay", "orders", "billing", "--dead-letters"]);
    assert_eq!(json(url, &["dead-letters", "orders", "billing"]), json!([]));
    done(url, &["reset", "orders", "billing", "--start", "end", "--yes"]);
    assert_eq!(json(url, &["info", "orders", "billing"])["partitions"][1]["frontier"], 2);
    done(url, &["delete-group", "orders", "billing", "--yes"]);
    assert_eq!(json(url, &["groups", "orders"])[0]["name"], "audit");
    done(url, &["delete-stream", "orders", "--yes"]);
    assert_eq!(json(url, &["streams"]), json!([]));
}

fn the_market_goes_in_and_comes_out(url: &str) {
    done(url, &["create-stream", "market", "--partitions", "4"]);
    done(url, &["create-group", "market", "report"]);
    assert_eq!(json(url, &["append", "market", "--ndjson", MARKET])["appended"], 560);
    let found = done(url, &["--json", "query", "market", "price>0", "--limit", "1000"]);
    assert_eq!(found.lines().count(), 560);
    let consume = ["consume", "market", "report", "--until-drained", "--concurrency", "8"];
    let handled = done(url, &[&consume[..], &["--exec", "cat"]].concat());
    let mut handled: Vec<&str> = handled.lines().collect();
    handled.sort_unstable();
    handled.dedup();
    assert_eq!(handled.len(), 560);
    done(url, &["delete-stream", "market", "--yes"]);
}

//! Reading by sequence, and the order and limits of queries: laws Q1 and Q2.

use rheo_core::{Condition, ErrorKind, Event, Field, Filter, GroupOptions, NewEvent, Query, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, failure, fetch, numbered};

case_table! {
    "read.it_goes_by_sequence" [Q1] => it_goes_by_sequence;
    "read.it_sees_its_partition_only" [Q1] needs [Partitions] => it_sees_its_partition_only;
    "read.it_touches_no_group" [Q1] => it_touches_no_group;
    "query.its_order_is_sequence_then_partition" [Q2 Q4] needs [Partitions]
        => its_order_is_sequence_then_partition;
    "query.limits_are_1_to_10000" [Q1 Q2] => limits_are_1_to_10000;
    "query.the_first_of_many_are_found" [Q2] => the_first_of_many_are_found;
    "query.what_no_event_can_meet_is_invalid" [Q2] => what_no_event_can_meet_is_invalid;
}

fn told(events: &[Event]) -> Vec<u64> {
    events.iter().map(Event::sequence).collect()
}

/// The sequences that a query finds in stream `s`.
pub(super) async fn found(rheo: &Rheo, query: Query) -> Vec<u64> {
    told(&rheo.query("s", &query).await.expect("it finds"))
}

/// The positions, as (partition, sequence), that a query finds in stream `s`.
async fn positions(rheo: &Rheo, query: Query) -> Vec<(u32, u64)> {
    let events = rheo.query("s", &query).await.expect("it finds");
    events.iter().map(|one| (one.partition(), one.sequence())).collect()
}

/// A stream `s` of one partition with these events.
pub(super) async fn with_events(trial: &Trial, events: Vec<NewEvent>) -> (Rheo, Vec<Event>) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let stored = rheo.append_batch("s", events).await.expect("they are appended");
    (rheo, stored)
}

/// A read returns the events after a sequence, as many as asked for.
async fn it_goes_by_sequence(trial: Trial) {
    let (rheo, stored) = with_events(&trial, numbered(5)).await;
    let table = [(0, 10, 0..5), (0, 2, 0..2), (2, 2, 2..4), (4, 9, 4..5), (5, 1, 0..0)];
    for (after, limit, expected) in table {
        let events = rheo.read("s", 0, after, limit).await.expect("it reads");
        assert_eq!(events, stored[expected], "after {after}, limit {limit}");
    }
    for beyond in [6, 1000, u64::MAX - 1, u64::MAX] {
        assert_eq!(rheo.read("s", 0, beyond, 1).await.expect("it reads"), []);
    }
}

/// A read of one partition returns none of another's events.
async fn it_sees_its_partition_only(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    let first = append_to(&rheo, 0, 2).await;
    let last = append_to(&rheo, 2, 3).await;
    for (partition, expected) in [(0, first), (1, vec![]), (2, last)] {
        assert_eq!(rheo.read("s", partition, 0, 10).await.expect("it reads"), expected);
    }
}

/// Reading, by sequence or by query, neither moves nor claims anything.
async fn it_touches_no_group(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    let before = rheo.group_info("s", "g").await.expect("it tells");
    rheo.read("s", 0, 0, 10).await.expect("it reads");
    rheo.query("s", &Query::new()).await.expect("it finds");
    rheo.query_page("s", &Query::new(), None).await.expect("it finds");
    assert_eq!(rheo.group_info("s", "g").await.expect("it tells"), before);
    rheo.ack(&delivery).await.expect("the lease is current");
}

/// Ascending goes by sequence, then by partition; descending is its reverse;
/// a limit cuts from where the order begins.
async fn its_order_is_sequence_then_partition(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    for (partition, count) in [(2, 3), (0, 1), (1, 2)] {
        append_to(&rheo, partition, count).await;
    }
    let order = [(0, 1), (1, 1), (2, 1), (1, 2), (2, 2), (2, 3)];
    for limit in 1..=7 {
        let forth: Vec<_> = order.into_iter().take(limit).collect();
        let back: Vec<_> = order.into_iter().rev().take(limit).collect();
        assert_eq!(positions(&rheo, Query::new().limit(limit)).await, forth);
        assert_eq!(positions(&rheo, Query::new().descending().limit(limit)).await, back);
        let turned = Query::new().descending().ascending().limit(limit);
        assert_eq!(positions(&rheo, turned).await, forth);
    }
}

/// A query returns 100 events unless it says otherwise; limits of queries and
/// reads are 1 to 10 000.
async fn limits_are_1_to_10000(trial: Trial) {
    let (rheo, _) = with_events(&trial, numbered(101)).await;
    assert_eq!(found(&rheo, Query::new()).await, (1..=100).collect::<Vec<_>>());
    for limit in [0, 10_001, usize::MAX] {
        let query = Query::new().limit(limit);
        let told = [
            failure(rheo.query("s", &query).await),
            failure(rheo.query_page("s", &query, None).await),
            failure(rheo.read("s", 0, 0, limit).await),
        ];
        assert_eq!(told, [ErrorKind::Invalid; 3]);
    }
    assert_eq!(found(&rheo, Query::new().limit(10_000)).await.len(), 101);
    assert_eq!(rheo.read("s", 0, 0, 10_000).await.expect("it reads").len(), 101);
}

/// Of many that match the first are found, and a rare one among many others is.
async fn the_first_of_many_are_found(trial: Trial) {
    let event =
        |n: u64| NewEvent::new(if n == 2999 { "rare" } else { "common" }, json!({ "n": n % 7 }));
    let (rheo, _) = with_events(&trial, (1..=3000).map(event).collect()).await;
    assert_eq!(found(&rheo, Query::new().event_type("rare")).await, [2999]);
    assert_eq!(found(&rheo, Query::new().payload("n", 3).limit(3)).await, [3, 10, 17]);
    let last = Query::new().payload("n", 3).descending().limit(3);
    assert_eq!(found(&rheo, last).await, [2999, 2992, 2985]);
    let all = found(&rheo, Query::new().event_type("common").limit(10_000)).await;
    assert_eq!((all.len(), all[2998]), (2999, 3000));
}

/// A value of a kind that its field never has makes the query invalid.
async fn what_no_event_can_meet_is_invalid(trial: Trial) {
    let (rheo, _) = with_events(&trial, numbered(1)).await;
    let refused = [
        (Field::Id, json!("7")),
        (Field::Timestamp, json!("noon")),
        (Field::Timestamp, json!(0)),
        (Field::Partition, json!("0")),
        (Field::Sequence, json!(null)),
        (Field::Key, json!("a\0")),
        (Field::payload(["\0"]), json!(1)),
        (Field::payload(["a"]), json!({"\0": 1})),
    ];
    for (field, value) in refused {
        let query = Query::new().filter(Filter::new(field, Condition::Equals(value)));
        assert_eq!(failure(rheo.query("s", &query).await), ErrorKind::Invalid, "{query:?}");
        assert_eq!(failure(rheo.query_page("s", &query, None).await), ErrorKind::Invalid);
    }
}

//! Finding by each field and each condition: law Q2.

use std::time::Duration;

use rheo_core::{Condition, Event, Field, Filter, Lineage, NewEvent, Query};
use serde_json::json;
use uuid::Uuid;

use super::reading::{found, with_events};
use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, numbered};

case_table! {
    "query.by_id" [Q2] => by_id;
    "query.by_type" [Q2] => by_type;
    "query.by_key" [Q2] => by_key;
    "query.by_partition" [Q2] needs [Partitions] => by_partition;
    "query.by_time" [Q2] => by_time;
    "query.by_sequence" [Q2] => by_sequence;
    "query.by_lineage" [Q2] => by_lineage;
    "query.by_metadata_and_payload" [Q2] => by_metadata_and_payload;
    "query.by_every_condition" [Q2] => by_every_condition;
    "query.all_conditions_must_hold" [Q2] => all_conditions_must_hold;
}

/// An event is found by its id, however that is written.
async fn by_id(trial: Trial) {
    let (rheo, stored) = with_events(&trial, numbered(3)).await;
    assert_eq!(found(&rheo, Query::new().id(stored[1].id())).await, [2]);
    assert_eq!(found(&rheo, Query::new().id(Uuid::nil())).await, [0; 0]);
    let id = stored[2].id();
    let written = [id.to_string(), id.to_string().to_uppercase(), id.simple().to_string()];
    for text in written {
        let filter = Filter::new(Field::Id, Condition::In(vec![json!(text)]));
        assert_eq!(found(&rheo, Query::new().filter(filter)).await, [3], "{text}");
    }
}

/// Events are found by one type or by several, told apart byte for byte.
async fn by_type(trial: Trial) {
    let types = ["a", "A", "b", "a ", "a", "á"];
    let events = types.map(|event_type| NewEvent::new(event_type, 1)).into();
    let (rheo, _) = with_events(&trial, events).await;
    assert_eq!(found(&rheo, Query::new().event_type("a")).await, [1, 5]);
    assert_eq!(found(&rheo, Query::new().event_types(["a ", "b", "b", "none"])).await, [3, 4]);
    assert_eq!(found(&rheo, Query::new().event_types([""; 0])).await, [0; 0]);
    assert_eq!(found(&rheo, Query::new().event_type("a%")).await, [0; 0]);
}

/// Events are found by their key; those without one by no condition on it.
async fn by_key(trial: Trial) {
    let keys = [Some("k"), None, Some(""), Some("K"), Some("k"), Some("k ")];
    let event = |key: Option<&str>| match key {
        Some(key) => NewEvent::new("t", 1).key(key),
        None => NewEvent::new("t", 1),
    };
    let (rheo, _) = with_events(&trial, keys.map(event).into()).await;
    assert_eq!(found(&rheo, Query::new().key("k")).await, [1, 5]);
    assert_eq!(found(&rheo, Query::new().key("")).await, [3]);
    let on_key = |condition| Query::new().filter(Filter::new(Field::Key, condition));
    assert_eq!(found(&rheo, on_key(Condition::Exists)).await, [1, 3, 4, 5, 6]);
    assert_eq!(found(&rheo, on_key(Condition::LessOrEqual(json!("k")))).await, [1, 3, 4, 5]);
    assert_eq!(found(&rheo, on_key(Condition::Equals(json!(null)))).await, [0; 0]);
}

/// Events are found by one partition, by several, by none.
async fn by_partition(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    for partition in 0..3 {
        append_to(&rheo, partition, 2).await;
    }
    let on_partition = |condition| Filter::new(Field::Partition, condition);
    let table = [
        (Query::new().partition(1), vec![1, 1]),
        (Query::new().partitions([2, 0, 2]), vec![0, 2, 0, 2]),
        (Query::new().partitions([]), vec![]),
        (Query::new().partitions([0, 1]).partition(1), vec![1, 1]),
        (Query::new().filter(on_partition(Condition::Greater(json!(0.5)))), vec![1, 2, 1, 2]),
        (Query::new().filter(on_partition(Condition::Equals(json!(7)))), vec![]),
    ];
    for (query, expected) in table {
        let events = rheo.query("s", &query).await.expect("it finds");
        let partitions: Vec<u32> = events.iter().map(Event::partition).collect();
        assert_eq!(partitions, expected, "{query:?}");
    }
}

/// A range of time begins with its first instant and ends before its last, to
/// the microsecond.
async fn by_time(trial: Trial) {
    let (rheo, _) = with_events(&trial, vec![]).await;
    let start = trial.clock().now();
    for _ in 0..4 {
        append_to(&rheo, 0, 1).await;
        trial.clock().advance(Duration::from_micros(1));
    }
    let at = |micros| start + Duration::from_micros(micros);
    assert_eq!(found(&rheo, Query::new().since(at(1)).before(at(3))).await, [2, 3]);
    assert_eq!(found(&rheo, Query::new().since(at(3))).await, [4]);
    assert_eq!(found(&rheo, Query::new().before(at(1))).await, [1]);
    assert_eq!(found(&rheo, Query::new().since(at(4))).await, [0; 0]);
    let by = |condition| Query::new().filter(Filter::new(Field::Timestamp, condition));
    let instant = json!(at(2).to_string().replace('Z', "+00:00"));
    assert_eq!(found(&rheo, by(Condition::Equals(instant.clone()))).await, [3]);
    assert_eq!(found(&rheo, by(Condition::Greater(instant.clone()))).await, [4]);
    assert_eq!(found(&rheo, by(Condition::LessOrEqual(instant))).await, [1, 2, 3]);
}

/// A range of sequences is open below and closed above, as far as it goes.
async fn by_sequence(trial: Trial) {
    let (rheo, _) = with_events(&trial, numbered(6)).await;
    let query = Query::new;
    assert_eq!(found(&rheo, query().after_sequence(2).until_sequence(4)).await, [3, 4]);
    assert_eq!(found(&rheo, query().after_sequence(5)).await, [6]);
    assert_eq!(found(&rheo, query().until_sequence(1)).await, [1]);
    assert_eq!(found(&rheo, query().until_sequence(0)).await, [0; 0]);
    assert_eq!(found(&rheo, query().after_sequence(4).until_sequence(4)).await, [0; 0]);
    assert_eq!(found(&rheo, query().after_sequence(u64::MAX)).await, [0; 0]);
    assert_eq!(found(&rheo, query().until_sequence(u64::MAX).descending().limit(2)).await, [6, 5]);
    let filter = Filter::new(Field::Sequence, Condition::In(vec![json!(2.0), json!(5), json!(9)]));
    assert_eq!(found(&rheo, query().filter(filter)).await, [2, 5]);
}

/// Each part of the lineage is found by its name.
async fn by_lineage(trial: Trial) {
    let lineages = [
        Lineage::default().correlation_id("x"),
        Lineage::default().causation_id("x"),
        Lineage::default().producer("x"),
        Lineage::default().schema("x"),
        Lineage::default().schema_version("x"),
    ];
    let mut events: Vec<_> =
        lineages.iter().map(|lineage| NewEvent::new("t", 1).lineage(lineage)).collect();
    events.push(NewEvent::new("x", "x").key("x").metadata("other", "x"));
    events.push(NewEvent::new("t", 1).metadata("producer", 7));
    let (rheo, _) = with_events(&trial, events).await;
    assert_eq!(found(&rheo, Query::new().correlation_id("x")).await, [1]);
    assert_eq!(found(&rheo, Query::new().causation_id("x")).await, [2]);
    assert_eq!(found(&rheo, Query::new().producer("x")).await, [3]);
    assert_eq!(found(&rheo, Query::new().schema("x")).await, [4]);
    assert_eq!(found(&rheo, Query::new().schema_version("x")).await, [5]);
    assert_eq!(found(&rheo, Query::new().producer("7")).await, [0; 0]);
    assert_eq!(found(&rheo, Query::new().metadata("producer", 7)).await, [7]);
}

/// A name is one key at the top, whatever it holds; a path goes deeper, key by
/// key, through objects only.
async fn by_metadata_and_payload(trial: Trial) {
    let documents = [
        json!({"a": {"b": 1}}),
        json!({"a.b": 1}),
        json!({"": 1, "$a": 1, "a": [{"b": 1}]}),
        json!({"A": {"b": 1}, "a": "b"}),
        json!({"a": {"": {"'\"\\": 1}}}),
    ];
    let event = |document: &serde_json::Value| {
        let fields = document.as_object().expect("it is one").clone();
        let event = NewEvent::new("t", document);
        fields.into_iter().fold(event, |event, (name, value)| event.metadata(name, value))
    };
    let (rheo, _) = with_events(&trial, documents.iter().map(event).collect()).await;
    let table: [(&[&str], &[u64]); 8] = [
        (&["a", "b"], &[1]),
        (&["a.b"], &[2]),
        (&[""], &[3]),
        (&["$a"], &[3]),
        (&["A", "b"], &[4]),
        (&["a", "", "'\"\\"], &[5]),
        (&["a", "0", "b"], &[]),
        (&["b"], &[]),
    ];
    for (path, expected) in table {
        for field in [Field::metadata(path.to_vec()), Field::payload(path.to_vec())] {
            let filter = Filter::new(field, Condition::Equals(json!(1)));
            assert_eq!(found(&rheo, Query::new().filter(filter)).await, expected, "{path:?}");
        }
        let [name] = path else { continue };
        assert_eq!(found(&rheo, Query::new().payload(*name, 1)).await, expected);
        assert_eq!(found(&rheo, Query::new().metadata(*name, 1)).await, expected);
    }
}

/// Each of the conditions finds what it says.
async fn by_every_condition(trial: Trial) {
    let events = [1, 2, 3, 4].map(|n| NewEvent::new("t", json!({ "n": n }))).into_iter();
    let events = events.chain([NewEvent::new("t", json!({"n": null})), NewEvent::new("t", 7)]);
    let (rheo, _) = with_events(&trial, events.collect()).await;
    let table = [
        (Condition::Equals(json!(2)), vec![2]),
        (Condition::In(vec![json!(4), json!(1), json!(9)]), vec![1, 4]),
        (Condition::In(vec![]), vec![]),
        (Condition::Less(json!(2)), vec![1]),
        (Condition::LessOrEqual(json!(2)), vec![1, 2]),
        (Condition::Greater(json!(2)), vec![3, 4]),
        (Condition::GreaterOrEqual(json!(2)), vec![2, 3, 4]),
        (Condition::Exists, vec![1, 2, 3, 4, 5]),
    ];
    for (condition, expected) in table {
        let filter = Filter::new(Field::payload(["n"]), condition.clone());
        assert_eq!(found(&rheo, Query::new().filter(filter)).await, expected, "{condition:?}");
    }
}

/// An event is found where all conditions hold, two on one field included.
async fn all_conditions_must_hold(trial: Trial) {
    let event = |n: u32| {
        NewEvent::new(["a", "b"][n as usize % 2], json!({ "n": n })).key(["k", "l"][n as usize / 4])
    };
    let (rheo, _) = with_events(&trial, (0..8).map(event).collect()).await;
    assert_eq!(found(&rheo, Query::new().event_type("a").key("l")).await, [5, 7]);
    assert_eq!(found(&rheo, Query::new().event_type("a").event_type("b")).await, [0; 0]);
    let on_n = |condition| Filter::new(Field::payload(["n"]), condition);
    let query = Query::new()
        .filter(on_n(Condition::Greater(json!(1))))
        .filter(on_n(Condition::Less(json!(6))))
        .event_type("b")
        .after_sequence(4);
    assert_eq!(found(&rheo, query).await, [6]);
}

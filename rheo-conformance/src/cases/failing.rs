//! Failing: laws E1 and E2.

use std::collections::HashSet;
use std::error::Error as _;
use std::time::Duration;

use futures::FutureExt;
use rheo_core::{
    Confirm, Effect, Error, ErrorKind, FetchOptions, GroupOptions, Guarantee, NewEvent, Outcome,
    Position, Query, Receipt, Result, Retry, Rheo, Start,
};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::operations::{Needs, operations};
use crate::outage::Fault;
use crate::trial::{append_to, fetch, sequences};

case_table! {
    "failing.a_missing_stream_is_told_by_every_operation" [E1 S2] => a_missing_stream_is_told;
    "failing.a_missing_group_is_told_by_every_operation" [E1 S2] => a_missing_group_is_told;
    "failing.an_ended_lease_is_told_by_every_operation" [E1 L1] => an_ended_lease_is_told;
    "failing.each_refusal_has_its_kind" [E1] => each_refusal_has_its_kind;
    "failing.settings_are_checked_at_the_start" [E1] => settings_are_checked_at_the_start;
    "failing.a_conflict_is_retried_a_bounded_number_of_times" [E1] => conflicts_are_retried;
    "failing.a_write_that_was_perhaps_done_is_not_done_twice" [E1] => no_write_is_done_twice;
    "failing.messages_show_no_payload" [E1] => messages_show_no_payload;
    "failing.messages_show_no_fencing_token" [E1] => messages_show_no_fencing_token;
    "failing.a_dropped_wait_harms_nothing" [E2] => a_dropped_wait_harms_nothing;
    "failing.a_dropped_fetch_comes_back_by_expiry" [E2] => a_dropped_fetch_comes_back;
}

/// An error that says: it will be the same again, and nothing was done.
#[track_caller]
fn assert_refused(error: &Error, kind: ErrorKind, operation: &str) {
    assert_eq!(error.operation(), operation, "{error}");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.retry(), Retry::Never, "{error}");
    assert_eq!(error.effect(), Effect::NotApplied, "{error}");
}

/// Every operation that names a stream says that it is missing.
async fn a_missing_stream_is_told(trial: Trial) {
    let rheo = trial.rheo().await;
    for operation in operations(&rheo, "nowhere", "g", None) {
        if operation.needs != Needs::Nothing {
            let error = operation.call.await.expect_err(operation.name);
            assert_refused(&error, ErrorKind::StreamNotFound, operation.name);
        }
    }
}

/// Every operation that names a group says that it is missing.
async fn a_missing_group_is_told(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    for operation in operations(&rheo, "s", "nobody", None) {
        if operation.needs == Needs::Group {
            let error = operation.call.await.expect_err(operation.name);
            assert_refused(&error, ErrorKind::GroupNotFound, operation.name);
        }
    }
}

/// Every operation on a lease says that it has ended, or that the receipt is
/// not its own.
async fn an_ended_lease_is_told(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 2).await;
    let deliveries = fetch(&rheo, 2).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    let mismatched = deliveries[1].lease.clone().with_receipt(Receipt::entry("another"));
    let tried =
        [(&deliveries[0].lease, ErrorKind::StaleLease), (&mismatched, ErrorKind::ReceiptMismatch)];
    for (lease, kind) in tried {
        for operation in operations(&rheo, "s", "g", Some(lease)) {
            if operation.needs == Needs::Lease {
                let error = operation.call.await.expect_err(operation.name);
                assert_refused(&error, kind, operation.name);
            }
        }
    }
}

/// What is refused says so by its kind, and that nothing was done.
async fn each_refusal_has_its_kind(trial: Trial) {
    use ErrorKind::{AlreadyExists, ConfirmRequired, CursorNotFound, EventTooLarge, Invalid};
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let large = || NewEvent::new("large", "x".repeat(1 << 20));
    let no_type = NewEvent::new("", json!(1));
    let after = Some(Position::new(0, 1));
    let fetched = |options| rheo.fetch("s", "g", 1, options);
    let none = || FetchOptions::default();
    let refusals: Vec<(&str, ErrorKind, Result<()>)> = vec![
        ("create_stream", AlreadyExists, rheo.create_stream("s", 1).await),
        ("create_group", AlreadyExists, rheo.create_group("s", "g", GroupOptions::default()).await),
        ("create_stream", Invalid, rheo.create_stream("t", 0).await),
        ("create_stream", Invalid, rheo.create_stream("", 1).await),
        ("delete_stream", ConfirmRequired, rheo.delete_stream("s", Confirm::No).await),
        ("delete_group", ConfirmRequired, rheo.delete_group("s", "g", Confirm::No).await),
        (
            "reset_group",
            ConfirmRequired,
            rheo.reset_group("s", "g", Confirm::No, Start::Beginning).await,
        ),
        ("dead_letters", CursorNotFound, rheo.dead_letters("s", "g", 1, after).await.map(drop)),
        ("dead_letters", Invalid, rheo.dead_letters("s", "g", 0, None).await.map(drop)),
        ("append", EventTooLarge, rheo.append("s", large()).await.map(drop)),
        ("append_batch", EventTooLarge, rheo.append_batch("s", vec![large()]).await.map(drop)),
        ("append", Invalid, rheo.append("s", no_type).await.map(drop)),
        ("fetch", Invalid, rheo.fetch("s", "g", 0, none()).await.map(drop)),
        ("fetch", Invalid, fetched(none().lease(Duration::ZERO)).await.map(drop)),
        ("fetch", Invalid, fetched(none().partitions([1])).await.map(drop)),
        ("read", Invalid, rheo.read("s", 1, 0, 1).await.map(drop)),
        ("query", Invalid, rheo.query("s", &Query::new().limit(0)).await.map(drop)),
        (
            "query_page",
            Invalid,
            rheo.query_page("s", &Query::new().descending(), None).await.map(drop),
        ),
    ];
    for (operation, kind, result) in refusals {
        assert_refused(&result.expect_err(operation), kind, operation);
    }
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// An instance does not start with settings out of range, or without what it requires.
async fn settings_are_checked_at_the_start(trial: Trial) {
    let limit = trial.capabilities().await.limits.event_bytes;
    let wrong = [
        trial.builder().await.lease(Duration::ZERO),
        trial.builder().await.timeout(Duration::ZERO),
        trial.builder().await.max_attempts(0),
        trial.builder().await.max_demand(0),
        trial.builder().await.event_bytes(limit + 1),
    ];
    for builder in wrong {
        let error = builder.build().await.expect_err("a setting is out of range");
        assert_refused(&error, ErrorKind::Config, "build");
    }
    let claimed = trial.capabilities().await.guarantees;
    for &guarantee in Guarantee::ALL {
        let built = trial.builder().await.require(guarantee).build().await;
        assert_eq!(built.is_ok(), claimed.get(guarantee), "{guarantee}");
        if let Err(error) = built {
            assert_refused(&error, ErrorKind::Unsupported, "build");
        }
    }
}

/// A conflict surfaces only after some retries, and says that another may help.
async fn conflicts_are_retried(trial: Trial) {
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    rheo.create_stream("s", 1).await.expect("the stream is new");
    line.fail(Fault::Refused(ErrorKind::Conflict));
    let appended = rheo.append("s", NewEvent::new("t", json!(1))).await;
    let error = appended.expect_err("all tries meet a conflict");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Conflict, "append"));
    assert_eq!((error.retry(), error.effect()), (Retry::Now, Effect::NotApplied));
    let tries = line.calls("append");
    assert!((2..=10).contains(&tries), "it was tried {tries} times");
    line.mend();
    let event = rheo.append("s", NewEvent::new("t", json!(1))).await.expect("no conflict is left");
    assert_eq!(event.sequence(), 1);
}

/// Where the answer to a write was lost, it is for the caller to try again.
async fn no_write_is_done_twice(trial: Trial) {
    let (builder, line) = trial.builder_on_a_line().await;
    let rheo = builder.build().await.expect("the store is made ready");
    rheo.create_stream("s", 1).await.expect("the stream is new");
    line.fail(Fault::AnswerLost);
    let appended = rheo.append("s", NewEvent::new("t", json!(1))).await;
    let error = appended.expect_err("its answer is lost");
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Unavailable, "append"));
    assert_eq!((error.retry(), error.effect()), (Retry::After, Effect::Unknown));
    line.mend();
    let stored = rheo.read("s", 0, 0, 10).await.expect("the stream is there");
    assert_eq!(stored.len(), 1);
}

/// Neither errors nor the debug output of events show payload or metadata.
async fn messages_show_no_payload(trial: Trial) {
    const MARKER: &str = "a-payload-nobody-may-see";
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let secret = || NewEvent::new("t", json!({ "secret": MARKER })).metadata("secret", MARKER);
    let too_deep = (0..70).fold(json!(MARKER), |inner, _| json!([inner]));
    let refused = [
        NewEvent::new("t", json!({ "secret": format!("{MARKER}\0") })),
        NewEvent::new("t", json!({ MARKER: "\0" })),
        NewEvent::new("t", too_deep),
        NewEvent::new("t", json!([MARKER, "x".repeat(1 << 20)])),
        NewEvent::new("t", json!(1)).metadata("secret", format!("{MARKER}\0")),
        secret().partition(7),
        secret().key("k\0"),
    ];
    let mut shown: Vec<String> = Vec::new();
    for event in refused {
        shown.push(format!("{event:?}"));
        shown.push(everything_about(&rheo.append("s", event).await.expect_err("it is refused")));
    }
    shown.push(format!("{:?}", secret()));
    let event = rheo.append("s", secret()).await.expect("it is stored");
    assert_eq!(event.payload(), json!({ "secret": MARKER }));
    shown.push(format!("{event:?} {:?}", event.body()));
    let no_number = event.payload_as::<u64>().expect_err("it is an object");
    let no_numbers = event.payload_as::<std::collections::HashMap<String, u64>>();
    shown.push(everything_about(&no_number));
    shown.push(everything_about(&no_numbers.expect_err("it holds a string")));
    let delivery = fetch(&rheo, 1).await.remove(0);
    shown.push(format!("{delivery:?}"));
    rheo.reject(&delivery, "never").await.expect("the lease is current");
    let answers = rheo.settle([(&delivery, Outcome::Ack)]).await;
    shown.extend(answers.into_iter().map(|answer| everything_about(&answer.expect_err("stale"))));
    shown.push(format!("{:?}", rheo.dead_letters("s", "g", 1, None).await));
    shown.push(format!("{rheo:?}"));
    for text in shown {
        assert!(!text.contains(MARKER), "{text}");
    }
}

/// Whoever reads a log cannot settle the leases that it tells of.
async fn messages_show_no_fencing_token(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 1).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    let token = delivery.lease.lease_id().to_string();
    let secret = token.split('-').next().unwrap_or(&token);
    rheo.ack(&delivery).await.expect("the lease is current");
    let stale = rheo.ack(&delivery).await.expect_err("it is settled");
    for text in [everything_about(&stale), format!("{delivery:?}"), format!("{rheo:?}")] {
        assert!(!text.contains(secret), "{text}");
    }
}

/// An error's message, its debug output, and those of its sources.
fn everything_about(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(" {cause} {cause:?}");
        source = cause.source();
    }
    text
}

/// Waits that were given up leave the client usable, and later answers right.
async fn a_dropped_wait_harms_nothing(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let mut rng = trial.rng();
    for n in 1..=30 {
        let wait = rheo.wait("s", "g", Duration::from_secs(60));
        // Dropped at its first await, or a little later.
        let _ = tokio::time::timeout(Duration::from_micros(rng.u64(0..500)), wait).await;
        let event = rheo.append("s", NewEvent::new("t", json!(n))).await.expect("it is appended");
        assert_eq!((event.sequence(), event.payload()), (n, json!(n)));
        let delivery = fetch(&rheo, 1).await.remove(0);
        assert_eq!(delivery.event, event);
        rheo.ack(&delivery).await.expect("the lease is current");
    }
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// What fetches that were dropped at their first await had claimed is handed
/// out after its lease has expired.
async fn a_dropped_fetch_comes_back(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 20).await;
    for _ in 0..10 {
        let options = FetchOptions::default().lease(Duration::from_secs(5));
        drop(rheo.fetch("s", "g", 2, options).now_or_never());
    }
    let mut delivered = HashSet::new();
    let came_back = async {
        // A store may carry a dropped claim out later, so look more than once.
        while delivered.len() < 20 {
            trial.advance_secs(6);
            for delivery in settle_all(&rheo).await {
                assert!(delivered.insert(delivery), "{delivery} came again after its ack");
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(10), came_back).await;
    assert!(in_time.is_ok(), "only {} of 20 events came back", delivered.len());
    assert_eq!(rheo.lag("s", "g").await.expect("the group is there").total(), 0);
}

/// Fetches and acks what there is, and returns the sequences.
async fn settle_all(rheo: &Rheo) -> Vec<u64> {
    let deliveries = fetch(rheo, 100).await;
    let acks = deliveries.iter().map(|delivery| (delivery, Outcome::Ack));
    for answer in rheo.settle(acks).await {
        answer.expect("the lease is current");
    }
    sequences(&deliveries)
}

//! What operators see: counters, histograms, gauges and log lines of a run
//! with successes and failures, and never a payload in them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshot};
use rheo_core::{Confirm, Delivery, FetchOptions, GroupOptions, NewEvent, Outcome, Query, Rheo};
use serde_json::json;

const SECRET: &str = "a-payload-nobody-may-see";

/// Log lines, kept.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Appends, fetches, settles in every way, fails, and runs a consumer whose
/// stream is deleted under it.
async fn run() -> rheo_core::Result<()> {
    let rheo = Rheo::builder(rheo_ets::Memory::new()).build().await?;
    rheo.create_stream("s", 1).await?;
    rheo.create_group("s", "g", GroupOptions::default()).await?;
    let event = || NewEvent::new("t", json!({ SECRET: SECRET })).metadata("m", SECRET);
    rheo.append_batch("s", (0..4).map(|_| event()).collect()).await?;
    let outcomes =
        [Outcome::Ack, Outcome::retry("later"), Outcome::reject("never"), Outcome::Release];
    let deliveries = rheo.fetch("s", "g", 4, FetchOptions::default()).await?;
    let stale = deliveries[0].clone();
    rheo.settle(deliveries.iter().zip(outcomes)).await;
    rheo.ack(&stale).await.unwrap_err();
    rheo.query("s", &Query::new().payload(SECRET, SECRET)).await?;
    rheo.read("nowhere", 0, 0, 1).await.unwrap_err();

    let handler = async |delivery: Delivery| -> Result<(), String> {
        match delivery.event.sequence() {
            2 if delivery.lease.attempt() == 2 => panic!("for once"),
            _ => Ok(()),
        }
    };
    let consumer =
        rheo.consumer("s", "g").poll_interval(Duration::from_millis(1)).start(handler).await?;
    until(|| consumer.health().counts.acked == 2).await;
    rheo.delete_stream("s", Confirm::Yes).await?;
    until(|| consumer.health().last_error.is_some()).await;
    consumer.drain(Duration::from_secs(5)).await?;
    Ok(())
}

async fn until(condition: impl Fn() -> bool) {
    let come_true = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), come_true).await.expect("it comes true in time");
}

/// Each metric by its name and labels.
fn by_name(snapshot: Snapshot) -> BTreeMap<String, DebugValue> {
    let metrics = snapshot.into_vec().into_iter();
    metrics.map(|(key, _, _, value)| (key.key().to_string(), value)).collect()
}

#[test]
fn operators_see_what_happens_and_no_payload() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().expect("this binary has one test");
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("this binary has one test");

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(run()).unwrap();

    let metrics = by_name(snapshotter.snapshot());
    let counted = |name: &str| match metrics.get(name) {
        Some(DebugValue::Counter(count)) => *count,
        other => panic!("{name} is {other:?}; there are {:?}", metrics.keys()),
    };
    let events = |operation| counted(&format!("Key(rheo_events_total, [operation = {operation}])"));
    assert_eq!(events("append"), 4);
    assert_eq!((events("reject"), events("refused")), (1, 1));
    assert!(events("ack") >= 3 && events("retry") >= 2, "one retry by us, one by the panic");
    let missing = "Key(rheo_operations_total, [operation = read, result = stream not found])";
    assert_eq!(counted(missing), 1);
    assert!(
        counted("Key(rheo_operations_total, [operation = fetch, result = stream not found])") > 0
    );
    assert!(counted("Key(rheo_handler_outcomes_total, [outcome = ack])") >= 2);
    assert_eq!(counted("Key(rheo_handler_outcomes_total, [outcome = retry])"), 1);
    let leases = "Key(rheo_consumer_leases, [stream = s, group = g])";
    assert!(matches!(metrics.get(leases), Some(DebugValue::Gauge(open)) if open.0 == 0.0));
    let seconds = "Key(rheo_operation_seconds, [operation = append])";
    assert!(matches!(metrics.get(seconds), Some(DebugValue::Histogram(times)) if times.len() == 1));

    let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for seen in ["operation failed", "the handler panicked", "consuming goes on after"] {
        assert!(lines.contains(seen), "no line says {seen:?}:\n{lines}");
    }
    assert!(!lines.contains(SECRET), "{lines}");
    assert!(!format!("{metrics:?}").contains(SECRET));
}

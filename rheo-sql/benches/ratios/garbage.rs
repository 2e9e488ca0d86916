//! Dead rows of PostgreSQL's state tables, while a million events go by.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratios::{BATCH, claim_and_settle, events};
use rheo_core::{GroupOptions, Rheo};
use tokio::time::{Instant, sleep};

use crate::place::Place;

const PARTITIONS: u32 = 4;
const EVENTS: u64 = 1_000_000;
/// How long a snapshot is held open.
const HELD: Duration = Duration::from_secs(60);
const TABLES: [&str; 3] = ["rheo_partitions", "rheo_cursors", "rheo_runs"];

pub(crate) async fn measure(place: &Place) {
    let rheo = place.rheo().await;
    rheo.create_stream("garbage", PARTITIONS).await.expect("a new stream");
    rheo.create_group("garbage", "group", GroupOptions::default()).await.expect("a new group");
    let each = EVENTS / BATCH / u64::from(PARTITIONS);
    watched(place, "a million events appended and consumed", go_by(&rheo, each)).await;

    let mut holder = place.bare().await;
    holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM rheo_runs").await;
    let begun = Instant::now();
    let busy = async {
        let mut events = 0;
        while begun.elapsed() < HELD {
            events += go_by(&rheo, 250).await;
        }
        events
    };
    watched(place, "the same with a snapshot held open for a minute", busy).await;
    holder.run("COMMIT").await;
    let after = async {
        // Vacuum comes once in a minute.
        sleep(HELD).await;
        go_by(&rheo, 250).await
    };
    watched(place, "the minute after", after).await;
}

/// Appends batches to each partition while they are consumed; how many events.
async fn go_by(rheo: &Rheo, batches: u64) -> u64 {
    let count = batches * BATCH * u64::from(PARTITIONS);
    let appends = (0..PARTITIONS).map(|partition| {
        let rheo = rheo.clone();
        tokio::spawn(async move {
            for batch in 0..batches {
                let events = events(batch * BATCH, BATCH, partition);
                rheo.append_batch("garbage", events).await.expect("appended");
            }
        })
    });
    let appends: Vec<_> = appends.collect();
    let mut done = 0;
    while done < count {
        let (one, two) = tokio::join!(
            claim_and_settle(rheo, "garbage", "group"),
            claim_and_settle(rheo, "garbage", "group")
        );
        done += one + two;
    }
    for append in appends {
        append.await.expect("it ends well");
    }
    count
}

/// Prints the most dead rows and bytes that each table had meanwhile.
async fn watched(place: &Place, what: &str, busy: impl Future<Output = u64>) {
    let over = Arc::new(AtomicBool::new(false));
    let mut bare = place.bare().await;
    let watch = Arc::clone(&over);
    let watcher = tokio::spawn(async move {
        let mut most = [(0, 0); TABLES.len()];
        while !watch.load(Ordering::Relaxed) {
            for (most, table) in most.iter_mut().zip(TABLES) {
                let text = format!(
                    "SELECT n_dead_tup || ' ' || pg_total_relation_size(relid) \
                     FROM pg_stat_user_tables WHERE relname = '{table}'"
                );
                let line = bare.lines(&text).await.join("");
                let (dead, bytes) = line.split_once(' ').unwrap_or_default();
                let number = |text: &str| text.parse::<u64>().unwrap_or_default();
                *most = (most.0.max(number(dead)), most.1.max(number(bytes)));
            }
            sleep(Duration::from_millis(250)).await;
        }
        most
    });
    let events = busy.await;
    over.store(true, Ordering::Relaxed);
    let most = watcher.await.expect("it ends well");
    let tables = TABLES
        .iter()
        .zip(most)
        .map(|(table, (dead, bytes))| format!("{table} {dead} ({} kB)", bytes / 1024));
    let tables: Vec<_> = tables.collect();
    println!("\nDead rows at most, {what} ({events} events): {}", tables.join(", "));
}

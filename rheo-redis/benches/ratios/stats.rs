//! What the server itself counts, for each event: its commands and the time
//! that they take there.

use ratios::{BATCH, claim, claim_and_settle, events};
use redis::cmd;
use rheo_core::Rheo;

use crate::bare::Bare;
use crate::consume::claim_and_ack;
use crate::events::bare_events;
use crate::place::Place;

const BATCHES: u64 = 500;
const SINGLES: u64 = 5000;

pub(crate) async fn measure(place: &Place) {
    let (rheo, mut bare) = (place.rheo_with("stats").await, place.bare().await);
    let log = place.bare_log("stats");
    bare.create(&log).await;
    println!("\nA function's time includes that of the commands it calls; so does `exec`.\n");
    println!("| work | side | command | calls an event | µs an event |");
    println!("|---|---|---|---:|---:|");
    batches(&rheo, &mut bare, &log).await;
    singles(&rheo, &mut bare, &log).await;
}

async fn batches(rheo: &Rheo, bare: &mut Bare, log: &str) {
    let mut count = Count::begin(bare, BATCHES * BATCH).await;
    for _ in 0..BATCHES {
        bare.append(log, &bare_events(0, BATCH)).await;
    }
    count.print(bare, "append of 100", "bare").await;
    for _ in 0..BATCHES {
        rheo.append_batch("stats", events(0, BATCH, 0)).await.expect("appended");
    }
    count.print(bare, "append of 100", "Rheo").await;
    for _ in 0..BATCHES {
        assert_eq!(claim_and_ack(bare, log).await, BATCH);
    }
    count.print(bare, "claim and settle of 100", "bare").await;
    for _ in 0..BATCHES {
        assert_eq!(claim_and_settle(rheo, "stats", "group").await, BATCH);
    }
    count.print(bare, "claim and settle of 100", "Rheo").await;
}

async fn singles(rheo: &Rheo, bare: &mut Bare, log: &str) {
    let mut count = Count::begin(bare, SINGLES).await;
    for event in &bare_events(0, SINGLES) {
        bare.append_one(log, event).await;
    }
    count.print(bare, "append of one", "bare").await;
    for event in events(0, SINGLES, 0) {
        rheo.append("stats", event).await.expect("appended");
    }
    count.print(bare, "append of one", "Rheo").await;
    let entries = bare.claim(log, SINGLES).await;
    let mut deliveries = Vec::new();
    while deliveries.len() < SINGLES as usize {
        deliveries.extend(claim(rheo, "stats", "group", BATCH).await);
    }
    count = Count::begin(bare, SINGLES).await;
    for entry in entries.chunks(1) {
        assert_eq!(bare.ack(log, entry).await, 1);
    }
    count.print(bare, "settle of one", "bare").await;
    for delivery in &deliveries {
        rheo.ack(delivery).await.expect("settled");
    }
    count.print(bare, "settle of one", "Rheo").await;
}

/// What the server has counted since this began, or was last printed.
struct Count {
    /// How many events the work is about.
    events: u64,
    processor: f64,
}

impl Count {
    async fn begin(bare: &mut Bare, events: u64) -> Self {
        bare.run::<()>(cmd("CONFIG").arg("RESETSTAT")).await;
        Self { events, processor: processor(bare).await }
    }

    /// Prints a line for each command, and begins anew.
    async fn print(&mut self, bare: &mut Bare, work: &str, side: &str) {
        let each = |number: f64| number / self.events as f64;
        let spent = processor(bare).await - self.processor;
        let told = bare.info("commandstats").await;
        let mut lines: Vec<_> = told
            .lines()
            .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'))
            .collect();
        lines.sort_unstable();
        for (command, numbers) in lines {
            if matches!(command, "info" | "config|resetstat") {
                continue;
            }
            let (calls, micros) = (each(number(numbers, "calls")), each(number(numbers, "usec")));
            println!("| {work} | {side} | {command} | {calls:.4} | {micros:.3} |");
        }
        println!("| {work} | {side} | all of the main thread | | {:.3} |", each(spent));
        *self = Self::begin(bare, self.events).await;
    }
}

/// How long the server's main thread has run, in microseconds.
async fn processor(bare: &mut Bare) -> f64 {
    let told = bare.info("cpu").await;
    let seconds = |name| {
        let line = told.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim_start_matches(':').trim().parse::<f64>().ok())
    };
    let parts = ["used_cpu_sys_main_thread", "used_cpu_user_main_thread"];
    parts.into_iter().filter_map(seconds).sum::<f64>() * 1e6
}

/// One of the numbers of a line such as `calls=5,usec=20,usec_per_call=4.00`.
fn number(numbers: &str, name: &str) -> f64 {
    let mut parts = numbers.split(',').filter_map(|part| part.split_once('='));
    let found = parts.find(|(key, _)| *key == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
}

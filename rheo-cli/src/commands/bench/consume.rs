//! Fetching and settling, and what consumes a group for other subjects as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rheo::{FetchOptions, GroupOptions, Outcome, Rheo};

use super::events::BATCH;
use super::measuring::{Turn, at_once, take_turns};
use super::report::{Row, Subject};
use super::setting::{Client, Log, Setting, fill_raw};
use crate::failure::Failure;

const CASES: [(&str, u64); 2] = [("fetch and settle 1", 1), ("fetch and settle 100", BATCH)];

pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let work = async |log: &Log| {
        setting.fill(&log.stream, 1, setting.events).await?;
        if let Some(client) = log.clients.first() {
            fill_raw(client, setting.events).await?;
        }
        let mut rows = Vec::new();
        for (measure, size) in CASES {
            rows.push(against_raw(setting, log, measure, size).await?);
        }
        Ok(rows)
    };
    setting.on_log("consume", 1, 1, work).await
}

async fn against_raw(
    setting: &Setting<'_>,
    log: &Log,
    measure: &str,
    size: u64,
) -> Result<Row, Failure> {
    let raw = async |_| match log.clients.first() {
        None => Ok(None),
        Some(client) => {
            client.lock().await.rewind().await?;
            at_once(vec![consume_raw(client.clone(), size)]).await.map(Some)
        }
    };
    let ours = async |run| {
        let group = format!("{size}-{run}");
        setting.rheo().create_group(&log.stream, &group, GroupOptions::default()).await?;
        let worker = Worker::new(setting.rheo(), &log.stream, &group, setting.events);
        at_once(vec![worker.consume(size)]).await
    };
    let turns = take_turns(setting.runs, raw, ours).await?;
    Ok(Row::of_rates(Subject::Consume, measure, turns))
}

async fn consume_raw(client: Client, size: u64) -> Result<u64, Failure> {
    let mut client = client.lock().await;
    let (turn, mut done) = (Turn::begin(), 0);
    while !turn.is_over() {
        match client.consume(size).await? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}

/// One of those that consume a group. Clones share what is left.
#[derive(Clone)]
pub(crate) struct Worker {
    rheo: Rheo,
    stream: String,
    group: String,
    left: Arc<AtomicU64>,
}

impl Worker {
    /// One for a group that has so many events before it.
    pub(crate) fn new(rheo: &Rheo, stream: &str, group: &str, left: u64) -> Self {
        Self {
            rheo: rheo.clone(),
            stream: stream.into(),
            group: group.into(),
            left: Arc::new(left.into()),
        }
    }

    /// Another one of the same group, which works with this handle.
    pub(crate) fn with(&self, rheo: Rheo) -> Self {
        Self { rheo, ..self.clone() }
    }

    /// Fetches and settles until nothing is left or the turn is over; how many
    /// events it did.
    pub(crate) async fn consume(self, size: u64) -> Result<u64, Failure> {
        let (turn, mut done) = (Turn::begin(), 0);
        while self.left.load(Ordering::Relaxed) > 0 && !turn.is_over() {
            let count = fetch_and_settle(&self.rheo, &self.stream, &self.group, size).await?;
            self.left.fetch_sub(count, Ordering::Relaxed);
            done += count;
        }
        Ok(done)
    }
}

/// Fetches up to so many events and acks them; how many there were.
pub(crate) async fn fetch_and_settle(
    rheo: &Rheo,
    stream: &str,
    group: &str,
    size: u64,
) -> Result<u64, Failure> {
    let deliveries = rheo.fetch(stream, group, size as usize, FetchOptions::default()).await?;
    if let [delivery] = &deliveries[..] {
        rheo.ack(delivery).await?;
        return Ok(1);
    }
    let acks = deliveries.iter().map(|delivery| (delivery, Outcome::Ack));
    for answer in rheo.settle(acks).await {
        answer?;
    }
    Ok(deliveries.len() as u64)
}

//! Appending: one event for each call, and a hundred.

use rheo::{NewEvent, Rheo};

use super::events::{BATCH, Plain, events, plain};
use super::measuring::{Turn, at_once, take_turns};
use super::report::{Row, Subject};
use super::setting::{Client, Log, Setting};
use crate::failure::Failure;

/// How events are appended.
struct Case {
    measure: &'static str,
    callers: u32,
    partitions: u32,
    /// How many events go in one call.
    size: u64,
}

const CASES: [Case; 4] = [
    Case { measure: "append, one after another", callers: 1, partitions: 1, size: 1 },
    Case { measure: "append, 32 callers at once", callers: 32, partitions: 1, size: 1 },
    Case { measure: "append 100", callers: 1, partitions: 1, size: BATCH },
    Case { measure: "append 100, 4 callers at once", callers: 4, partitions: 4, size: BATCH },
];

pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for case in &CASES {
        let work = async |log: &Log| against_raw(setting, case, log).await;
        rows.push(setting.on_log("append", case.partitions, case.callers, work).await?);
    }
    Ok(rows)
}

async fn against_raw(setting: &Setting<'_>, case: &Case, log: &Log) -> Result<Row, Failure> {
    let each = setting.events_of_a_turn() / u64::from(case.callers);
    let firsts = || (0..each.max(case.size)).step_by(case.size as usize);
    let raw = async |_| match log.clients.is_empty() {
        true => Ok(None),
        false => {
            let task = |client: &Client| {
                let batches = firsts().map(|first| plain(first, case.size)).collect();
                append_raw(client.clone(), batches)
            };
            at_once(log.clients.iter().map(task).collect()).await.map(Some)
        }
    };
    let ours = async |_| {
        let task = |caller: u32| {
            let partition = caller % case.partitions;
            let batches = firsts().map(|first| events(first, case.size, partition)).collect();
            append(setting.rheo().clone(), log.stream.clone(), batches)
        };
        at_once((0..case.callers).map(task).collect()).await
    };
    let turns = take_turns(setting.runs, raw, ours).await?;
    Ok(Row::of_rates(Subject::Append, case.measure, turns))
}

/// How many events were appended before the turn was over.
async fn append(rheo: Rheo, stream: String, batches: Vec<Vec<NewEvent>>) -> Result<u64, Failure> {
    let (turn, mut done) = (Turn::begin(), 0);
    for mut batch in batches {
        if turn.is_over() {
            break;
        }
        done += batch.len() as u64;
        match (batch.len(), batch.pop()) {
            (1, Some(event)) => drop(rheo.append(&stream, event).await?),
            (_, last) => {
                batch.extend(last);
                rheo.append_batch(&stream, batch).await?;
            }
        }
    }
    Ok(done)
}

async fn append_raw(client: Client, batches: Vec<Vec<Plain>>) -> Result<u64, Failure> {
    let mut client = client.lock().await;
    let (turn, mut done) = (Turn::begin(), 0);
    for batch in batches {
        if turn.is_over() {
            break;
        }
        client.append(&batch).await?;
        done += batch.len() as u64;
    }
    Ok(done)
}

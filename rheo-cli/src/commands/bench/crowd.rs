//! Several groups on one stream, and several workers on one group.

use rheo::GroupOptions;

use super::consume::Worker;
use super::events::BATCH;
use super::measuring::{at_once, take_turns};
use super::report::{Row, Subject};
use super::setting::{Log, Setting};
use crate::failure::Failure;

const GROUPS: u32 = 4;
const PARTITIONS: u32 = 4;
const WORKERS: [u32; 2] = [1, 2];

/// Each group sees all events; what counts is how many all groups handle together.
pub(crate) async fn groups(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let work = async |log: &Log| {
        setting.fill(&log.stream, 1, setting.events).await?;
        let ours = async |run| {
            let mut tasks = Vec::new();
            for number in 0..GROUPS {
                let group = format!("{run}-{number}");
                setting.rheo().create_group(&log.stream, &group, GroupOptions::default()).await?;
                let worker = Worker::new(setting.rheo(), &log.stream, &group, setting.events);
                tasks.push(worker.consume(BATCH));
            }
            at_once(tasks).await
        };
        let turns = take_turns(setting.runs, async |_| Ok(None), ours).await?;
        let measure = format!("{GROUPS} groups, fetch and settle 100, together");
        Ok(vec![Row::of_rates(Subject::Groups, measure, turns)])
    };
    setting.on_log("groups", 1, 0, work).await
}

/// Each worker is an instance of its own, as in another process.
pub(crate) async fn workers(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let other = setting.place.another().await?;
    let work = async |log: &Log| {
        setting.fill(&log.stream, PARTITIONS, setting.events).await?;
        let mut rows = Vec::new();
        for count in WORKERS {
            let ours = async |run| {
                let group = format!("{count}-{run}");
                setting.rheo().create_group(&log.stream, &group, GroupOptions::default()).await?;
                let first = Worker::new(setting.rheo(), &log.stream, &group, setting.events);
                let second = first.with(other.clone());
                let workers = [first, second].into_iter().take(count as usize);
                at_once(workers.map(|worker| worker.consume(BATCH)).collect()).await
            };
            let turns = take_turns(setting.runs, async |_| Ok(None), ours).await?;
            let noun = if count == 1 { "worker" } else { "workers" };
            let measure = format!("{count} {noun} on {PARTITIONS} partitions, 100 each time");
            rows.push(Row::of_rates(Subject::Workers, measure, turns));
        }
        Ok(rows)
    };
    setting.on_log("workers", PARTITIONS, 0, work).await
}

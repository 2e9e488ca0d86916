//! What a claim at the end of a log costs, by how much lies behind it.

use std::time::Instant;

use rheo::{GroupOptions, Start};

use super::consume::fetch_and_settle;
use super::events::{BATCH, events};
use super::measuring::{Spread, Turn};
use super::report::{Row, Subject};
use super::setting::{Log, Setting};
use crate::failure::{Failure, Outcome};

/// How many claims a run has at most.
const CLAIMS: usize = 50;
const GROUP: &str = "tail";

pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Vec<Row>, Failure> {
    let lengths = [setting.events, setting.events * 10];
    let work = async |short: &Log| {
        let both = async |long: &Log| {
            let streams = [&*short.stream, &*long.stream];
            for (stream, length) in streams.into_iter().zip(lengths) {
                prepare(setting, stream, length).await?;
            }
            side_by_side(setting, streams).await
        };
        setting.on_log("length", 1, 0, both).await
    };
    let rates = setting.on_log("length", 1, 0, work).await?;
    let row = |(length, rates): (u64, Vec<f64>)| {
        let measure = format!("fetch and settle 100 after {length} events");
        Some(Row::new(Subject::Length, measure, "events/s", Spread::of(rates)?))
    };
    Ok(lengths.into_iter().zip(rates).filter_map(row).collect())
}

async fn prepare(setting: &Setting<'_>, stream: &str, length: u64) -> Outcome {
    setting.fill(stream, 1, length).await?;
    let from_here = GroupOptions::default().start(Start::End);
    Ok(setting.rheo().create_group(stream, GROUP, from_here).await?)
}

/// Both streams take turns, claim by claim; the rates of each, run by run.
async fn side_by_side(setting: &Setting<'_>, streams: [&str; 2]) -> Result<[Vec<f64>; 2], Failure> {
    let mut rates = [Vec::new(), Vec::new()];
    for run in 0..=setting.runs {
        let (turn, mut claims) = (Turn::begin(), [Vec::new(), Vec::new()]);
        while claims[0].is_empty() || (claims[0].len() < CLAIMS && !turn.is_over()) {
            for (stream, claims) in streams.into_iter().zip(&mut claims) {
                claims.push(claim(setting, stream).await?);
            }
        }
        if run > 0 {
            for (rates, claims) in rates.iter_mut().zip(claims) {
                rates.extend(Spread::of(claims).map(|claims| claims.median));
            }
        }
    }
    Ok(rates)
}

/// At how many events a second a batch is claimed and settled.
async fn claim(setting: &Setting<'_>, stream: &str) -> Result<f64, Failure> {
    setting.rheo().append_batch(stream, events(0, BATCH, 0)).await?;
    let begun = Instant::now();
    let count = fetch_and_settle(setting.rheo(), stream, GROUP, BATCH).await?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

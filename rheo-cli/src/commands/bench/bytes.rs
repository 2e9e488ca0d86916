//! How much the store grows by an event, with all its indexes.

use super::measuring::Spread;
use super::raw::{self, Raw};
use super::report::{Row, Subject};
use super::setting::{Log, Setting, fill_raw};
use crate::failure::Failure;

/// What is measured, or why it is not.
pub(crate) async fn measure(setting: &Setting<'_>) -> Result<Result<Row, String>, Failure> {
    let cannot_tell = || format!("bytes: {} cannot tell them cheaply", setting.place.store);
    let Some(mut meter) = raw::open(&setting.place.url, "bench_meter").await? else {
        return Ok(Err(cannot_tell()));
    };
    if meter.bytes().await?.is_none() {
        return Ok(Err(cannot_tell()));
    }
    let work = async |log: &Log| {
        let before = size(&mut *meter).await?;
        setting.fill(&log.stream, 1, setting.events).await?;
        let between = size(&mut *meter).await?;
        let raw = match log.clients.first() {
            Some(client) => {
                fill_raw(client, setting.events).await?;
                Some(each(setting, between, size(&mut *meter).await?))
            }
            None => None,
        };
        Ok((each(setting, before, between), raw))
    };
    let (ours, raw) = setting.on_log("bytes", 1, 1, work).await?;
    if ours <= 0.0 || raw.is_some_and(|bytes| bytes <= 0.0) {
        return Ok(Err(format!("bytes: {} grew by nothing", setting.place.store)));
    }
    let spread = |bytes| Spread { median: bytes, least: bytes, greatest: bytes };
    let row = Row::new(Subject::Bytes, "an event in the store", "bytes", spread(ours));
    Ok(Ok(match raw {
        Some(bytes) => row.beside(spread(bytes), spread(ours / bytes)),
        None => row,
    }))
}

async fn size(meter: &mut dyn Raw) -> Result<u64, Failure> {
    Ok(meter.bytes().await?.unwrap_or_default())
}

/// How many bytes an event took.
fn each(setting: &Setting<'_>, before: u64, after: u64) -> f64 {
    (after as f64 - before as f64) / setting.events as f64
}

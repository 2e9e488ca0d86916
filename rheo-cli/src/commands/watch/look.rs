//! [`Look`]: what there is to see at one moment.

use std::time::Instant;

use rheo::{ErrorKind, Result, Rheo, Timestamp};
use serde::Serialize;

use crate::output::Table;

/// All streams, or one, and their groups at one moment.
#[derive(Debug, Serialize)]
pub(super) struct Look {
    at: String,
    #[serde(skip)]
    taken: Instant,
    streams: Vec<Stream>,
}

#[derive(Debug, Serialize)]
struct Stream {
    name: String,
    events: u64,
    /// Not known at the first look, as all rates.
    appended_per_second: Option<f64>,
    groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
struct Group {
    name: String,
    lag: u64,
    leased: u64,
    waiting: u64,
    dead_letters: u64,
    settled_per_second: Option<f64>,
    /// The sum of the frontiers.
    #[serde(skip)]
    settled: u64,
}

impl Look {
    pub(super) async fn take(rheo: &Rheo, stream: Option<&str>) -> Result<Self> {
        let (at, taken) = (Timestamp::now().to_string(), Instant::now());
        let streams = match stream {
            Some(stream) => vec![Stream::take(rheo, stream).await?],
            None => {
                let mut streams = Vec::new();
                for listed in rheo.list_streams().await? {
                    let taken = Stream::take(rheo, listed.name.as_str()).await;
                    streams.extend(unless(ErrorKind::StreamNotFound, taken)?);
                }
                streams
            }
        };
        Ok(Self { at, taken, streams })
    }

    /// The same look with rates, where `before` was the last one.
    pub(super) fn since(mut self, before: &Self) -> Self {
        let seconds = (self.taken - before.taken).as_secs_f64();
        let rate = |now: u64, then: u64| Some(now.saturating_sub(then) as f64 / seconds);
        for stream in &mut self.streams {
            let Some(then) = before.streams.iter().find(|then| then.name == stream.name) else {
                continue;
            };
            stream.appended_per_second = rate(stream.events, then.events);
            for group in &mut stream.groups {
                let then = then.groups.iter().find(|then| then.name == group.name);
                group.settled_per_second = then.and_then(|then| rate(group.settled, then.settled));
            }
        }
        self
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new([
            "STREAM",
            "GROUP",
            "EVENTS",
            "APPENDED/S",
            "LAG",
            "LEASED",
            "WAITING",
            "DEAD LETTERS",
            "SETTLED/S",
        ]);
        for stream in &self.streams {
            let (events, appended) = (stream.events.to_string(), shown(stream.appended_per_second));
            let of_stream =
                |group: &str| [stream.name.clone(), group.into(), events.clone(), appended.clone()];
            if stream.groups.is_empty() {
                table.row(of_stream("-").into_iter().chain(["-"; 5].map(String::from)));
            }
            for group in &stream.groups {
                let counts = [group.lag, group.leased, group.waiting, group.dead_letters];
                let counts = counts.map(|count| count.to_string());
                let settled = shown(group.settled_per_second);
                table.row(of_stream(&group.name).into_iter().chain(counts).chain([settled]));
            }
        }
        table
    }
}

impl Stream {
    async fn take(rheo: &Rheo, name: &str) -> Result<Self> {
        let events = rheo.last_sequences(name).await?.iter().sum();
        let mut groups = Vec::new();
        for group in rheo.list_groups(name).await? {
            let taken = Group::take(rheo, name, group.as_str()).await;
            groups.extend(unless(ErrorKind::GroupNotFound, taken)?);
        }
        Ok(Self { name: name.to_string(), events, appended_per_second: None, groups })
    }
}

impl Group {
    async fn take(rheo: &Rheo, stream: &str, name: &str) -> Result<Self> {
        let info = rheo.group_info(stream, name).await?;
        Ok(Self {
            name: name.to_string(),
            lag: info.lag(),
            leased: info.leased(),
            waiting: info.waiting(),
            dead_letters: info.dead_letters(),
            settled_per_second: None,
            settled: info.partitions.iter().map(|partition| partition.frontier).sum(),
        })
    }
}

/// Nothing where it has been deleted since it was listed.
fn unless<T>(deleted: ErrorKind, taken: Result<T>) -> Result<Option<T>> {
    match taken {
        Err(error) if error.kind() == deleted => Ok(None),
        taken => taken.map(Some),
    }
}

fn shown(rate: Option<f64>) -> String {
    rate.map_or("-".to_string(), |rate| format!("{rate:.1}"))
}

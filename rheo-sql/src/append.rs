//! Appending.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use rheo_core::backend::{Append, RoutedEvent};
use rheo_core::{Event, Position, Result, Timestamp};
use serde_json::json;
use uuid::Uuid;

use crate::codec;
use crate::db::{Arg, Conn, Row, args};
use crate::error::{Failure, stream_not_found};
use crate::operation::Operation;
use crate::state::{digits, int, list};
use crate::statements::Statement;
use crate::{Dialect, Store};

/// The end of the log in one partition, whose row is locked.
#[derive(Clone, Copy, Debug)]
struct End {
    stream_id: i64,
    last: u64,
    latest: Timestamp,
}

/// An event at its place, as the table holds it.
#[derive(Debug)]
struct Placed<'a> {
    sequence: u64,
    latest: Timestamp,
    event: &'a RoutedEvent,
}

impl Operation for Append {
    const NAME: &'static str = "append";
    type Output = Vec<Event>;

    /// The lock on a partition's row lasts until the commit, so that commits
    /// come in the order of sequences, and no number is left out.
    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Event>, Failure> {
        let mut ends = lock_ends(self, store, conn).await?;
        let Some(stream_id) = ends.values().next().map(|end| end.stream_id) else {
            return Err(stream_not_found(Self::NAME, &self.stream.name).into());
        };
        let mut stored = stored(self, store, conn, stream_id).await?;
        let mut placed = Vec::new();
        let mut events = Vec::with_capacity(self.events.len());
        for event in &self.events {
            let id = (event.partition, event.body.id());
            if let Some(known) = event.idempotent.then(|| stored.get(&id)).flatten() {
                events.push(known.clone());
                continue;
            }
            let Some(end) = ends.get_mut(&event.partition) else {
                return Err(stream_not_found(Self::NAME, &self.stream.name).into());
            };
            end.last += 1;
            end.latest = end.latest.max(event.body.timestamp());
            placed.push(Placed { sequence: end.last, latest: end.latest, event });
            let position = Position::new(event.partition, end.last);
            let appended = Event::new(self.stream.name.clone(), position, event.body.clone());
            if event.idempotent {
                stored.insert(id, appended.clone());
            }
            events.push(appended);
        }
        put(store, conn, stream_id, &placed, &ends).await?;
        Ok(events)
    }
}

/// Locks the ends of the partitions that the request is about, lowest first.
/// None where the stream is missing.
async fn lock_ends(
    request: &Append,
    store: &Store,
    conn: &mut Conn<'_>,
) -> Result<BTreeMap<u32, End>, Failure> {
    let numbers: BTreeSet<u32> = request.events.iter().map(|event| event.partition).collect();
    let numbers = list(numbers.into_iter().map(|number| json!({"number": number})));
    let args = args![request.stream.name.as_str(), request.stream.partitions, numbers];
    let rows = conn.rows(&store.sql("lock_partitions"), args).await?;
    let end = |row: &Row| {
        let latest = Timestamp::from_micros(row.int(3)?);
        Ok((row.u32(1)?, End { stream_id: row.int(0)?, last: row.u64(2)?, latest }))
    };
    rows.iter().map(end).collect()
}

/// The stored events that the given ids stand for already.
async fn stored(
    request: &Append,
    store: &Store,
    conn: &mut Conn<'_>,
    stream_id: i64,
) -> Result<HashMap<(u32, Uuid), Event>, Failure> {
    let ids = given_ids(&request.events);
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let args = args![stream_id, list(ids)];
    let rows = conn.rows(&store.sql("stored_by_ids"), args).await?;
    let event = |row: &Row| {
        let event = codec::event(row, 0, &request.stream.name)?;
        Ok(((event.partition(), event.id()), event))
    };
    rows.iter().map(event).collect()
}

/// The ids that callers gave.
fn given_ids(events: &[RoutedEvent]) -> Vec<serde_json::Value> {
    let given = events.iter().filter(|event| event.idempotent);
    given
        .map(|event| json!({"partition": event.partition, "id": digits(event.body.id())}))
        .collect()
}

/// The same, and the sequences that they stand for from now on.
fn placed_ids(placed: &[Placed<'_>]) -> Vec<serde_json::Value> {
    let given = placed.iter().filter(|placed| placed.event.idempotent);
    given
        .map(|Placed { sequence, event, .. }| {
            let id = digits(event.body.id());
            json!({"partition": event.partition, "id": id, "sequence": int(*sequence)})
        })
        .collect()
}

/// Writes new events and the ends of their partitions.
async fn put(
    store: &Store,
    conn: &mut Conn<'_>,
    stream_id: i64,
    placed: &[Placed<'_>],
    ends: &BTreeMap<u32, End>,
) -> Result<(), Failure> {
    if placed.is_empty() {
        return Ok(());
    }
    put_events(store, conn, stream_id, placed).await?;
    let ids = placed_ids(placed);
    if !ids.is_empty() {
        conn.execute(&store.sql("put_ids"), args![stream_id, list(ids)]).await?;
    }
    for (&number, end) in ends {
        let args = args![stream_id, number, end.last, end.latest.as_micros()];
        conn.execute(&store.sql("set_end"), args).await?;
    }
    Ok(())
}

/// The most rows in one statement. Smaller numbers go by powers of two, so that
/// few statements are prepared.
const MOST_ROWS: usize = 128;

async fn put_events(
    store: &Store,
    conn: &mut Conn<'_>,
    stream_id: i64,
    placed: &[Placed<'_>],
) -> Result<(), Failure> {
    let mut rest = placed;
    while !rest.is_empty() {
        let most = rest.len().min(MOST_ROWS);
        let count = 1 << most.ilog2();
        let (rows, later) = rest.split_at(count);
        let statement = store.put_events(count);
        let dialect = conn.dialect();
        let args = rows.iter().flat_map(|row| columns(dialect, stream_id, row)).collect();
        conn.execute(&statement, args).await?;
        rest = later;
    }
    Ok(())
}

/// How many columns an event has in its table.
const COLUMNS: usize = 10;

/// Those before its documents.
const TEXT_COLUMNS: usize = 8;

fn columns(dialect: Dialect, stream_id: i64, placed: &Placed<'_>) -> [Arg; COLUMNS] {
    let body = &placed.event.body;
    let document = |text| Arg::Text(codec::document(dialect, text).into_owned());
    [
        stream_id.into(),
        placed.event.partition.into(),
        placed.sequence.into(),
        Arg::Uuid(body.id()),
        body.timestamp().as_micros().into(),
        placed.latest.as_micros().into(),
        body.event_type().into(),
        Arg::OptText(body.key().map(Into::into)),
        document(body.metadata_text()),
        document(body.payload_text()),
    ]
}

impl Store {
    /// Appends in a transaction of its own.
    pub(crate) async fn append(self: &Arc<Self>, request: &Append) -> Result<Vec<Event>> {
        let events = self.append_as_fits(request).await?;
        self.ring(&request.stream.name);
        Ok(events)
    }

    async fn append_as_fits(self: &Arc<Self>, request: &Append) -> Result<Vec<Event>> {
        #[cfg(feature = "postgres")]
        if self.statements.dialect() == Dialect::Postgres
            && request.events.iter().all(|event| !event.idempotent)
        {
            let events = self.once(crate::hot::HotAppend(request.clone())).await?;
            if !events.is_empty() {
                return Ok(events);
            }
        }
        self.write(request.clone()).await
    }

    /// The statement that writes this many events.
    fn put_events(&self, count: usize) -> Statement {
        let mut text = self.sql("put_events").text.to_string();
        for row in 0..count {
            let separator = if row == 0 { " (" } else { ", (" };
            let marks = (1..=COLUMNS).map(|column| {
                let mark = self.mark(row * COLUMNS + column);
                if column > TEXT_COLUMNS { format!("{{json {mark}}}") } else { mark }
            });
            let marks = marks.collect::<Vec<_>>().join(", ");
            text.push_str(&format!("{separator}{marks})"));
        }
        self.statements.adapt(&text)
    }

    /// What stands for an argument that comes in turn. SQLite looks each one
    /// that has a number up among all others, which takes long with hundreds.
    fn mark(&self, number: usize) -> String {
        #[cfg(feature = "sqlite")]
        if self.statements.dialect() == Dialect::Sqlite {
            return "?".into();
        }
        format!("${number}")
    }
}

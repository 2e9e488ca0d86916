//! The delivery state of a group as rows: what is loaded of it, and how it is
//! written back.
//!
//! Whoever changes a group in a partition locks its cursor first. What an
//! operation means is `rheo-core`'s [`Progress`]; here a piece of it is loaded,
//! and the rows that differ afterwards are written.

use std::collections::{BTreeMap, BTreeSet};

use rheo_core::backend::{GroupRef, Now, Range};
use rheo_core::progress::{AttemptRun, Dead, DeadEvent, OpenRun, Parts, Progress};
use rheo_core::{Fence, GroupSettings, Result, Timestamp};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::Store;
use crate::db::{Arg, Conn, Row, args};
use crate::error::{Failure, group_not_found, stream_not_found};

/// When nothing is open, so nothing is due.
pub(crate) const NEVER: i64 = i64::MAX;

/// A group as it was found by its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub(crate) stream_id: i64,
    pub(crate) id: i64,
    pub(crate) settings: GroupSettings,
    /// What judges: the given instant, or the store's time.
    pub(crate) now: Timestamp,
}

/// Where a group stands in one partition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) partition: u32,
    pub(crate) start: u64,
    pub(crate) cursor: u64,
    pub(crate) next_due: i64,
}

/// Rows of some partitions.
type ByPartition<T> = BTreeMap<u32, Vec<T>>;

/// A piece of a group's progress in one partition, as loaded.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) cursor: Cursor,
    parts: Parts,
}

/// The argument for a list of rows.
pub(crate) fn list<T: Serialize>(rows: impl IntoIterator<Item = T>) -> Arg {
    let rows: Vec<T> = rows.into_iter().collect();
    // Numbers and text always have a JSON form.
    Arg::Text(serde_json::to_string(&rows).unwrap_or_default())
}

/// Sequences beyond what the database counts to do not exist.
pub(crate) fn int(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

impl Store {
    /// The instant that judges, or none where that is the server's time.
    pub(crate) fn now(&self, now: Now) -> Arg {
        let instant = match now {
            Now::Store if self.statements.dialect().has_clock() => None,
            now => Some(now.or_system().as_micros()),
        };
        Arg::OptInt(instant)
    }

    /// Finds a group: `StreamNotFound`, then `GroupNotFound`.
    pub(crate) async fn find_group(
        &self,
        conn: &mut Conn<'_>,
        operation: &'static str,
        group: &GroupRef,
        now: Now,
    ) -> Result<Group, Failure> {
        let GroupRef { stream, name } = group;
        let now = self.now(now);
        let args = args![stream.name.as_str(), stream.partitions, name.as_str(), now];
        let found = conn.row(&self.sql("find_group"), args).await?;
        let found = found.ok_or_else(|| stream_not_found(operation, &stream.name))?;
        let id = found.opt_int(1)?.ok_or_else(|| group_not_found(operation, group))?;
        Ok(Group {
            stream_id: found.int(0)?,
            id,
            settings: GroupSettings { max_attempts: found.u32(2)?, ordered: found.int(3)? != 0 },
            now: Timestamp::from_micros(found.int(4)?),
        })
    }

    /// Locks the group in these partitions, which ascend, and waits for whoever
    /// has them.
    pub(crate) async fn lock_cursors(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        partitions: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<Cursor>, Failure> {
        self.lock(conn, "lock_cursors", group, partitions).await
    }

    /// Locks the group in one partition, unless somebody has it.
    pub(crate) async fn lock_free_cursor(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        partition: u32,
    ) -> Result<Option<Cursor>, Failure> {
        Ok(self.lock(conn, "lock_free_cursors", group, [partition]).await?.pop())
    }

    async fn lock(
        &self,
        conn: &mut Conn<'_>,
        statement: &'static str,
        group: &Group,
        partitions: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<Cursor>, Failure> {
        let partitions =
            list(partitions.into_iter().map(|partition| json!({"partition": partition})));
        let rows = conn.rows(&self.sql(statement), args![group.id, partitions]).await?;
        rows.iter().map(cursor).collect()
    }

    /// The open runs that have a sequence in these ranges, whole.
    pub(crate) async fn runs_in(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<OpenRun>, Failure> {
        let args = args![group.id, range_list(ranges)];
        let rows = conn.rows(&self.sql("load_runs"), args).await?;
        by_partition(&rows, open_run, |run| run.first)
    }

    /// The kept attempts that have a sequence in these ranges, whole.
    pub(crate) async fn attempts_in(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<AttemptRun>, Failure> {
        let args = args![group.id, range_list(ranges)];
        let rows = conn.rows(&self.sql("load_attempts"), args).await?;
        by_partition(&rows, attempt_run, |run| run.first)
    }

    /// The dead letters in these ranges.
    pub(crate) async fn dead_in(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        ranges: &[Range],
    ) -> Result<ByPartition<DeadEvent>, Failure> {
        let args = args![group.id, range_list(ranges)];
        let rows = conn.rows(&self.sql("load_dead"), args).await?;
        by_partition(&rows, dead_event, |dead| dead.sequence)
    }

    /// Writes what an operation changed of a piece.
    pub(crate) async fn save(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        piece: &Piece,
        progress: Progress,
    ) -> Result<(), Failure> {
        let after = progress.into_parts();
        let changes = piece.parts.changes_to(&after);
        if changes.is_empty() {
            return Ok(());
        }
        let at = args![group.id, piece.cursor.partition];
        let stood = piece.parts.open.iter().map(|run| run.first);
        let gone =
            rows_gone(stood, &changes.removed_open, changes.put_open.iter().map(|run| run.first));
        self.change(conn, "remove_runs", &at, gone).await?;
        self.change(conn, "put_runs", &at, changes.put_open.iter().map(run_row).collect()).await?;

        let stood = piece.parts.attempts.iter().map(|run| run.first);
        let put = changes.put_attempts.iter();
        let gone = rows_gone(stood, &changes.removed_attempts, put.clone().map(|run| run.first));
        self.change(conn, "remove_attempts", &at, gone).await?;
        self.change(conn, "put_attempts", &at, put.map(attempt_row).collect()).await?;

        let removed = changes.removed_dead.iter();
        let removed = removed.map(|&sequence| json!({"sequence": int(sequence)})).collect();
        self.change(conn, "remove_dead", &at, removed).await?;
        self.change(conn, "put_dead", &at, changes.put_dead.iter().map(dead_row).collect()).await?;

        let earliest = changes.put_open.iter().map(|run| run.due.as_micros()).min();
        let next_due = piece.cursor.next_due.min(earliest.unwrap_or(NEVER));
        let cursor = Cursor { cursor: after.cursor, next_due, ..piece.cursor };
        self.set_cursor(conn, group, cursor).await
    }

    async fn change(
        &self,
        conn: &mut Conn<'_>,
        statement: &'static str,
        at: &[Arg],
        rows: Vec<serde_json::Value>,
    ) -> Result<(), Failure> {
        if !rows.is_empty() {
            let mut args = at.to_vec();
            args.push(list(rows));
            conn.execute(&self.sql(statement), args).await?;
        }
        Ok(())
    }

    /// Writes a cursor. In an ordered group `next_due` is always exact.
    async fn set_cursor(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        cursor: Cursor,
    ) -> Result<(), Failure> {
        let next_due = if group.settings.ordered {
            self.ordered_due(conn, group, cursor.partition).await?
        } else {
            cursor.next_due
        };
        let args = args![group.id, cursor.partition, cursor.cursor, next_due];
        conn.execute(&self.sql("set_cursor"), args).await?;
        Ok(())
    }

    /// Sets when the next run of a partition is due to exactly that.
    pub(crate) async fn find_next_due(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        partition: u32,
    ) -> Result<(), Failure> {
        if group.settings.ordered {
            return Ok(());
        }
        conn.execute(&self.sql("find_next_due"), args![group.id, partition]).await?;
        Ok(())
    }

    /// When an ordered group may next have what is open: when every lease has
    /// expired and the lowest event is due.
    async fn ordered_due(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        partition: u32,
    ) -> Result<i64, Failure> {
        let lowest = conn.row(&self.sql("lowest_due"), args![group.id, partition]).await?;
        let Some(lowest) = lowest else { return Ok(NEVER) };
        let expiry = self.last_expiry(conn, group, partition).await?;
        Ok(lowest.int(0)?.max(expiry.unwrap_or(i64::MIN)))
    }

    /// When the last lease of a partition expires.
    pub(crate) async fn last_expiry(
        &self,
        conn: &mut Conn<'_>,
        group: &Group,
        partition: u32,
    ) -> Result<Option<i64>, Failure> {
        let row = conn.row(&self.sql("last_expiry"), args![group.id, partition]).await?;
        row.map_or(Ok(None), |row| row.opt_int(0))
    }
}

impl Piece {
    pub(crate) fn new(
        cursor: Cursor,
        open: Vec<OpenRun>,
        attempts: Vec<AttemptRun>,
        dead: Vec<DeadEvent>,
    ) -> Self {
        let Cursor { start, cursor: handed_out, .. } = cursor;
        Self { cursor, parts: Parts { start, cursor: handed_out, open, attempts, dead } }
    }

    /// The pure state, to be changed and saved.
    pub(crate) fn progress(&self) -> Progress {
        Progress::from_parts(self.parts.clone())
    }
}

fn range_list(ranges: &[Range]) -> Arg {
    list(ranges.iter().map(|range| {
        json!({
            "partition": range.partition, "first": int(range.first), "last": int(range.last),
        })
    }))
}

/// Rows by partition and sequence, each once.
fn by_partition<T>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<T, Failure>,
    first: impl Fn(&T) -> u64,
) -> Result<ByPartition<T>, Failure> {
    let mut found: BTreeMap<(u32, u64), T> = BTreeMap::new();
    for row in rows {
        let item = read(row)?;
        found.insert((row.u32(0)?, first(&item)), item);
    }
    let mut sorted = ByPartition::new();
    for ((partition, _), item) in found {
        sorted.entry(partition).or_default().push(item);
    }
    Ok(sorted)
}

fn cursor(row: &Row) -> Result<Cursor, Failure> {
    Ok(Cursor {
        partition: row.u32(0)?,
        start: row.u64(1)?,
        cursor: row.u64(2)?,
        next_due: row.int(3)?,
    })
}

pub(crate) fn open_run(row: &Row) -> Result<OpenRun, Failure> {
    Ok(OpenRun {
        first: row.u64(1)?,
        last: row.u64(2)?,
        attempt: row.u32(3)?,
        fence: row.opt_uuid(4)?.map(|fence| Fence::from_u128(fence.as_u128())),
        due: Timestamp::from_micros(row.int(5)?),
    })
}

fn attempt_run(row: &Row) -> Result<AttemptRun, Failure> {
    Ok(AttemptRun { first: row.u64(1)?, last: row.u64(2)?, attempt: row.u32(3)? })
}

fn dead_event(row: &Row) -> Result<DeadEvent, Failure> {
    let dead = Dead {
        attempt: row.u32(2)?,
        reason: row.text(3)?.into(),
        at: Timestamp::from_micros(row.int(4)?),
    };
    Ok(DeadEvent { sequence: row.u64(1)?, dead })
}

/// The rows to delete: those removed, and those that are put anew.
fn rows_gone(
    stood: impl Iterator<Item = u64>,
    removed: &[u64],
    put: impl Iterator<Item = u64>,
) -> Vec<serde_json::Value> {
    let put: BTreeSet<u64> = put.collect();
    let replaced = stood.filter(|first| put.contains(first));
    removed.iter().copied().chain(replaced).map(|first| json!({"first": int(first)})).collect()
}

fn run_row(run: &OpenRun) -> serde_json::Value {
    json!({
        "first": int(run.first), "last": int(run.last), "attempt": run.attempt,
        "fence": run.fence.map(uuid).map(digits), "due": run.due.as_micros(),
    })
}

fn attempt_row(run: &AttemptRun) -> serde_json::Value {
    json!({"first": int(run.first), "last": int(run.last), "attempt": run.attempt})
}

fn dead_row(event: &DeadEvent) -> serde_json::Value {
    let Dead { attempt, reason, at } = &event.dead;
    json!({
        "sequence": int(event.sequence), "attempt": attempt, "reason": &**reason,
        "dead_at": at.as_micros(),
    })
}

/// A fence as the UUID that the tables hold.
pub(crate) fn uuid(fence: Fence) -> Uuid {
    Uuid::from_u128(fence.as_u128())
}

/// The digits of a UUID, as lists of rows carry it.
pub(crate) fn digits(id: Uuid) -> String {
    id.simple().to_string()
}

//! Replay and reset.

use std::collections::BTreeMap;

use rheo_core::Result;
use rheo_core::adapter::widened;
use rheo_core::backend::{GroupRef, Now, Range, Replay, Reset};

use crate::Store;
use crate::db::{Conn, Row, args};
use crate::error::{Failure, group_not_found};
use crate::group::forget_work;
use crate::operation::Operation;
use crate::state::{Cursor, Group, Piece};

impl Operation for Replay {
    const NAME: &'static str = "replay";
    type Output = ();

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let by_partition: Vec<&[Range]> =
            self.ranges.chunk_by(|a, b| a.partition == b.partition).collect();
        let numbers: Vec<u32> = by_partition.iter().map(|ranges| ranges[0].partition).collect();
        let group = store.find_group(conn, Self::NAME, &self.group, Now::Store).await?;
        let cursors = lock(store, conn, Self::NAME, &self.group, &group, &numbers).await?;
        // Read under the cursors' locks, so that no end lies below what was handed out.
        let ends = ends(store, conn, &group).await?;
        let loaded = widened(&self.ranges);
        let mut open = store.runs_in(conn, &group, &loaded).await?;
        let mut attempts = store.attempts_in(conn, &group, &loaded).await?;
        let mut dead = store.dead_in(conn, &group, &loaded).await?;
        for (cursor, ranges) in cursors.into_iter().zip(by_partition) {
            let number = cursor.partition;
            let piece = Piece::new(
                cursor,
                open.remove(&number).unwrap_or_default(),
                attempts.remove(&number).unwrap_or_default(),
                dead.remove(&number).unwrap_or_default(),
            );
            let high_watermark = ends.get(&number).copied().unwrap_or_default();
            let mut progress = piece.progress();
            for range in ranges {
                progress.reopen(range.first, range.last, high_watermark);
            }
            store.save(conn, &group, &piece, progress).await?;
        }
        Ok(())
    }
}

impl Operation for Reset {
    const NAME: &'static str = "reset_group";
    type Output = ();

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<(), Failure> {
        let numbers: Vec<u32> = (0..self.group.stream.partitions).collect();
        let group = store.find_group(conn, Self::NAME, &self.group, Now::Store).await?;
        lock(store, conn, Self::NAME, &self.group, &group, &numbers).await?;
        forget_work(store, conn, group.id).await?;
        for (number, &start) in numbers.into_iter().zip(&self.start) {
            conn.execute(&store.sql("restart_cursor"), args![group.id, number, start]).await?;
        }
        Ok(())
    }
}

/// Locks the group in these partitions, which ascend: in all of them, or the
/// group was deleted meanwhile.
async fn lock(
    store: &Store,
    conn: &mut Conn<'_>,
    operation: &'static str,
    name: &GroupRef,
    group: &Group,
    numbers: &[u32],
) -> Result<Vec<Cursor>, Failure> {
    let cursors = store.lock_cursors(conn, group, numbers.iter().copied()).await?;
    if cursors.len() < numbers.len() {
        store.find_group(conn, operation, name, Now::Store).await?;
        return Err(group_not_found(operation, name).into());
    }
    Ok(cursors)
}

/// The last sequence of each partition.
async fn ends(
    store: &Store,
    conn: &mut Conn<'_>,
    group: &Group,
) -> Result<BTreeMap<u32, u64>, Failure> {
    let rows = conn.rows(&store.sql("ends"), args![group.stream_id]).await?;
    rows.iter().map(|row: &Row| Ok((row.u32(0)?, row.u64(1)?))).collect()
}

//! Replay and reset.

use mongodb::ClientSession;
use rheo_core::Result;
use rheo_core::adapter::widened;
use rheo_core::backend::{Now, Range, Replay, Reset};

use crate::Store;
use crate::error::Failure;
use crate::group::forget_work;
use crate::operation::Operation;
use crate::state::{Beside, Piece, Saving, of_partition};

impl Operation for Replay {
    const NAME: &'static str = "replay";
    type Output = ();

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<(), Failure> {
        let by_partition: Vec<&[Range]> =
            self.ranges.chunk_by(|a, b| a.partition == b.partition).collect();
        let numbers: Vec<u32> = by_partition.iter().map(|ranges| ranges[0].partition).collect();
        let looking =
            store.find_group(session, Self::NAME, &self.group, &numbers, Beside::Ends, Now::Store);
        let group = looking.await?;
        let loaded = widened(&self.ranges);
        let mut open = store.runs_in(session, &group, &loaded).await?;
        let mut attempts = store.attempts_in(session, &group, &loaded).await?;
        let mut dead = store.dead_in(session, &group, &loaded).await?;
        for (&member, ranges) in group.members.iter().zip(by_partition) {
            let number = member.partition;
            let piece = Piece::new(
                member,
                open.remove(&number).unwrap_or_default(),
                attempts.remove(&number).unwrap_or_default(),
                dead.remove(&number).unwrap_or_default(),
            );
            let high_watermark = group.ends.get(&number).copied().unwrap_or_default();
            let mut progress = piece.progress();
            for range in ranges {
                progress.reopen(range.first, range.last, high_watermark);
            }
            let saving = Saving { frees: true, ..Saving::default() };
            store.save(session, &group, &piece, progress, saving).await?;
        }
        Ok(())
    }
}

impl Operation for Reset {
    const NAME: &'static str = "reset_group";
    type Output = ();

    async fn run(&self, store: &Store, session: &mut ClientSession) -> Result<(), Failure> {
        let numbers: Vec<u32> = (0..self.group.stream.partitions).collect();
        let looking = store.find_group(
            session,
            Self::NAME,
            &self.group,
            &numbers,
            Beside::Nothing,
            Now::Store,
        );
        looking.await?;
        forget_work(store, session, &self.group).await?;
        for (number, &start) in numbers.into_iter().zip(&self.start) {
            store.restart(session, of_partition(&self.group, number), start).await?;
        }
        Ok(())
    }
}

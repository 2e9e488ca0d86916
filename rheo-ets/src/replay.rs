//! Replay and reset.

use rheo_core::Result;
use rheo_core::backend::{Replay, Reset};
use rheo_core::progress::Progress;

use crate::Memory;

impl Memory {
    /// Reopens under the locks of all partitions touched: wholly, or not at all.
    pub(crate) fn reopen(&self, request: &Replay) -> Result<()> {
        let (stream, group) = self.group("replay", &request.group)?;
        let by_partition: Vec<_> =
            request.ranges.chunk_by(|a, b| a.partition == b.partition).collect();
        let mut locked: Vec<_> =
            by_partition.iter().map(|ranges| group.progress(ranges[0].partition)).collect();
        for (progress, ranges) in locked.iter_mut().zip(by_partition) {
            let high_watermark = stream.partition(ranges[0].partition).high_watermark();
            for range in ranges {
                progress.reopen(range.first, range.last, high_watermark);
            }
        }
        drop(locked);
        stream.bell.ring();
        Ok(())
    }

    pub(crate) fn start_anew(&self, request: &Reset) -> Result<()> {
        let (stream, group) = self.group("reset", &request.group)?;
        let mut all = group.all_progress();
        for (progress, &start) in all.iter_mut().zip(&request.start) {
            **progress = Progress::starting_after(start);
        }
        drop(all);
        stream.bell.ring();
        Ok(())
    }
}

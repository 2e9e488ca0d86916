//! Replaying.

use rheo_core::Result;
use rheo_core::backend::{Range, Replay};

use crate::Store;
use crate::call::{Call, MOST};

/// How many ranges one call takes.
const RANGES: usize = 10_000;

impl Store {
    /// Reopens ranges: in one step on a single server, and otherwise in one
    /// step for each partition and ten thousand ranges.
    pub(crate) async fn replay(&self, request: &Replay) -> Result<()> {
        let Replay { group, ranges } = request;
        let channel = self.channel(&group.stream.name);
        let of_partition = ranges.chunk_by(|one, other| one.partition == other.partition);
        // The highest first: what reaches to the cursor moves it back.
        let parts = of_partition.flat_map(|ranges| ranges.rchunks(RANGES));
        let call = |ranges: &[Range]| {
            let partition = ranges.first().map_or(0, |range| range.partition);
            let call = self.write_to(group, partition, "replay").arg(&channel);
            ranges.iter().fold(call, |call: Call, range| {
                call.arg(range.first.min(MOST)).arg(range.last.min(MOST))
            })
        };
        let calls: Vec<Call> = parts.map(call).collect();
        self.call_all("replay", &calls).await.map(drop)
    }
}

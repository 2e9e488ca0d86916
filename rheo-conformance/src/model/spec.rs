//! [`Spec`]: what a group should do, by the pure state machine.

use std::time::Duration;

use rheo_core::backend::{LeaseRefusal, Settlement};
use rheo_core::progress::{ClaimTurn, Progress};
use rheo_core::{Fence, GroupSettings, LeaseId, PartitionProgress, Position, Timestamp, Token};

/// A group over a log, as it should be.
#[derive(Debug)]
pub(super) struct Spec {
    settings: GroupSettings,
    partitions: Vec<Partition>,
    claims: u128,
}

#[derive(Debug)]
struct Partition {
    high_watermark: u64,
    progress: Progress,
}

/// A dead letter: when, where, at which attempt and why.
pub(super) type Letter = (Timestamp, Position, u32, String);

impl Spec {
    pub(super) fn new(settings: GroupSettings, partitions: u32, start: u64) -> Self {
        let partition =
            |_| Partition { high_watermark: 0, progress: Progress::starting_after(start) };
        Self { settings, partitions: (0..partitions).map(partition).collect(), claims: 0 }
    }

    pub(super) fn append(&mut self, partition: u32, count: u64) {
        self.partition(partition).high_watermark += count;
    }

    /// The tokens, in this machine's own terms, and the attempts.
    pub(super) fn claim(
        &mut self,
        partition: u32,
        limit: usize,
        now: Timestamp,
        lease: Duration,
    ) -> Vec<(Token, u32)> {
        self.claims += 1;
        let (settings, fence) = (self.settings, Fence::from_u128(self.claims));
        let Partition { high_watermark, progress } = self.partition(partition);
        let granted = progress.claim(&ClaimTurn {
            limit,
            high_watermark: *high_watermark,
            fence,
            now,
            expires_at: now + lease,
            settings: &settings,
        });
        let token = |sequence| Token::new(LeaseId::new(fence, Position::new(partition, sequence)));
        let of_run = |run: &rheo_core::progress::Granted| {
            let attempt = run.attempt;
            (run.first..=run.last).map(move |sequence| (token(sequence), attempt))
        };
        granted.iter().flat_map(of_run).collect()
    }

    pub(super) fn settle(
        &mut self,
        settlement: &Settlement,
        now: Timestamp,
    ) -> Result<(), LeaseRefusal> {
        let settings = self.settings;
        let partition = self.partition(settlement.token.lease_id.position().partition);
        partition.progress.settle(&[settlement], now, &settings)[0]
    }

    pub(super) fn renew(
        &mut self,
        token: &Token,
        expires_at: Timestamp,
    ) -> Result<Timestamp, LeaseRefusal> {
        let partition = self.partition(token.lease_id.position().partition);
        partition.progress.renew(&[token], expires_at)[0]
    }

    pub(super) fn replay(&mut self, partition: u32, first: u64, last: u64) {
        let Partition { high_watermark, progress } = self.partition(partition);
        progress.reopen(first, last, *high_watermark);
    }

    pub(super) fn reset(&mut self, start: u64) {
        for partition in &mut self.partitions {
            partition.progress = Progress::starting_after(start);
        }
    }

    pub(super) fn exists(&self, position: Position) -> bool {
        let high_watermark = self.partitions[position.partition as usize].high_watermark;
        (1..=high_watermark).contains(&position.sequence)
    }

    pub(super) fn progress(&self, now: Timestamp) -> Vec<PartitionProgress> {
        let progress =
            |partition: &Partition| partition.progress.progress(partition.high_watermark, now);
        self.partitions.iter().map(progress).collect()
    }

    pub(super) fn dead_letters(&self) -> Vec<Letter> {
        let of_partition = |(number, partition): (u32, &Partition)| -> Vec<Letter> {
            let letters = partition.progress.dead_letters_from(Timestamp::MIN, 0);
            letters
                .map(|(sequence, dead)| {
                    let position = Position::new(number, sequence);
                    (dead.at, position, dead.attempt, dead.reason.to_string())
                })
                .collect()
        };
        let mut letters: Vec<_> = (0..).zip(&self.partitions).flat_map(of_partition).collect();
        letters.sort();
        letters
    }

    fn partition(&mut self, partition: u32) -> &mut Partition {
        &mut self.partitions[partition as usize]
    }
}

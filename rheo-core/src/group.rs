//! Groups: how they are set up, and what their progress looks like.

use serde::Serialize;

use crate::{Event, GroupName, Position, Timestamp};

/// How often an event is handed out at most, unless set.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;

/// What a group is created with, beside its name.
///
/// ```
/// use rheo_core::{GroupOptions, Start};
///
/// let options = GroupOptions::default().max_attempts(3).ordered(true).start(Start::End);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOptions {
    pub(crate) max_attempts: Option<u32>,
    pub(crate) ordered: bool,
    pub(crate) start: Start,
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self { max_attempts: None, ordered: false, start: Start::Beginning }
    }
}

impl GroupOptions {
    /// How often an event is handed out at most, at least 1; by default what
    /// the instance is set to, which is 5 unless changed.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// Whether each partition is delivered strictly in order, through retries;
    /// default no.
    #[must_use]
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Where the group begins; by default at the beginning.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }
}

/// Where a group begins, or begins anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first event.
    Beginning,
    /// With the next event to be appended.
    End,
    /// After this sequence, in every partition.
    AfterSequence(u64),
    /// After these sequences: one for each partition, in their order.
    AfterSequences(Vec<u64>),
    /// With the first event at or after this instant, in each partition by itself.
    At(Timestamp),
}

/// The rules of a group that its store applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// How often an event is handed out at most.
    pub max_attempts: u32,
    /// Whether each partition is delivered strictly in order.
    pub ordered: bool,
}

/// How far a group has come in one partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PartitionProgress {
    /// The partition's last sequence, 0 where it is empty.
    pub high_watermark: u64,
    /// The highest sequence up to which everything is acked or dead-lettered.
    pub frontier: u64,
    /// Events leased now, by leases that have not expired.
    pub leased: u64,
    /// Events below the group's cursor that are claimable now or after their
    /// delay: retries, replayed events, events whose lease has expired.
    pub waiting: u64,
    /// Events in the dead-letter list.
    pub dead_letters: u64,
}

impl PartitionProgress {
    /// The distance from the frontier to the high watermark.
    #[must_use]
    pub const fn lag(&self) -> u64 {
        self.high_watermark.saturating_sub(self.frontier)
    }
}

/// A group's settings and progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupInfo {
    /// The group.
    pub name: GroupName,
    /// How often an event is handed out at most.
    pub max_attempts: u32,
    /// Whether each partition is delivered strictly in order.
    pub ordered: bool,
    /// The progress in each partition, by its number.
    pub partitions: Vec<PartitionProgress>,
}

impl GroupInfo {
    /// How many events the group is behind, over all partitions.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.partitions.iter().map(PartitionProgress::lag).sum()
    }

    /// Events leased now.
    #[must_use]
    pub fn leased(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.leased).sum()
    }

    /// Events handed out before and claimable again, now or after their delay.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.waiting).sum()
    }

    /// Events in the dead-letter list.
    #[must_use]
    pub fn dead_letters(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.dead_letters).sum()
    }
}

/// An event that a group has given up.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// The event.
    pub event: Event,
    /// At which attempt it was given up.
    pub attempt: u32,
    /// Why, for people.
    pub reason: String,
    /// When, by the clock that judges leases.
    pub dead_at: Timestamp,
}

impl DeadLetter {
    /// The event's position, from which the next page of the list goes on.
    #[must_use]
    pub fn position(&self) -> Position {
        self.event.position()
    }
}

//! [`Open`]: the events that are leased or waiting, found by sequence and by time.

use std::collections::BTreeSet;

use super::runs::{Run, Runs};
use crate::{Fence, Timestamp};

/// How an open event stands: how often it was claimed, and what holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) attempt: u32,
    hold: Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Leased { fence: Fence, expires_at: Timestamp },
    Waiting { not_before: Timestamp },
}

impl Standing {
    /// Leased by the claim with this fence.
    pub(super) const fn leased(attempt: u32, fence: Fence, expires_at: Timestamp) -> Self {
        let hold = Hold::Leased { fence, expires_at };
        Self { attempt, hold }
    }

    /// Claimable from `not_before` on.
    pub(super) const fn waiting_until(attempt: u32, not_before: Timestamp) -> Self {
        let hold = Hold::Waiting { not_before };
        Self { attempt, hold }
    }

    /// Claimable at once. All such are alike, whenever they came, so that they make one run.
    pub(super) const fn waiting(attempt: u32) -> Self {
        Self::waiting_until(attempt, Timestamp::MIN)
    }

    /// The fence of its lease, expired or not.
    pub(super) const fn fence(&self) -> Option<Fence> {
        match self.hold {
            Hold::Leased { fence, .. } => Some(fence),
            Hold::Waiting { .. } => None,
        }
    }

    pub(super) const fn is_leased(&self) -> bool {
        matches!(self.hold, Hold::Leased { .. })
    }

    /// When the next claim may have it.
    pub(super) const fn due_at(&self) -> Timestamp {
        match self.hold {
            Hold::Leased { expires_at, .. } => expires_at,
            Hold::Waiting { not_before } => not_before,
        }
    }
}

/// The open events of one group in one partition.
///
/// Each run is indexed once: in `timed` by when it is due or, once a claim has
/// found that time to have come, in `ready` by sequence. So what is due is found
/// at once, lowest first, whatever else is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    runs: Runs<Standing>,
    timed: BTreeSet<(Timestamp, u64)>,
    ready: BTreeSet<u64>,
}

impl Open {
    /// All runs, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Run<Standing>> {
        self.runs.iter()
    }

    /// The lowest run.
    pub(super) fn first(&self) -> Option<Run<Standing>> {
        self.runs.first()
    }

    /// The lowest of the runs that begin at `sequence` or later.
    pub(super) fn from(&self, sequence: u64) -> Option<Run<Standing>> {
        self.runs.from(sequence)
    }

    /// The run that holds `sequence`.
    pub(super) fn at(&self, sequence: u64) -> Option<Run<Standing>> {
        self.runs.at(sequence)
    }

    /// Makes ready what is due at `now`.
    pub(super) fn advance(&mut self, now: Timestamp) {
        while let Some(&(due_at, first)) = self.timed.first()
            && due_at <= now
        {
            self.timed.pop_first();
            self.ready.insert(first);
        }
    }

    /// The lowest run that is ready.
    pub(super) fn first_ready(&self) -> Option<Run<Standing>> {
        self.ready.first().and_then(|&first| self.runs.beginning_at(first))
    }

    /// When a run is due: at the earliest instant there is, once it was found due.
    pub(super) fn due_at(&self, run: &Run<Standing>) -> Timestamp {
        if self.ready.contains(&run.first) { Timestamp::MIN } else { run.value.due_at() }
    }

    /// When the first run is due. What is ready was due long ago.
    pub(super) fn earliest_due(&self) -> Option<Timestamp> {
        if self.ready.is_empty() {
            self.timed.first().map(|&(due_at, _)| due_at)
        } else {
            Some(Timestamp::MIN)
        }
    }

    /// When the last lease expires that was not yet found expired.
    pub(super) fn last_expiry(&self) -> Option<Timestamp> {
        let leased = |first| self.runs.beginning_at(first).is_some_and(|run| run.value.is_leased());
        let latest = self.timed.iter().rev().find(|&&(_, first)| leased(first));
        latest.map(|&(expires_at, _)| expires_at)
    }

    /// Adds a run where nothing is open.
    pub(super) fn put(&mut self, run: Run<Standing>) {
        let due_at = run.value.due_at();
        let joined = self.runs.put(run);
        // Runs that join stand alike, so they are indexed under the same time.
        if joined.last > run.last {
            self.forget(due_at, run.last + 1);
        }
        if joined.first == run.first {
            self.timed.insert((due_at, run.first));
        }
    }

    /// Takes out whatever is open from `first` to `last`.
    pub(super) fn carve(&mut self, first: u64, last: u64) -> Vec<Run<Standing>> {
        self.split(first);
        if let Some(next) = last.checked_add(1) {
            self.split(next);
        }
        let carved = self.runs.take(first, last);
        for run in &carved {
            self.forget(run.value.due_at(), run.first);
        }
        carved
    }

    fn split(&mut self, sequence: u64) {
        if let Some(upper) = self.runs.split(sequence) {
            self.timed.insert((upper.value.due_at(), sequence));
        }
    }

    fn forget(&mut self, due_at: Timestamp, first: u64) {
        if !self.timed.remove(&(due_at, first)) {
            self.ready.remove(&first);
        }
    }
}

#[cfg(test)]
impl Open {
    /// The runs are sound, and each is indexed once.
    pub(super) fn assert_sound(&self) {
        self.runs.assert_sound();
        assert_eq!(self.iter().count(), self.timed.len() + self.ready.len());
        for run in self.iter() {
            let timed = self.timed.contains(&(run.value.due_at(), run.first));
            assert!(timed != self.ready.contains(&run.first), "{run:?}");
        }
    }
}

//! [`Progress`]: what one group has done, and has yet to do, in one partition.
//!
//! It is pure: no store, no clock, no chance. Whoever holds one brings the time,
//! the fence and the partition's high watermark, and makes each call one step.
//! The in-memory backend runs on it whole; a store of rows loads the [`Parts`] that
//! an operation touches, and writes back its [`Changes`].
//!
//! The state is the open work, not the history. Everything above the *cursor* was
//! never handed out. Below it, an event is open (leased or waiting), dead, or
//! acked; only the first two are written down, and neighbours that stand alike are
//! one run. An acked event leaves a trace only where its attempt is not the one
//! that its position implies.

mod changes;
mod claim;
mod dead;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod model;
mod open;
mod parts;
mod reopen;
#[cfg(test)]
mod rows;
mod runs;
mod settle;
#[cfg(test)]
mod spec;

pub use changes::Changes;
pub use claim::{ClaimTurn, Granted};
pub use dead::Dead;
pub use parts::{AttemptRun, DeadEvent, OpenRun, Parts};

use dead::DeadList;
use open::Open;
use runs::{Run, Runs};

use crate::{GroupSettings, PartitionProgress, Timestamp};

/// The delivery state of one group in one partition.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Events up to this one were before the group's start.
    start: u64,
    /// Events above this one were never handed out.
    cursor: u64,
    /// Leased and waiting events, all at or below the cursor.
    open: Open,
    /// Attempts of acked and skipped events, where position implies another.
    attempts: Runs<u32>,
    dead: DeadList,
}

impl Progress {
    /// A group that begins after `sequence`, which may lie beyond the log's
    /// end: events up to it are then skipped when they arrive.
    #[must_use]
    pub fn starting_after(sequence: u64) -> Self {
        Self {
            start: sequence,
            cursor: sequence,
            open: Open::default(),
            attempts: Runs::default(),
            dead: DeadList::default(),
        }
    }

    /// The highest sequence up to which everything is acked, dead or skipped.
    #[must_use]
    pub fn frontier(&self) -> u64 {
        self.open.first().map_or(self.cursor, |run| run.first - 1)
    }

    /// The frontier and the counts at `now`.
    #[must_use]
    pub fn progress(&self, high_watermark: u64, now: Timestamp) -> PartitionProgress {
        let (mut leased, mut waiting) = (0, 0);
        for run in self.open.iter() {
            if run.value.is_leased() && run.value.due_at() > now {
                leased += run.len();
            } else {
                waiting += run.len();
            }
        }
        PartitionProgress {
            high_watermark,
            frontier: self.frontier(),
            leased,
            waiting,
            dead_letters: self.dead.len(),
        }
    }

    /// Whether a claim at `now` finds something to do.
    #[must_use]
    pub fn claimable(&self, high_watermark: u64, now: Timestamp, settings: &GroupSettings) -> bool {
        match self.next_due(now, settings) {
            Some(due_at) if due_at <= now => true,
            Some(_) if settings.ordered => false,
            _ => high_watermark > self.cursor,
        }
    }

    /// The earliest instant, from `now` on, at which a claim finds an open
    /// event to hand out or to give up, if nobody does anything until then.
    /// None where nothing is open.
    ///
    /// In an ordered group that is when every lease has expired and the lowest
    /// open event is due.
    #[must_use]
    pub fn next_due(&self, now: Timestamp, settings: &GroupSettings) -> Option<Timestamp> {
        let due_at = if settings.ordered {
            let lowest = self.open.first()?.value.due_at();
            self.open.last_expiry().map_or(lowest, |expiry| expiry.max(lowest))
        } else {
            self.open.earliest_due()?
        };
        Some(due_at.max(now))
    }

    /// The dead letter at `sequence`, if that event is one.
    #[must_use]
    pub fn dead_letter(&self, sequence: u64) -> Option<&Dead> {
        self.dead.get(sequence)
    }

    /// The dead letters with their sequences, oldest first and by sequence at
    /// the same time, from `(at, sequence)` on, that one included.
    pub fn dead_letters_from(
        &self,
        at: Timestamp,
        sequence: u64,
    ) -> impl Iterator<Item = (u64, &Dead)> {
        self.dead.from(at, sequence)
    }

    /// The attempts that position implies for acked and skipped events from
    /// `first` to `last`: none before the group's start, one after it.
    fn implied(&self, first: u64, last: u64) -> impl Iterator<Item = Run<u32>> + use<> {
        let skipped = (first <= self.start).then(|| Run::new(first, last.min(self.start), 0));
        let handed_out = (last > self.start).then(|| Run::new(first.max(self.start + 1), last, 1));
        skipped.into_iter().chain(handed_out)
    }
}

#[cfg(test)]
impl Progress {
    /// What holds between any two calls.
    fn assert_sound(&self) {
        self.open.assert_sound();
        self.attempts.assert_sound();
        self.dead.assert_sound();
        assert!(self.open.iter().all(|run| run.first >= 1 && run.last <= self.cursor));
        for kept in self.attempts.iter() {
            assert!(kept.last <= self.cursor);
            for implied in self.implied(kept.first, kept.last) {
                assert_ne!(implied.value, kept.value, "{implied:?} is kept");
            }
        }
        for (sequence, _) in self.dead.from(Timestamp::MIN, 0) {
            assert!(sequence <= self.cursor);
            assert!(self.open.at(sequence).is_none() && self.attempts.at(sequence).is_none());
        }
        for run in self.open.iter() {
            let attempts = self.attempts.clone().carve(run.first, run.last);
            assert!(attempts.is_empty(), "{run:?} and {attempts:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{Member, at};
    use super::*;

    #[test]
    fn a_start_beyond_the_end_is_no_lag() {
        let progress = Progress::starting_after(10).progress(3, at(0));
        assert_eq!((progress.frontier, progress.lag()), (10, 0));
    }

    #[test]
    fn an_expired_lease_counts_as_waiting() {
        let mut member = Member::new(9);
        member.claim(4);
        let counts = |now| {
            let progress = member.progress.progress(9, at(now));
            (progress.leased, progress.waiting, progress.lag())
        };
        assert_eq!(counts(9), (4, 0, 9));
        assert_eq!(counts(10), (0, 4, 9));
    }

    #[test]
    fn a_lease_holds_up_new_events_only_in_an_ordered_group() {
        for ordered in [false, true] {
            let mut member = Member::new(5);
            member.settings.ordered = ordered;
            member.claim(4);
            let Member { progress, settings, .. } = &member;
            assert_eq!(progress.claimable(5, at(9), settings), !ordered);
            assert!(!progress.claimable(4, at(9), settings));
            assert!(progress.claimable(4, at(10), settings));
            assert_eq!(progress.next_due(at(9), settings), Some(at(10)));
            assert_eq!(progress.next_due(at(11), settings), Some(at(11)));
        }
    }

    #[test]
    fn a_caught_up_group_holds_nothing() {
        let mut member = Member::new(1_000_000);
        while let [run] = member.claim(1000)[..] {
            member.ack(run);
        }
        let Progress { cursor, open, attempts, .. } = &member.progress;
        assert_eq!((*cursor, open.iter().count(), attempts.iter().count()), (1_000_000, 0, 0));
    }

    #[test]
    fn the_last_possible_sequence_does_not_overflow() {
        let mut member = Member::new(u64::MAX);
        member.progress = Progress::starting_after(u64::MAX);
        assert!(!member.progress.claimable(u64::MAX, at(0), &member.settings));
        member.progress.reopen(0, u64::MAX, u64::MAX);
        assert_eq!(member.claim(usize::MAX), [(1, u64::MAX, 1)]);
        member.ack((1, 1, 1));
        member.progress.reopen(u64::MAX, u64::MAX, u64::MAX);
        member.progress.assert_sound();
        let progress = member.progress.progress(u64::MAX, at(0));
        assert_eq!((progress.frontier, progress.waiting), (1, 1));
    }
}

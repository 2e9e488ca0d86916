//! The dead letters of one group in one partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::runs::Run;
use crate::Timestamp;

/// How an event was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dead {
    /// At which attempt.
    pub attempt: u32,
    /// Why, for people.
    pub reason: Arc<str>,
    /// When.
    pub at: Timestamp,
}

/// Dead letters by sequence, and by time.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadList {
    letters: BTreeMap<u64, Dead>,
    timed: BTreeSet<(Timestamp, u64)>,
}

impl DeadList {
    pub(super) fn len(&self) -> u64 {
        self.letters.len() as u64
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Dead> {
        self.letters.get(&sequence)
    }

    /// By time and sequence, from `(at, sequence)` on.
    pub(super) fn from(&self, at: Timestamp, sequence: u64) -> impl Iterator<Item = (u64, &Dead)> {
        let timed = self.timed.range((at, sequence)..);
        timed.filter_map(|&(_, sequence)| Some((sequence, self.letters.get(&sequence)?)))
    }

    /// Gives up the events of a run, all at the same attempt.
    pub(super) fn bury(&mut self, run: Run<u32>, reason: &str, at: Timestamp) {
        let dead = Dead { attempt: run.value, reason: reason.into(), at };
        for sequence in run.first..=run.last {
            self.insert(sequence, dead.clone());
        }
    }

    /// Adds an event that is not in the list.
    pub(super) fn insert(&mut self, sequence: u64, dead: Dead) {
        self.timed.insert((dead.at, sequence));
        self.letters.insert(sequence, dead);
    }

    /// All of them, by sequence.
    pub(super) fn into_letters(self) -> impl Iterator<Item = (u64, Dead)> {
        self.letters.into_iter()
    }

    /// Takes the events from `first` to `last` off the list, and returns their attempts.
    pub(super) fn revive(&mut self, first: u64, last: u64) -> impl Iterator<Item = Run<u32>> {
        let Self { letters, timed } = self;
        let revived = letters.extract_if(first..=last, |_, _| true);
        revived.map(|(sequence, dead)| {
            timed.remove(&(dead.at, sequence));
            Run::new(sequence, sequence, dead.attempt)
        })
    }
}

#[cfg(test)]
impl DeadList {
    /// The index has what the list has.
    pub(super) fn assert_sound(&self) {
        let mut timed: Vec<_> = self.letters.iter().map(|(&n, dead)| (dead.at, n)).collect();
        timed.sort_unstable();
        assert!(self.timed.iter().copied().eq(timed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn pages_go_by_time_then_by_sequence() {
        let mut list = DeadList::default();
        list.bury(Run::new(1, 2, 3), "late", at(9));
        list.bury(Run::new(7, 8, 1), "early", at(5));
        let from = |time, sequence| list.from(time, sequence).map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(from(Timestamp::MIN, 0), [7, 8, 1, 2]);
        assert_eq!(from(at(5), 8), [8, 1, 2]);
        assert!(from(at(9), 3).is_empty());
    }

    #[test]
    fn the_revived_leave_the_list_with_their_attempts() {
        let mut list = DeadList::default();
        list.bury(Run::new(1, 3, 4), "why", at(9));
        let revived: Vec<_> = list.revive(2, 9).collect();
        assert_eq!(revived, [Run::new(2, 2, 4), Run::new(3, 3, 4)]);
        list.assert_sound();
        assert_eq!((list.len(), list.get(2)), (1, None));
    }
}

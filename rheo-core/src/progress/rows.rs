//! A store of rows that loads no more than an operation needs, compared with
//! the laws: pieces do what the whole does.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::fixture::Answer;
use super::model::{Pair, Subject, step};
use super::{AttemptRun, Changes, ClaimTurn, DeadEvent, Granted, OpenRun, Parts, Progress};
use crate::backend::{LeaseRefusal, Settlement};
use crate::{GroupSettings, Timestamp, Token};

/// The rows of one group in one partition, by first sequence.
#[derive(Default)]
struct Rows {
    start: u64,
    cursor: u64,
    open: BTreeMap<u64, OpenRun>,
    attempts: BTreeMap<u64, AttemptRun>,
    dead: BTreeMap<u64, DeadEvent>,
    /// Of the rows that an operation does not need, those whose first sequence
    /// is a multiple of this are loaded too.
    spare: u64,
    /// Whether a claim marks what is due before it loads.
    marks: bool,
}

impl Rows {
    fn with_spare(spare: u64, marks: bool) -> Self {
        Self { spare, marks, ..Self::default() }
    }

    fn load(&self, open: impl Fn(&OpenRun) -> bool, range: Option<(u64, u64)>) -> Parts {
        let spare = |first: u64| first.checked_rem(self.spare) == Some(0);
        let within = |first, last| range.is_some_and(|(from, to)| first <= to && from <= last);
        let open = self.open.values().filter(|run| open(run) || spare(run.first));
        let attempts = self.attempts.values();
        let attempts = attempts.filter(|run| within(run.first, run.last) || spare(run.first));
        let within = |sequence| within(sequence, sequence) || spare(sequence);
        let dead = self.dead.values().filter(|letter| within(letter.sequence));
        Parts {
            start: self.start,
            cursor: self.cursor,
            open: open.copied().collect(),
            attempts: attempts.copied().collect(),
            dead: dead.cloned().collect(),
        }
    }

    /// Does an operation on a piece, and writes what it changed.
    fn change<T>(&mut self, before: &Parts, operation: impl FnOnce(&mut Progress) -> T) -> T {
        let mut progress = Progress::from_parts(before.clone());
        let answer = operation(&mut progress);
        progress.assert_sound();
        self.write(before.changes_to(&progress.into_parts()));
        answer
    }

    fn write(&mut self, changes: Changes) {
        self.cursor = changes.cursor.unwrap_or(self.cursor);
        write(&mut self.open, changes.removed_open, changes.put_open, |run| run.first);
        write(&mut self.attempts, changes.removed_attempts, changes.put_attempts, |run| run.first);
        write(&mut self.dead, changes.removed_dead, changes.put_dead, |letter| letter.sequence);
    }

    /// The open runs that a claim needs, by first sequence.
    fn needed(&self, turn: &ClaimTurn<'_>) -> BTreeSet<u64> {
        let GroupSettings { max_attempts, ordered } = *turn.settings;
        let mut needed = BTreeSet::new();
        let mut left = turn.limit as u64;
        for run in self.open.values() {
            let due = run.due <= turn.now;
            if left == 0 || (ordered && !due) {
                needed.extend((left > 0).then_some(run.first));
                break;
            }
            if due {
                needed.insert(run.first);
                let used_up = run.fence.is_some() && run.attempt >= max_attempts;
                let len = run.last - run.first + 1;
                left = if used_up { left } else { left.saturating_sub(len) };
            }
        }
        let unexpired = |run: &&OpenRun| run.fence.is_some() && run.due > turn.now;
        let lease = self.open.values().find(unexpired).filter(|_| ordered);
        needed.extend(lease.map(|run| run.first));
        needed
    }

    fn holding(&self, tokens: &[&Token]) -> Parts {
        let sequences = tokens.iter().map(|token| token.lease_id.position().sequence);
        let sequences: BTreeSet<_> = sequences.collect();
        self.load(|run| sequences.range(run.first..=run.last).next().is_some(), None)
    }
}

fn write<T>(table: &mut BTreeMap<u64, T>, removed: Vec<u64>, put: Vec<T>, key: impl Fn(&T) -> u64) {
    for first in removed {
        assert!(table.remove(&first).is_some(), "{first} is removed and was not there");
    }
    table.extend(put.into_iter().map(|row| (key(&row), row)));
}

impl Subject for Rows {
    fn restart_after(&mut self, sequence: u64) {
        let fresh = Self::with_spare(self.spare, self.marks);
        *self = Self { start: sequence, cursor: sequence, ..fresh };
    }

    fn claim(&mut self, turn: &ClaimTurn<'_>) -> Vec<Granted> {
        if self.marks {
            let due = self.open.values_mut().filter(|run| run.due <= turn.now);
            due.for_each(|run| run.due = Timestamp::MIN);
        }
        let needed = self.needed(turn);
        let piece = self.load(|run| needed.contains(&run.first), None);
        self.change(&piece, |progress| progress.claim(turn))
    }

    fn settle(
        &mut self,
        settlements: &[&Settlement],
        now: Timestamp,
        settings: &GroupSettings,
    ) -> Vec<Answer> {
        let tokens: Vec<_> = settlements.iter().map(|settlement| &settlement.token).collect();
        let piece = self.holding(&tokens);
        self.change(&piece, |progress| progress.settle(settlements, now, settings))
    }

    fn renew(
        &mut self,
        tokens: &[&Token],
        expires_at: Timestamp,
    ) -> Vec<Result<Timestamp, LeaseRefusal>> {
        let piece = self.holding(tokens);
        self.change(&piece, |progress| progress.renew(tokens, expires_at))
    }

    fn reopen(&mut self, first: u64, last: u64, high_watermark: u64) {
        let piece = self.load(|run| run.first <= last && first <= run.last, Some((first, last)));
        self.change(&piece, |progress| progress.reopen(first, last, high_watermark));
    }

    fn whole(&self) -> Progress {
        let runs: Vec<_> = self.open.values().collect();
        assert!(runs.windows(2).all(|pair| pair[0].last < pair[1].first), "{runs:?}");
        Progress::from_parts(self.load(|_| true, Some((0, u64::MAX))))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_do_what_the_whole_does(
        max_attempts in 1..=4_u32,
        ordered: bool,
        start in 0..6_u64,
        spare in 0..4_u64,
        marks: bool,
        steps in vec(step(), 1..60),
    ) {
        let settings = GroupSettings { max_attempts, ordered };
        Pair::compare_all(Rows::with_spare(spare, marks), start, settings, &steps);
    }
}

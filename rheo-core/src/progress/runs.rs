//! [`Runs`]: a map from sequences to values that keeps neighbours of equal value together.

use std::collections::BTreeMap;

/// Sequences from `first` to `last` that share a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<V> {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) value: V,
}

impl<V> Run<V> {
    pub(super) const fn new(first: u64, last: u64, value: V) -> Self {
        Self { first, last, value }
    }

    pub(super) const fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    /// The same sequences with another value.
    pub(super) fn with<W>(&self, value: W) -> Run<W> {
        Run::new(self.first, self.last, value)
    }
}

/// Disjoint runs, each as long as it can be.
///
/// Whoever changes a stretch carves it out and puts it back.
#[derive(Clone, Debug)]
pub(super) struct Runs<V>(BTreeMap<u64, Tail<V>>);

/// A run but for its first sequence, under which it is kept.
#[derive(Clone, Copy, Debug)]
struct Tail<V> {
    last: u64,
    value: V,
}

impl<V: Copy + PartialEq> Tail<V> {
    const fn run(&self, first: u64) -> Run<V> {
        Run::new(first, self.last, self.value)
    }
}

impl<V> Default for Runs<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V: Copy + PartialEq> Runs<V> {
    /// All of them, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = Run<V>> {
        self.0.iter().map(|(&first, tail)| tail.run(first))
    }

    /// The lowest.
    pub(super) fn first(&self) -> Option<Run<V>> {
        self.0.first_key_value().map(|(&first, tail)| tail.run(first))
    }

    /// The one that begins at `first`.
    pub(super) fn beginning_at(&self, first: u64) -> Option<Run<V>> {
        self.0.get(&first).map(|tail| tail.run(first))
    }

    /// The lowest of those that begin at `sequence` or later.
    pub(super) fn from(&self, sequence: u64) -> Option<Run<V>> {
        self.0.range(sequence..).next().map(|(&first, tail)| tail.run(first))
    }

    /// The one that holds `sequence`.
    pub(super) fn at(&self, sequence: u64) -> Option<Run<V>> {
        let (&first, tail) = self.0.range(..=sequence).next_back()?;
        (tail.last >= sequence).then(|| tail.run(first))
    }

    /// Adds a run where there is none, joined with neighbours of equal value.
    /// Returns the run that it became, or became part of.
    pub(super) fn put(&mut self, run: Run<V>) -> Run<V> {
        let mut joined = run;
        if let Some((&first, left)) = self.0.range(..run.first).next_back()
            && left.last + 1 == run.first
            && left.value == run.value
        {
            joined.first = first;
        }
        if let Some(next) = run.last.checked_add(1)
            && let Some(right) = self.beginning_at(next)
            && right.value == run.value
        {
            self.0.remove(&next);
            joined.last = right.last;
        }
        let Run { last, value, .. } = joined;
        self.0.insert(joined.first, Tail { last, value });
        joined
    }

    /// Cuts in two the run that holds both `sequence` and the one before it.
    /// Returns the upper half.
    pub(super) fn split(&mut self, sequence: u64) -> Option<Run<V>> {
        let (_, tail) = self.0.range_mut(..sequence).next_back()?;
        if tail.last < sequence {
            return None;
        }
        let upper = *tail;
        tail.last = sequence - 1;
        self.0.insert(sequence, upper);
        Some(upper.run(sequence))
    }

    /// Takes out whatever lies from `first` to `last`, cutting the runs at both ends.
    pub(super) fn carve(&mut self, first: u64, last: u64) -> Vec<Run<V>> {
        self.split(first);
        if let Some(next) = last.checked_add(1) {
            self.split(next);
        }
        self.take(first, last)
    }

    /// Takes out the runs that begin from `first` to `last`, whole.
    pub(super) fn take(&mut self, first: u64, last: u64) -> Vec<Run<V>> {
        let taken = self.0.extract_if(first..=last, |_, _| true);
        taken.map(|(first, tail)| tail.run(first)).collect()
    }
}

#[cfg(test)]
impl<V: Copy + PartialEq + std::fmt::Debug> Runs<V> {
    /// Disjoint, none empty, and no two that should be one.
    pub(super) fn assert_sound(&self) {
        let runs: Vec<_> = self.iter().collect();
        assert!(runs.iter().all(|run| run.first <= run.last), "{runs:?}");
        for pair in runs.windows(2) {
            let gap = pair[1].first > pair[0].last + 1;
            let border = pair[1].first == pair[0].last + 1 && pair[1].value != pair[0].value;
            assert!(gap || border, "{pair:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(parts: &[(u64, u64, char)]) -> Runs<char> {
        let mut runs = Runs::default();
        for &(first, last, value) in parts {
            runs.put(Run::new(first, last, value));
            runs.assert_sound();
        }
        runs
    }

    fn parts(runs: impl IntoIterator<Item = Run<char>>) -> Vec<(u64, u64, char)> {
        runs.into_iter().map(|run| (run.first, run.last, run.value)).collect()
    }

    #[test]
    fn neighbours_of_equal_value_join() {
        let runs = runs(&[(1, 2, 'a'), (5, 6, 'a'), (7, 7, 'b'), (3, 4, 'a')]);
        assert_eq!(parts(runs.iter()), [(1, 6, 'a'), (7, 7, 'b')]);
    }

    #[test]
    fn carving_leaves_the_ends() {
        let mut runs = runs(&[(1, 4, 'a'), (6, 9, 'b'), (10, 12, 'c')]);
        let carved = runs.carve(3, 10);
        assert_eq!(parts(carved), [(3, 4, 'a'), (6, 9, 'b'), (10, 10, 'c')]);
        assert_eq!(parts(runs.iter()), [(1, 2, 'a'), (11, 12, 'c')]);
        assert!(runs.carve(3, 10).is_empty());
    }

    #[test]
    fn a_sequence_is_found_in_its_run_only() {
        let runs = runs(&[(2, 4, 'a')]);
        let found = |sequence| runs.at(sequence).is_some();
        assert_eq!([1, 2, 4, 5].map(found), [false, true, true, false]);
    }

    #[test]
    fn the_last_possible_sequence_is_like_any_other() {
        let mut runs = runs(&[(1, u64::MAX, 'a')]);
        assert_eq!(parts(runs.carve(u64::MAX, u64::MAX)), [(u64::MAX, u64::MAX, 'a')]);
        runs.put(Run::new(u64::MAX, u64::MAX, 'a'));
        assert_eq!(parts(runs.iter()), [(1, u64::MAX, 'a')]);
    }
}

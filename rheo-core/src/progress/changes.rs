//! [`Changes`]: which rows an operation changed.

use std::collections::BTreeMap;

use super::{AttemptRun, DeadEvent, OpenRun, Parts};
use crate::Timestamp;

/// What an operation changed of the [`Parts`] that were loaded for it.
///
/// Runs are named by their first sequence. A store removes first and then puts;
/// to put is to insert, or to replace what has the same first sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The cursor, if it moved.
    pub cursor: Option<u64>,
    /// Open runs that are no more.
    pub removed_open: Vec<u64>,
    /// Open runs that are new or different.
    pub put_open: Vec<OpenRun>,
    /// Attempts that are no more.
    pub removed_attempts: Vec<u64>,
    /// Attempts that are new or different.
    pub put_attempts: Vec<AttemptRun>,
    /// Dead letters that are no more.
    pub removed_dead: Vec<u64>,
    /// Dead letters that are new or different.
    pub put_dead: Vec<DeadEvent>,
}

impl Changes {
    pub(super) fn between(before: &Parts, after: &Parts) -> Self {
        let (removed_open, put_open) = difference(&before.open, &after.open, |run| run.first);
        let (removed_attempts, put_attempts) =
            difference(&before.attempts, &after.attempts, |run| run.first);
        let (removed_dead, put_dead) =
            difference(&before.dead, &after.dead, |letter| letter.sequence);
        Self {
            cursor: (after.cursor != before.cursor).then_some(after.cursor),
            removed_open,
            put_open,
            removed_attempts,
            put_attempts,
            removed_dead,
            put_dead,
        }
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// When the first of the open runs that are put is due.
    #[must_use]
    pub fn earliest_due(&self) -> Option<Timestamp> {
        self.put_open.iter().map(|run| run.due).min()
    }
}

/// The keys of the rows that are only in `before`, and the rows of `after` that
/// are not so in `before`; both ascend.
fn difference<T: Clone + PartialEq>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> u64,
) -> (Vec<u64>, Vec<T>) {
    let old: BTreeMap<u64, &T> = before.iter().map(|row| (key(row), row)).collect();
    let new: BTreeMap<u64, &T> = after.iter().map(|row| (key(row), row)).collect();
    let removed = old.keys().filter(|key| !new.contains_key(key)).copied().collect();
    let put = new.iter().filter(|(key, row)| old.get(key) != Some(row));
    (removed, put.map(|(_, &row)| row.clone()).collect())
}

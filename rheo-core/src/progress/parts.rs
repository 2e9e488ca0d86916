//! [`Parts`]: a group's progress as rows, for stores that keep it so.

use super::dead::{Dead, DeadList};
use super::open::{Open, Standing};
use super::runs::{Run, Runs};
use super::{Changes, Progress};
use crate::{Fence, Timestamp};

/// Neighbouring events that are leased or waiting, and stand alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// The first sequence.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// How often each of them was handed out.
    pub attempt: u32,
    /// The fence of their lease, expired or not; none where they wait.
    pub fence: Option<Fence>,
    /// When the lease expires or the delay ends. [`Timestamp::MIN`] where a
    /// claim has found that time to have come, or there was nothing to wait for.
    pub due: Timestamp,
}

/// Neighbouring acked or skipped events of the same attempt, where their
/// position implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRun {
    /// The first sequence.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// How often each of them was handed out.
    pub attempt: u32,
}

/// A dead letter and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEvent {
    /// The sequence.
    pub sequence: u64,
    /// How the event was given up.
    pub dead: Dead,
}

/// A [`Progress`] taken apart, or a piece of one.
///
/// A store that keeps progress as rows loads a piece under a lock, makes a
/// `Progress` of it, has that do one operation, and writes what
/// [`changes_to`](Self::changes_to) names. An operation on a piece does what it
/// would do on the whole if the piece has the start, the cursor, and:
///
/// - for `settle` and `renew`: the open runs that hold the tokens' sequences;
/// - for `reopen`: the open runs, attempts and dead letters that have a sequence
///   in the range;
/// - for `claim`: the open runs that are due, lowest first, until they hold as
///   many events as the limit, or all of them. Leases whose attempts are used up
///   are loaded on the way and not counted;
/// - for `claim` in an ordered group: the same, but with runs that are not due
///   among them, up to the first such. And one unexpired lease, if there is any;
/// - for all other methods: everything.
///
/// More does no harm. A run is loaded whole, with the first and the last
/// sequence that it has in the store.
///
/// Neighbours that stand alike join where both are loaded. Where they are not,
/// they stay two rows, which means the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Events up to this one were before the group's start.
    pub start: u64,
    /// Events above this one were never handed out.
    pub cursor: u64,
    /// Leased and waiting events. Runs are disjoint.
    pub open: Vec<OpenRun>,
    /// Attempts that position does not imply. Runs are disjoint.
    pub attempts: Vec<AttemptRun>,
    /// The dead letters.
    pub dead: Vec<DeadEvent>,
}

impl Parts {
    /// What to write so that these parts become `after`, which is the same
    /// piece after an operation.
    #[must_use]
    pub fn changes_to(&self, after: &Self) -> Changes {
        Changes::between(self, after)
    }
}

impl Progress {
    /// Puts together what [`into_parts`](Self::into_parts) took apart, or a
    /// piece of it. The order of rows does not matter.
    ///
    /// A lease that was found due is still a lease: its fence settles and
    /// renews it until another claim hands its events out.
    #[must_use]
    pub fn from_parts(parts: Parts) -> Self {
        let mut open = Open::default();
        for OpenRun { first, last, attempt, fence, due } in parts.open {
            let standing = match fence {
                Some(fence) => Standing::leased(attempt, fence, due),
                None => Standing::waiting_until(attempt, due),
            };
            open.put(Run::new(first, last, standing));
        }
        open.advance(Timestamp::MIN);
        let mut attempts = Runs::default();
        for AttemptRun { first, last, attempt } in parts.attempts {
            attempts.put(Run::new(first, last, attempt));
        }
        let mut dead = DeadList::default();
        for letter in parts.dead {
            dead.insert(letter.sequence, letter.dead);
        }
        Self { start: parts.start, cursor: parts.cursor, open, attempts, dead }
    }

    /// Takes it apart. All rows ascend by sequence.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        let open_run = |run: Run<Standing>| OpenRun {
            first: run.first,
            last: run.last,
            attempt: run.value.attempt,
            fence: run.value.fence(),
            due: self.open.due_at(&run),
        };
        let attempt_run =
            |run: Run<u32>| AttemptRun { first: run.first, last: run.last, attempt: run.value };
        let dead_event = |(sequence, dead)| DeadEvent { sequence, dead };
        Parts {
            start: self.start,
            cursor: self.cursor,
            open: self.open.iter().map(open_run).collect(),
            attempts: self.attempts.iter().map(attempt_run).collect(),
            dead: self.dead.into_letters().map(dead_event).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Member, at};
    use super::*;
    use crate::Outcome;

    fn open(first: u64, last: u64, due: Timestamp) -> OpenRun {
        OpenRun { first, last, attempt: 1, fence: Some(Fence::from_u128(1)), due }
    }

    /// A member whose progress went through parts.
    fn reloaded(mut member: Member) -> Member {
        let parts = member.progress.into_parts();
        member.progress = Progress::from_parts(parts.clone());
        assert_eq!(member.progress.clone().into_parts(), parts);
        member
    }

    #[test]
    fn a_lease_that_was_found_due_is_still_a_lease() {
        let mut member = Member::new(5);
        member.claim(4);
        let token = member.token(4);
        member.expire();
        member.claim(1);
        let mut member = reloaded(member);
        let parts = member.progress.clone().into_parts();
        assert_eq!(parts.open[1], open(2, 4, at(10)));
        member.claim(0);
        let mut member = reloaded(member);
        let parts = member.progress.clone().into_parts();
        assert_eq!(parts.open[1], open(2, 4, Timestamp::MIN));
        let counts = member.progress.progress(5, at(member.now));
        assert_eq!((counts.leased, counts.waiting), (1, 3));
        assert_eq!(member.progress.renew(&[&token], at(30)), [Ok(at(30))]);
        assert_eq!(member.claim(9), [(2, 3, 2), (5, 5, 1)]);
    }

    #[test]
    fn every_kind_of_row_comes_back() {
        let mut member = Member::new(9);
        member.progress = Progress::starting_after(2);
        member.claim(6);
        let retry = Outcome::retry_after("r", std::time::Duration::from_micros(7));
        member.settle(&[(3, Outcome::retry("r")), (4, retry), (5, Outcome::reject("no"))]);
        member.claim(1);
        member.ack((3, 3, 2));
        let parts = reloaded(member).progress.into_parts();
        assert_eq!((parts.start, parts.cursor), (2, 8));
        let waiting = OpenRun { fence: None, ..open(4, 4, at(7)) };
        assert_eq!(parts.open, [waiting, open(6, 8, at(10))]);
        assert_eq!(parts.attempts, [AttemptRun { first: 3, last: 3, attempt: 2 }]);
        let dead = Dead { attempt: 1, reason: "no".into(), at: at(0) };
        assert_eq!(parts.dead, [DeadEvent { sequence: 5, dead }]);
    }

    #[test]
    fn neighbours_that_stand_alike_join() {
        let parts = Parts {
            cursor: 6,
            open: vec![open(4, 6, at(3)), open(1, 1, at(3)), open(2, 3, at(3))],
            ..Parts::default()
        };
        let joined = Progress::from_parts(parts.clone()).into_parts();
        assert_eq!(joined.open, [open(1, 6, at(3))]);
        let changes = parts.changes_to(&joined);
        assert_eq!(changes.removed_open, [2, 4]);
        assert_eq!(changes.put_open, joined.open);
        assert_eq!((changes.cursor, changes.earliest_due()), (None, Some(at(3))));
        assert!(!changes.is_empty() && joined.changes_to(&joined).is_empty());
    }
}

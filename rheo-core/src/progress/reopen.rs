//! Reopening, for replay: events become claimable again and keep their attempts.

use super::Progress;
use super::open::Standing;
use super::runs::Run;

impl Progress {
    /// Makes every event from `first` to `last` claimable at once: leases are
    /// revoked, delays dropped, dead letters taken off the list. Attempts are kept.
    ///
    /// What was never handed out or skipped is claimable already, and what is
    /// above the partition's high watermark does not exist: both stay as they are.
    ///
    /// The cost grows with the pieces of different state in the range, not with
    /// its length.
    pub fn reopen(&mut self, first: u64, last: u64, high_watermark: u64) {
        let first = first.max(1);
        let last = last.min(self.cursor).min(high_watermark);
        if first > last {
            return;
        }
        for run in self.take_attempts(first, last) {
            self.open.put(run.with(Standing::waiting(run.value)));
        }
    }

    /// Takes out all that is known of a range, and returns its attempts, without a gap.
    fn take_attempts(&mut self, first: u64, last: u64) -> Vec<Run<u32>> {
        let open = self.open.carve(first, last);
        let mut known: Vec<_> = open.iter().map(|run| run.with(run.value.attempt)).collect();
        known.extend(self.dead.revive(first, last));
        known.extend(self.attempts.carve(first, last));
        known.sort_unstable_by_key(|run| run.first);

        let mut all = Vec::with_capacity(known.len());
        let mut next = Some(first);
        for run in known {
            if let Some(gap) = next.filter(|&next| next < run.first) {
                all.extend(self.implied(gap, run.first - 1));
            }
            next = run.last.checked_add(1);
            all.push(run);
        }
        if let Some(gap) = next.filter(|&next| next <= last) {
            all.extend(self.implied(gap, last));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Member;
    use super::*;
    use crate::Outcome;
    use crate::backend::LeaseRefusal;

    #[test]
    fn attempts_are_kept_and_leases_revoked() {
        let mut member = Member::new(5);
        member.claim(4);
        member.settle(&[(1, Outcome::Ack), (2, Outcome::retry("r")), (3, Outcome::reject("r"))]);
        member.claim(1);
        member.ack((2, 2, 2));
        member.progress.reopen(1, 9, 5);
        member.progress.assert_sound();
        assert_eq!(member.settle(&[(4, Outcome::Ack)]), [Err(LeaseRefusal::Stale)]);
        assert_eq!((member.dead(), member.progress.frontier()), (vec![], 0));
        assert_eq!(member.claim(9), [(1, 1, 2), (2, 2, 3), (3, 4, 2), (5, 5, 1)]);
    }

    #[test]
    fn above_the_most_attempts_a_replayed_event_is_handed_out_once_more() {
        let mut member = Member::new(1);
        for _ in 0..3 {
            member.claim(1);
            member.settle(&[(1, Outcome::retry("why"))]);
        }
        member.progress.reopen(1, 1, 1);
        assert_eq!(member.claim(1), [(1, 1, 4)]);
        member.settle(&[(1, Outcome::retry("still"))]);
        assert_eq!(member.dead(), [(1, 4, "still")]);
    }

    #[test]
    fn skipped_events_begin_at_their_first_attempt() {
        let mut member = Member::new(6);
        member.progress = Progress::starting_after(3);
        member.claim(2);
        member.ack((4, 5, 1));
        member.progress.reopen(2, 9, 6);
        assert_eq!(member.claim(9), [(2, 3, 1), (4, 5, 2), (6, 6, 1)]);
        member.ack((2, 6, 0));
        member.progress.reopen(1, 9, 6);
        assert_eq!(member.claim(9), [(1, 1, 1), (2, 3, 2), (4, 5, 3), (6, 6, 2)]);
    }

    #[test]
    fn events_that_do_not_exist_stay_skipped() {
        let mut member = Member::new(2);
        member.progress = Progress::starting_after(5);
        member.progress.reopen(1, 9, 2);
        member.high_watermark = 7;
        assert_eq!(member.claim(9), [(1, 2, 1), (6, 7, 1)]);
    }

    #[test]
    fn a_long_history_is_one_run() {
        let mut member = Member::new(1_000_000_000);
        member.progress.cursor = 1_000_000_000;
        member.progress.reopen(1, u64::MAX, 1_000_000_000);
        assert_eq!(member.progress.open.iter().count(), 1);
        assert_eq!(member.claim(2), [(1, 2, 2)]);
        assert_eq!(member.progress.open.iter().count(), 2);
    }
}

//! Claiming: what is due first, then what is new.

use super::Progress;
use super::open::Standing;
use super::runs::Run;
use crate::{Fence, GroupSettings, Timestamp};

/// One partition's turn in a claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTurn<'a> {
    /// How many events to hand out at most.
    pub limit: usize,
    /// The partition's last sequence.
    pub high_watermark: u64,
    /// The secret of the claim, which no claim had before.
    pub fence: Fence,
    /// The instant that judges what is due.
    pub now: Timestamp,
    /// When the new leases expire.
    pub expires_at: Timestamp,
    /// The group's rules.
    pub settings: &'a GroupSettings,
}

/// A run of events that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The first sequence.
    pub first: u64,
    /// The last sequence.
    pub last: u64,
    /// The attempt that this is, for each of them.
    pub attempt: u32,
}

impl Progress {
    /// Hands out events that are due, lowest first, then new ones, and returns
    /// the runs in ascending order.
    ///
    /// An expired lease whose attempts are used up becomes a dead letter on the
    /// way. An ordered group gets nothing while a lease is unexpired, and
    /// nothing from the first event on that is not due.
    pub fn claim(&mut self, turn: &ClaimTurn<'_>) -> Vec<Granted> {
        let mut granted = Vec::new();
        if turn.settings.ordered && self.open.last_expiry() > Some(turn.now) {
            return granted;
        }
        self.open.advance(turn.now);
        let mut left = turn.limit as u64;
        let mut next = 0;
        while left > 0
            && let Some(run) = self.next_claimable(next, turn)
        {
            if run.value.is_leased() && run.value.attempt >= turn.settings.max_attempts {
                self.give_up(run, turn);
                continue;
            }
            let last = run.last.min(run.first.saturating_add(left - 1));
            let attempt = run.value.attempt.saturating_add(1);
            self.open.carve(run.first, last);
            left -= self.grant(Run::new(run.first, last, attempt), turn, &mut granted);
            next = last.saturating_add(1);
        }
        let held_up = turn.settings.ordered && self.open.from(next).is_some();
        if left > 0 && !held_up && turn.high_watermark > self.cursor {
            let first = self.cursor + 1;
            self.cursor = turn.high_watermark.min(self.cursor.saturating_add(left));
            self.grant(Run::new(first, self.cursor, 1), turn, &mut granted);
        }
        granted
    }

    /// The next open run to hand out; in an ordered group, from `next` on.
    fn next_claimable(&self, next: u64, turn: &ClaimTurn<'_>) -> Option<Run<Standing>> {
        if turn.settings.ordered {
            self.open.from(next).filter(|run| run.value.due_at() <= turn.now)
        } else {
            self.open.first_ready()
        }
    }

    fn give_up(&mut self, run: Run<Standing>, turn: &ClaimTurn<'_>) {
        let (attempt, most) = (run.value.attempt, turn.settings.max_attempts);
        let reason = format!("the lease of attempt {attempt} of {most} expired");
        self.open.carve(run.first, run.last);
        self.dead.bury(run.with(attempt), &reason, turn.now);
    }

    /// Leases a run that is not open, and returns how many events that were.
    fn grant(&mut self, run: Run<u32>, turn: &ClaimTurn<'_>, granted: &mut Vec<Granted>) -> u64 {
        let attempt = run.value;
        let standing = Standing::leased(attempt, turn.fence, turn.expires_at);
        self.open.put(run.with(standing));
        granted.push(Granted { first: run.first, last: run.last, attempt });
        run.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::Member;
    use crate::Outcome;

    #[test]
    fn redeliveries_come_before_new_events() {
        let mut member = Member::new(9);
        assert_eq!(member.claim(5), [(1, 5, 1)]);
        member.settle(&[(2, Outcome::retry("r")), (4, Outcome::Release)]);
        assert_eq!(member.claim(3), [(2, 2, 2), (4, 4, 1), (6, 6, 1)]);
    }

    #[test]
    fn one_expired_lease_is_found_among_many_open_ones() {
        let mut member = Member::new(200_000);
        member.claim(100_000);
        member.now = 1;
        member.claim(100_000);
        let token = member.token(150_000);
        member.progress.renew(&[&token], super::super::fixture::at(2));
        member.now = 2;
        assert_eq!(member.claim(10), [(150_000, 150_000, 2)]);
    }

    #[test]
    fn an_event_is_handed_out_as_often_as_attempts_allow() {
        let mut member = Member::new(2);
        for attempt in 1..=3 {
            assert_eq!(member.claim(1), [(1, 1, attempt)]);
            member.expire();
        }
        assert_eq!(member.claim(1), [(2, 2, 1)]);
        assert_eq!(member.dead(), [(1, 3, "the lease of attempt 3 of 3 expired")]);
    }

    #[test]
    fn a_delay_holds_up_the_rest_only_in_an_ordered_group() {
        for (ordered, during) in [(false, vec![(3, 3, 1), (4, 4, 1)]), (true, vec![])] {
            let mut member = Member::new(4);
            member.settings.ordered = ordered;
            member.claim(3);
            let retry = Outcome::retry_after("r", Duration::from_micros(5));
            member.settle(&[(1, Outcome::Ack), (2, retry), (3, Outcome::Release)]);
            assert_eq!(member.claim(9), during);
            member.now = 5;
            let after =
                if ordered { vec![(2, 2, 2), (3, 3, 1), (4, 4, 1)] } else { vec![(2, 2, 2)] };
            assert_eq!(member.claim(9), after);
        }
    }

    #[test]
    fn an_ordered_group_waits_for_leases_above_too() {
        let mut member = Member::new(3);
        member.settings.ordered = true;
        member.claim(2);
        member.settle(&[(1, Outcome::retry("r"))]);
        assert_eq!(member.claim(9), []);
        member.expire();
        assert_eq!(member.claim(9), [(1, 1, 2), (2, 2, 2), (3, 3, 1)]);
    }
}

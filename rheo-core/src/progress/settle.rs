//! Settling and renewing: the token decides, whatever the time.

use super::Progress;
use super::open::Standing;
use super::runs::Run;
use crate::backend::{LeaseRefusal, Settlement};
use crate::{GroupSettings, Outcome, Receipt, Timestamp, Token};

impl Progress {
    /// Ends leases of this partition, each by itself, and answers in the given order.
    ///
    /// A lease is current as long as nobody else has claimed its event, also
    /// after its expiry. What is refused changes nothing.
    pub fn settle(
        &mut self,
        settlements: &[&Settlement],
        now: Timestamp,
        settings: &GroupSettings,
    ) -> Vec<Result<(), LeaseRefusal>> {
        let tokens: Vec<&Token> = settlements.iter().map(|settlement| &settlement.token).collect();
        let outcome = |index: usize| &settlements[index].outcome;
        self.by_stretch(
            &tokens,
            |one, other| outcome(one) == outcome(other),
            |progress, run, index| progress.end(run, outcome(index), now, settings),
        )
    }

    /// Sets when leases of this partition expire, each by itself, and answers
    /// in the given order.
    pub fn renew(
        &mut self,
        tokens: &[&Token],
        expires_at: Timestamp,
    ) -> Vec<Result<Timestamp, LeaseRefusal>> {
        self.by_stretch(
            tokens,
            |_, _| true,
            |progress, run, index| {
                let fence = tokens[index].lease_id.fence();
                let renewed = Standing::leased(run.value.attempt, fence, expires_at);
                progress.open.put(run.with(renewed));
                expires_at
            },
        )
    }

    /// Carves out what the tokens lease and has `change` put it where it belongs.
    ///
    /// What one claim leased and the caller treats alike is changed in one go,
    /// so a batch costs little more than one lease. Events do not depend on each
    /// other, hence the order by sequence; it is stable, so of two tokens for the
    /// same event the first is the first.
    fn by_stretch<T: Copy>(
        &mut self,
        tokens: &[&Token],
        alike: impl Fn(usize, usize) -> bool,
        change: impl Fn(&mut Self, Run<Standing>, usize) -> T,
    ) -> Vec<Result<T, LeaseRefusal>> {
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|&index| sequence(tokens[index]));
        let mut answers = vec![Err(LeaseRefusal::Stale); tokens.len()];
        let mut rest = order.as_slice();
        while let Some(&head) = rest.first() {
            let (length, answer) = match self.current(tokens[head]) {
                Ok(run) => {
                    let within = |index: usize| sequence(tokens[index]) <= run.last;
                    let goes_on = |pair: &&[usize]| {
                        follows(tokens[pair[0]], tokens[pair[1]])
                            && within(pair[1])
                            && alike(head, pair[1])
                    };
                    let length = 1 + rest.windows(2).take_while(goes_on).count();
                    let first = sequence(tokens[head]);
                    let last = sequence(tokens[rest[length - 1]]);
                    self.open.carve(first, last);
                    let stretch = Run::new(first, last, run.value);
                    (length, Ok(change(self, stretch, head)))
                }
                Err(refusal) => (1, Err(refusal)),
            };
            let (stretch, later) = rest.split_at(length);
            stretch.iter().for_each(|&index| answers[index] = answer);
            rest = later;
        }
        answers
    }

    /// The run in which `token` is the current lease of its event.
    fn current(&self, token: &Token) -> Result<Run<Standing>, LeaseRefusal> {
        let run = self.open.at(sequence(token)).ok_or(LeaseRefusal::Stale)?;
        if run.value.fence() != Some(token.lease_id.fence()) {
            return Err(LeaseRefusal::Stale);
        }
        if !has_own_receipt(token) {
            return Err(LeaseRefusal::ReceiptMismatch);
        }
        Ok(run)
    }

    fn end(
        &mut self,
        run: Run<Standing>,
        outcome: &Outcome,
        now: Timestamp,
        settings: &GroupSettings,
    ) {
        let attempt = run.value.attempt;
        match outcome {
            Outcome::Ack => self.finish(run.with(attempt)),
            Outcome::Reject { reason } => self.dead.bury(run.with(attempt), reason, now),
            Outcome::Retry { reason, .. } if attempt >= settings.max_attempts => {
                self.dead.bury(run.with(attempt), reason, now);
            }
            Outcome::Retry { after, .. } if after.is_zero() => {
                self.open.put(run.with(Standing::waiting(attempt)));
            }
            Outcome::Retry { after, .. } => {
                self.open.put(run.with(Standing::waiting_until(attempt, now + *after)));
            }
            Outcome::Release => {
                let uncounted = attempt.saturating_sub(1);
                self.open.put(run.with(Standing::waiting(uncounted)));
            }
        }
    }

    /// Keeps the attempts of acked events, where position does not imply them.
    fn finish(&mut self, run: Run<u32>) {
        for implied in self.implied(run.first, run.last) {
            if implied.value != run.value {
                self.attempts.put(implied.with(run.value));
            }
        }
    }
}

const fn sequence(token: &Token) -> u64 {
    token.lease_id.position().sequence
}

fn has_own_receipt(token: &Token) -> bool {
    token.receipt == Receipt::lease(token.lease_id)
}

/// Whether `next` is of the same claim as `token` and for the event after it.
fn follows(token: &Token, next: &Token) -> bool {
    sequence(token).checked_add(1) == Some(sequence(next))
        && token.lease_id.fence() == next.lease_id.fence()
        && has_own_receipt(next)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::fixture::{Member, at};
    use super::*;

    #[test]
    fn the_token_decides_and_not_the_clock() {
        let mut member = Member::new(2);
        member.claim(2);
        member.expire();
        let old = member.token(2);
        assert_eq!(member.settle(&[(1, Outcome::Ack)]), [Ok(())]);
        assert_eq!(member.claim(2), [(2, 2, 2)]);
        assert_eq!(member.progress.renew(&[&old], at(99)), [Err(LeaseRefusal::Stale)]);
    }

    #[test]
    fn each_lease_is_answered_by_itself_and_in_its_place() {
        let mut member = Member::new(5);
        member.claim(4);
        let acks = [3, 5, 2, 3, 1].map(|sequence| (sequence, Outcome::Ack));
        let stale = Err(LeaseRefusal::Stale);
        assert_eq!(member.settle(&acks), [Ok(()), stale, Ok(()), stale, Ok(())]);
        assert_eq!(member.progress.frontier(), 3);
    }

    #[test]
    fn a_wrong_receipt_changes_nothing() {
        let mut member = Member::new(3);
        member.claim(3);
        let settlements = [1, 2, 3].map(|sequence| {
            let mut token = member.token(sequence);
            if sequence == 2 {
                token.receipt = Receipt::entry("0-2");
            }
            let outcome = Outcome::Ack;
            Settlement { token, outcome }
        });
        let settlements = settlements.each_ref();
        let answers = member.progress.settle(&settlements, at(0), &member.settings);
        assert_eq!(answers, [Ok(()), Err(LeaseRefusal::ReceiptMismatch), Ok(())]);
        assert_eq!(member.settle(&[(2, Outcome::Ack)]), [Ok(())]);
    }

    #[test]
    fn outcomes_lead_where_the_laws_say() {
        let mut member = Member::new(4);
        member.claim(4);
        let later = Outcome::retry_after("later", Duration::from_micros(3));
        member.settle(&[
            (1, Outcome::Release),
            (2, Outcome::retry("again")),
            (3, later),
            (4, Outcome::reject("never")),
        ]);
        assert_eq!(member.dead(), [(4, 1, "never")]);
        assert_eq!(member.claim(9), [(1, 1, 1), (2, 2, 2)]);
        member.now = 3;
        assert_eq!(member.claim(9), [(3, 3, 2)]);
    }

    #[test]
    fn the_last_retry_is_a_dead_letter() {
        let mut member = Member::new(1);
        for attempt in 1..=3 {
            assert_eq!(member.claim(1), [(1, 1, attempt)]);
            member.settle(&[(1, Outcome::retry("why"))]);
        }
        assert_eq!(member.dead(), [(1, 3, "why")]);
        assert_eq!((member.claim(1), member.progress.frontier()), (vec![], 1));
    }

    #[test]
    fn a_renewal_may_lengthen_or_shorten_a_lease() {
        for (expires_at, before, after) in [(30, 29, 30), (5, 4, 5)] {
            let mut member = Member::new(3);
            member.claim(3);
            let tokens = [1, 2, 3].map(|sequence| member.token(sequence));
            let answers = member.progress.renew(&tokens.each_ref(), at(expires_at));
            assert_eq!(answers, [Ok(at(expires_at)); 3]);
            member.now = before;
            assert_eq!(member.claim(9), []);
            member.now = after;
            assert_eq!(member.claim(9), [(1, 3, 2)]);
        }
    }
}

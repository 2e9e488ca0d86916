//! Settling and renewing leases.

use mongodb::ClientSession;
use rheo_core::backend::{GroupRef, LeaseRefusal, Now, Range, Renew, Settle, Settlement};
use rheo_core::progress::{OpenRun, Progress};
use rheo_core::{Outcome, Result, Timestamp, Token};

use crate::Store;
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Beside, Group, Member, Piece, Saving};

type Answer<T> = Result<T, LeaseRefusal>;

impl Operation for Settle {
    const NAME: &'static str = "settle";
    type Output = Vec<Answer<()>>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.settlements, |settlement| &settlement.token);
        let group = leases.find_group(store, session, Self::NAME, &self.group, self.now).await?;
        let changing = Changing {
            acks: self.settlements.iter().any(|settlement| settlement.outcome == Outcome::Ack),
            frees: group.settings.ordered || self.settlements.iter().any(hands_back),
        };
        let settle = |progress: &mut Progress, settlements: &[&Settlement]| {
            progress.settle(settlements, group.now, &group.settings)
        };
        leases.change(store, session, &group, changing, settle).await
    }
}

impl Operation for Renew {
    const NAME: &'static str = "renew";
    type Output = Vec<Answer<Timestamp>>;

    async fn run(
        &self,
        store: &Store,
        session: &mut ClientSession,
    ) -> Result<Self::Output, Failure> {
        let leases = Leases::of(&self.tokens, |token| token);
        let group = leases.find_group(store, session, Self::NAME, &self.group, self.now).await?;
        let expires_at = group.now + self.lease;
        let renew = |progress: &mut Progress, tokens: &[&Token]| progress.renew(tokens, expires_at);
        leases.change(store, session, &group, Changing::default(), renew).await
    }
}

/// What a change of leases can bring about.
#[derive(Clone, Copy, Debug, Default)]
struct Changing {
    /// Events may be acked.
    acks: bool,
    /// Others may have something to claim.
    frees: bool,
}

/// Items about leases, by partition and sequence.
struct Leases<'a, T> {
    items: &'a [T],
    /// Their places, by partition, and by sequence inside it.
    order: Vec<usize>,
    token: fn(&T) -> &Token,
}

impl<'a, T> Leases<'a, T> {
    fn of(items: &'a [T], token: fn(&T) -> &Token) -> Self {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&at| {
            let position = token(&items[at]).lease_id.position();
            (position.partition, position.sequence)
        });
        Self { items, order, token }
    }

    fn token(&self, at: usize) -> &'a Token {
        (self.token)(&self.items[at])
    }

    fn partition(&self, at: usize) -> u32 {
        self.token(at).lease_id.position().partition
    }

    fn by_partition(&self) -> impl Iterator<Item = &[usize]> {
        self.order.chunk_by(|&a, &b| self.partition(a) == self.partition(b))
    }

    /// Where they lie, neighbours together.
    fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for &at in &self.order {
            let position = self.token(at).lease_id.position();
            match ranges.last_mut() {
                Some(range)
                    if range.partition == position.partition
                        && position.sequence <= range.last.saturating_add(1) =>
                {
                    range.last = position.sequence;
                }
                _ => ranges.push(Range {
                    partition: position.partition,
                    first: position.sequence,
                    last: position.sequence,
                }),
            }
        }
        ranges
    }

    /// Finds the group in the partitions of these leases. One that the stream
    /// does not have is left out.
    async fn find_group(
        &self,
        store: &Store,
        session: &mut ClientSession,
        operation: &'static str,
        name: &GroupRef,
        now: Now,
    ) -> Result<Group, Failure> {
        let numbers: Vec<u32> =
            self.by_partition().map(|places| self.partition(places[0])).collect();
        store.find_group(session, operation, name, &numbers, Beside::Nothing, now).await
    }

    /// Changes each partition's leases, and answers in the order of the items.
    async fn change<A: Clone>(
        &self,
        store: &Store,
        session: &mut ClientSession,
        group: &Group,
        changing: Changing,
        apply: impl Fn(&mut Progress, &[&'a T]) -> Vec<Answer<A>>,
    ) -> Result<Vec<Answer<A>>, Failure> {
        let mut answers = vec![Err(LeaseRefusal::Stale); self.items.len()];
        let ranges = self.ranges();
        let mut runs = store.runs_in(session, group, &ranges).await?;
        let keeps = |member: &Member| {
            let runs = runs.get(&member.partition);
            runs.is_some_and(|runs| runs.iter().any(|run| leaves_attempts(run, member)))
        };
        let mut attempts = if changing.acks && group.members.iter().any(keeps) {
            store.attempts_in(session, group, &widened(&ranges)).await?
        } else {
            Default::default()
        };
        for places in self.by_partition() {
            let number = self.partition(places[0]);
            let Some(&member) = group.members.iter().find(|member| member.partition == number)
            else {
                continue;
            };
            let open = runs.remove(&number).unwrap_or_default();
            let attempts = attempts.remove(&number).unwrap_or_default();
            let piece = Piece::new(member, open, attempts, Vec::new());
            let mut progress = piece.progress();
            let chosen: Vec<&T> = places.iter().map(|&at| &self.items[at]).collect();
            for (&at, answer) in places.iter().zip(apply(&mut progress, &chosen)) {
                answers[at] = answer;
            }
            let saving = Saving { frees: changing.frees, ..Saving::default() };
            store.save(session, group, &piece, progress, saving).await?;
        }
        Ok(answers)
    }
}

/// Whether acking the run leaves attempts that its position does not imply.
fn leaves_attempts(run: &OpenRun, member: &Member) -> bool {
    run.attempt != 1 || run.first <= member.start
}

/// The ranges with their neighbours, so that kept attempts join.
pub(crate) fn widened(ranges: &[Range]) -> Vec<Range> {
    let widen = |range: &Range| Range {
        first: range.first.saturating_sub(1),
        last: range.last.saturating_add(1),
        ..*range
    };
    ranges.iter().map(widen).collect()
}

/// Whether the event becomes claimable again.
fn hands_back(settlement: &Settlement) -> bool {
    matches!(settlement.outcome, Outcome::Retry { .. } | Outcome::Release)
}

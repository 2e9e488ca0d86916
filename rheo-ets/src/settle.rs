//! Settling and renewing leases.

use rheo_core::backend::{LeaseRefusal, Renew, Settle, Settlement};
use rheo_core::progress::Progress;
use rheo_core::{Outcome, Result, Timestamp, Token};

use crate::Memory;
use crate::store::Group;

type Answer<T> = Result<T, LeaseRefusal>;

impl Memory {
    pub(crate) fn settle_leases(&self, request: &Settle) -> Result<Vec<Answer<()>>> {
        let (stream, group) = self.group("settle", &request.group)?;
        let now = request.now.or_system();
        let answers = in_partitions(
            &group,
            &request.settlements,
            |settlement| &settlement.token,
            |progress, settlements| progress.settle(settlements, now, &group.settings),
        );
        if group.settings.ordered || request.settlements.iter().any(hands_back) {
            stream.bell.ring();
        }
        Ok(answers)
    }

    pub(crate) fn renew_leases(&self, request: &Renew) -> Result<Vec<Answer<Timestamp>>> {
        let (_, group) = self.group("renew", &request.group)?;
        let expires_at = request.now.or_system() + request.lease;
        Ok(in_partitions(
            &group,
            &request.tokens,
            |token| token,
            |progress, tokens| progress.renew(tokens, expires_at),
        ))
    }
}

/// Whether the event becomes claimable again.
fn hands_back(settlement: &Settlement) -> bool {
    matches!(settlement.outcome, Outcome::Retry { .. } | Outcome::Release)
}

/// Applies to each partition the items whose leases lie in it, in their
/// order, and returns the answers in the order of the items.
fn in_partitions<T, A: Clone>(
    group: &Group,
    items: &[T],
    token: impl Fn(&T) -> &Token,
    mut apply: impl FnMut(&mut Progress, &[&T]) -> Vec<Answer<A>>,
) -> Vec<Answer<A>> {
    let partition = |item: &T| token(item).lease_id.position().partition;
    let mut apply = |number: u32, items: &[&T]| match group.progress.get(number as usize) {
        Some(progress) => apply(&mut crate::lock::lock(progress), items),
        None => vec![Err(LeaseRefusal::Stale); items.len()],
    };
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&at| partition(&items[at]));
    let mut answers = vec![Err(LeaseRefusal::Stale); items.len()];
    for places in order.chunk_by(|&a, &b| partition(&items[a]) == partition(&items[b])) {
        let chosen: Vec<&T> = places.iter().map(|&at| &items[at]).collect();
        let answered = apply(partition(chosen[0]), &chosen);
        for (&at, answer) in places.iter().zip(answered) {
            answers[at] = answer;
        }
    }
    answers
}

//! Settling and renewing leases.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use metrics::counter;

use super::coalesce::Lane;
use super::fetch::valid_lease;
use super::{MAX_BATCH, Rheo};
use crate::backend::{GroupRef, LeaseRefusal, Renew, Settle, Settlement};
use crate::{
    Error, ErrorKind, Lease, Outcome, Position, Result, StreamName, Timestamp, stored_reason,
};

type Answer = Result<(), LeaseRefusal>;
type SettleLane = Lane<Settlement, Answer>;

/// One lane for each group.
#[derive(Debug, Default)]
pub(super) struct SettleLanes(Mutex<HashMap<GroupRef, Arc<SettleLane>>>);

impl SettleLanes {
    pub(super) fn remove(&self, stream: &StreamName) {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|group, _| group.stream.name != *stream);
    }

    pub(super) fn remove_group(&self, group: &GroupRef) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(group);
    }

    fn get(&self, rheo: &Rheo, group: &GroupRef) -> Arc<SettleLane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(group.clone()).or_insert_with(|| {
            // Weak: the instance owns the lane, not the lane the instance.
            let (inner, group) = (Arc::downgrade(&rheo.inner), group.clone());
            Arc::new(Lane::new(
                |settlement: &Settlement| size_of_val(settlement),
                move |settlements| {
                    let (inner, group) = (inner.upgrade(), group.clone());
                    async move {
                        let inner = inner.ok_or_else(super::coalesce::abandoned)?;
                        Rheo { inner }.settle_now(&group, settlements).await
                    }
                    .boxed()
                },
            ))
        });
        Arc::clone(lane)
    }
}

impl Rheo {
    /// Acknowledges: the event is done for the lease's group.
    ///
    /// Like every settle, it succeeds exactly when the lease is still the
    /// current one, and expiry alone does not end a lease.
    ///
    /// # Errors
    /// Those of [`Rheo`], and `StaleLease` where the lease is no longer
    /// current, `ReceiptMismatch` where it is and the receipt is not its own.
    /// Nothing changes then.
    ///
    /// # Cancellation
    /// The lease may or may not be settled; settling it again tells
    /// (`StaleLease`: it was).
    pub async fn ack(&self, lease: impl AsRef<Lease>) -> Result<()> {
        self.settle_one("ack", lease.as_ref(), Outcome::Ack).await
    }

    /// Hands the event back to be claimed again at once or after a delay; a
    /// dead letter where its attempts are used up.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn retry(
        &self,
        lease: impl AsRef<Lease>,
        reason: impl Into<String>,
        after: Duration,
    ) -> Result<()> {
        let outcome = Outcome::retry_after(reason, after);
        self.settle_one("retry", lease.as_ref(), outcome).await
    }

    /// Gives the event up: it becomes a dead letter.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn reject(&self, lease: impl AsRef<Lease>, reason: impl Into<String>) -> Result<()> {
        self.settle_one("reject", lease.as_ref(), Outcome::reject(reason)).await
    }

    /// Hands the claim back unused: the event is claimable at once, and the
    /// attempt is not counted.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// As for [`ack`](Self::ack).
    pub async fn release(&self, lease: impl AsRef<Lease>) -> Result<()> {
        self.settle_one("release", lease.as_ref(), Outcome::Release).await
    }

    /// Settles many leases, each with its outcome, and answers for each by
    /// itself, in their order: one stale lease never spoils the others.
    ///
    /// The leases of one group go in one round trip where the store allows it.
    ///
    /// # Errors
    /// Each answer as for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// Each lease may or may not be settled.
    pub async fn settle<L: AsRef<Lease>>(
        &self,
        settlements: impl IntoIterator<Item = (L, Outcome)>,
    ) -> Vec<Result<()>> {
        let groups = by_group(settlements);
        let count = groups.iter().map(|group| group.indices.len()).sum();
        let mut answers = vec![Ok(()); count];
        for LeasesOfGroup { first, indices, settlements } in groups {
            let results = self.settle_group("settle", &first, settlements).await;
            for (index, result) in indices.into_iter().zip(results) {
                answers[index] = result;
            }
        }
        answers
    }

    /// The requests that [`settle`](Self::settle) would make, for an adapter that
    /// executes them in a transaction of the caller's: one for each group, and
    /// more where a group has more than [`MAX_BATCH`] leases. Each keeps the order given.
    ///
    /// A stream is looked up in the store the first time only. Where the
    /// backend answers `StreamNotFound`, [`forget_stream`](Self::forget_stream)
    /// and resolve the leases again. A refusal becomes an error by
    /// [`to_error`](LeaseRefusal::to_error).
    ///
    /// # Errors
    /// Those of [`Rheo`].
    pub async fn resolve_settle<L: AsRef<Lease>>(
        &self,
        settlements: impl IntoIterator<Item = (L, Outcome)>,
    ) -> Result<Vec<Settle>> {
        let mut requests = Vec::new();
        for LeasesOfGroup { first, settlements, .. } in by_group(settlements) {
            let known = self.known("settle", first.stream().as_str()).await?;
            let group = known.group("settle", first.group().as_str())?;
            let chunks = settlements.chunks(MAX_BATCH);
            requests.extend(chunks.map(|chunk| self.settle_request(&group, chunk.to_vec())));
        }
        Ok(requests)
    }

    /// Makes the lease last for `lease` from now, and returns it so.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    ///
    /// # Cancellation
    /// The lease may or may not be renewed.
    pub async fn renew(&self, lease: impl AsRef<Lease>, lasting: Duration) -> Result<Lease> {
        let lease = lease.as_ref();
        let answers = self.renew_all(std::slice::from_ref(lease), lasting).await;
        answers.into_iter().next().unwrap_or_else(|| Err(unanswered("renew")))
    }

    /// Renews leases of one group, and answers for each by itself.
    pub(crate) async fn renew_all(
        &self,
        leases: &[Lease],
        lasting: Duration,
    ) -> Vec<Result<Lease>> {
        let Some(first) = leases.first() else {
            return Vec::new();
        };
        let expiries = match self.renew_group(first, leases, lasting).await {
            Ok(expiries) => expiries,
            Err(error) => return vec![Err(error); leases.len()],
        };
        let renewed = |(lease, answer): (&Lease, Result<_, _>)| match answer {
            Ok(expires_at) => Ok(lease.clone().renewed(expires_at)),
            Err(refusal) => Err(refused("renew", lease, lease.position(), refusal)),
        };
        leases.iter().zip(expiries).map(renewed).collect()
    }

    async fn renew_group(
        &self,
        first: &Lease,
        leases: &[Lease],
        lasting: Duration,
    ) -> Result<Vec<Result<Timestamp, LeaseRefusal>>> {
        let lease = valid_lease("renew", lasting)?;
        let mut known = self.known("renew", first.stream().as_str()).await?;
        loop {
            let request = Renew {
                group: known.group("renew", first.group().as_str())?,
                tokens: leases.iter().map(|lease| lease.token().clone()).collect(),
                lease,
                now: self.clock().judge(),
            };
            let mut result = self
                .repeatable_call("renew", || self.store().renew(&request))
                .await
                .and_then(|answers| Self::one_for_each("renew", leases.len(), answers));
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    async fn settle_one(
        &self,
        operation: &'static str,
        lease: &Lease,
        outcome: Outcome,
    ) -> Result<()> {
        let settlement = settlement(lease, outcome);
        let answers = self.settle_group(operation, lease, vec![settlement]).await;
        answers.into_iter().next().unwrap_or_else(|| Err(unanswered(operation)))
    }

    /// Settles leases that are all of the group of `first`.
    async fn settle_group(
        &self,
        operation: &'static str,
        first: &Lease,
        settlements: Vec<Settlement>,
    ) -> Vec<Result<()>> {
        let mut answers = Vec::with_capacity(settlements.len());
        for chunk in settlements.chunks(MAX_BATCH) {
            let refused = |(settlement, answer): (&Settlement, Answer)| {
                let position = settlement.token.lease_id.position();
                answer.map_err(|refusal| refused(operation, first, position, refusal))
            };
            match self.settle_chunk(operation, first, chunk).await {
                Ok(results) => answers.extend(chunk.iter().zip(results).map(refused)),
                Err(error) => answers.extend(vec![Err(error); chunk.len()]),
            }
        }
        answers
    }

    async fn settle_chunk(
        &self,
        operation: &'static str,
        first: &Lease,
        settlements: &[Settlement],
    ) -> Result<Vec<Answer>> {
        let mut known = self.known(operation, first.stream().as_str()).await?;
        loop {
            let group = known.group(operation, first.group().as_str())?;
            let settlements = settlements.to_vec();
            let mut result = if self.inner.capabilities.mechanisms.coalesced_writes {
                self.in_time(operation, self.inner.settles.get(self, &group).submit(settlements))
                    .await
            } else {
                self.settle_now(&group, settlements).await
            };
            if !self.outdated(&mut known, &mut result).await {
                return result.map_err(|error| error.in_operation(operation));
            }
        }
    }

    async fn settle_now(
        &self,
        group: &GroupRef,
        settlements: Vec<Settlement>,
    ) -> Result<Vec<Answer>> {
        let request = self.settle_request(group, settlements);
        let answers = self.write_call("settle", || self.store().settle(&request)).await?;
        let answers = Self::one_for_each("settle", request.settlements.len(), answers)?;
        count(&request.settlements, &answers);
        Ok(answers)
    }

    fn settle_request(&self, group: &GroupRef, settlements: Vec<Settlement>) -> Settle {
        Settle { group: group.clone(), settlements, now: self.clock().judge() }
    }
}

/// Leases of one group, and their places in the caller's list.
struct LeasesOfGroup {
    first: Lease,
    indices: Vec<usize>,
    settlements: Vec<Settlement>,
}

fn by_group<L: AsRef<Lease>>(
    settlements: impl IntoIterator<Item = (L, Outcome)>,
) -> Vec<LeasesOfGroup> {
    let mut groups: Vec<LeasesOfGroup> = Vec::new();
    for (index, (lease, outcome)) in settlements.into_iter().enumerate() {
        let lease = lease.as_ref();
        let settlement = settlement(lease, outcome);
        match groups.iter_mut().find(|group| same_group(&group.first, lease)) {
            Some(group) => {
                group.indices.push(index);
                group.settlements.push(settlement);
            }
            None => groups.push(LeasesOfGroup {
                first: lease.clone(),
                indices: vec![index],
                settlements: vec![settlement],
            }),
        }
    }
    groups
}

fn count(settlements: &[Settlement], answers: &[Answer]) {
    let mut counts = [("ack", 0), ("retry", 0), ("reject", 0), ("release", 0), ("refused", 0)];
    for (settlement, answer) in settlements.iter().zip(answers) {
        let name = match answer {
            Ok(()) => settlement.outcome.as_str(),
            Err(_) => "refused",
        };
        if let Some((_, count)) = counts.iter_mut().find(|(counted, _)| *counted == name) {
            *count += 1;
        }
    }
    for (operation, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        counter!("rheo_events_total", "operation" => operation).increment(count);
    }
}

fn settlement(lease: &Lease, outcome: Outcome) -> Settlement {
    let outcome = match outcome {
        Outcome::Retry { reason, after } => {
            Outcome::Retry { reason: stored_reason(&reason), after }
        }
        Outcome::Reject { reason } => Outcome::Reject { reason: stored_reason(&reason) },
        Outcome::Ack | Outcome::Release => outcome,
    };
    Settlement { token: lease.token().clone(), outcome }
}

fn same_group(one: &Lease, other: &Lease) -> bool {
    one.stream() == other.stream() && one.group() == other.group()
}

fn refused(
    operation: &'static str,
    lease: &Lease,
    position: Position,
    refusal: LeaseRefusal,
) -> Error {
    refusal.to_error(operation, lease.stream(), lease.group(), position)
}

fn unanswered(operation: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, operation, "the backend gave no answer for the lease")
}

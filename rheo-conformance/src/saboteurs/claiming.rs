//! Saboteurs at the claim.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use async_trait::async_trait;
use rheo_core::backend::{
    Backend, Claim, CreateGroup, GroupRef, LeaseRefusal, Now, Partitions, Settle,
};
use rheo_core::{Delivery, Fence, Granting, GroupInfo, Position, Result, Token};

use super::notebook::Notebook;
use super::sabotaged::Sabotage;

/// Below this a lease is short. Consumers ask for longer ones, and race in no
/// order that a seed decides: some saboteurs leave them alone.
pub(super) const SHORT: Duration = Duration::from_secs(10);

/// The deliveries of a claim, with the attempts changed.
pub(super) fn with_attempts(
    request: &Claim,
    deliveries: Vec<Delivery>,
    attempt: impl Fn(&Delivery) -> u32,
) -> Vec<Delivery> {
    let change = |delivery: Delivery| {
        let granting = Granting::new(request, delivery.lease.leased_at());
        let attempt = attempt(&delivery);
        granting.delivery(delivery.event, attempt)
    };
    deliveries.into_iter().map(change).collect()
}

#[derive(Debug)]
pub(super) struct LimitPerPartition;

#[async_trait]
impl Sabotage for LimitPerPartition {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let mut deliveries = Vec::new();
        for partition in request.partitions.numbers(request.group.stream.partitions) {
            let partitions = Partitions::Only(vec![partition]);
            let claim = Claim { partitions, ..request.clone() };
            deliveries.extend(store.claim(&claim).await?);
        }
        Ok(deliveries)
    }
}

/// A lease, and who holds it; and the lease that a second holder was given on it.
#[derive(Clone, Debug)]
struct Held {
    delivery: Delivery,
    second: Option<Token>,
}

#[derive(Debug, Default)]
pub(super) struct TwoLeasesOnOneEvent {
    held: Notebook<Held>,
}

impl TwoLeasesOnOneEvent {
    /// A lease on the lowest event that another consumer holds.
    fn second_lease(&self, request: &Claim) -> Option<Delivery> {
        self.held.of(&request.group, |held| {
            let free = |held: &&mut Held| {
                let lease = &held.delivery.lease;
                let asked = match &request.partitions {
                    Partitions::All => true,
                    Partitions::Only(only) => only.contains(&lease.position().partition),
                };
                asked && held.second.is_none() && *lease.consumer() != request.consumer
            };
            let lowest = |held: &&mut Held| held.delivery.lease.position();
            let held = held.values_mut().filter(free).min_by_key(lowest)?;
            let granting = Granting::new(request, request.now.or_system());
            let attempt = held.delivery.lease.attempt() + 1;
            let delivery = granting.delivery(held.delivery.event.clone(), attempt);
            held.second = Some(delivery.lease.token().clone());
            Some(delivery)
        })
    }
}

#[async_trait]
impl Sabotage for TwoLeasesOnOneEvent {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = store.claim(request).await?;
        for delivery in &deliveries {
            let held = Held { delivery: delivery.clone(), second: None };
            self.held.note(&request.group, delivery.lease.position(), held);
        }
        if !deliveries.is_empty() || request.lease >= SHORT {
            return Ok(deliveries);
        }
        Ok(self.second_lease(request).into_iter().collect())
    }

    async fn settle(
        &self,
        store: &dyn Backend,
        request: &Settle,
    ) -> Result<Vec<Result<(), LeaseRefusal>>> {
        let mut request = request.clone();
        for settlement in &mut request.settlements {
            let position = settlement.token.lease_id.position();
            let held = self.held.of(&request.group, |held| held.remove(&position));
            if let Some(Held { delivery, second }) = held
                && second.as_ref() == Some(&settlement.token)
            {
                settlement.token = delivery.lease.token().clone();
            }
        }
        store.settle(&request).await
    }
}

#[derive(Debug)]
pub(super) struct ReusesLeaseIds;

#[async_trait]
impl Sabotage for ReusesLeaseIds {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        if request.lease >= SHORT {
            return store.claim(request).await;
        }
        let mut hasher = DefaultHasher::new();
        request.consumer.hash(&mut hasher);
        let fence = Fence::from_u128(hasher.finish().into());
        store.claim(&Claim { fence, ..request.clone() }).await
    }
}

#[derive(Debug)]
pub(super) struct ExpiryIsLate;

#[async_trait]
impl Sabotage for ExpiryIsLate {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let lease = request.lease + Duration::from_micros(1);
        let deliveries = store.claim(&Claim { lease, ..request.clone() }).await?;
        Ok(with_attempts(request, deliveries, |delivery| delivery.lease.attempt()))
    }
}

#[derive(Debug)]
pub(super) struct OneAttemptTooMany;

#[async_trait]
impl Sabotage for OneAttemptTooMany {
    async fn create_group(&self, store: &dyn Backend, request: &CreateGroup) -> Result<()> {
        let mut request = request.clone();
        request.settings.max_attempts = request.settings.max_attempts.saturating_add(1);
        store.create_group(&request).await
    }

    async fn group_info(
        &self,
        store: &dyn Backend,
        group: &GroupRef,
        now: Now,
    ) -> Result<GroupInfo> {
        let mut info = store.group_info(group, now).await?;
        info.max_attempts -= 1;
        Ok(info)
    }
}

#[derive(Debug)]
pub(super) struct PartitionStarved;

#[async_trait]
impl Sabotage for PartitionStarved {
    async fn claim(&self, store: &dyn Backend, request: &Claim) -> Result<Vec<Delivery>> {
        let mut deliveries = Vec::new();
        for partition in request.partitions.numbers(request.group.stream.partitions) {
            let limit = request.limit - deliveries.len();
            if limit == 0 {
                break;
            }
            let partitions = Partitions::Only(vec![partition]);
            let claim = Claim { partitions, limit, ..request.clone() };
            deliveries.extend(store.claim(&claim).await?);
        }
        Ok(deliveries)
    }
}

#[derive(Debug, Default)]
pub(super) struct OrderIgnored {
    /// One note for each group that is ordered in name only.
    ordered: Notebook<()>,
}

const MARK: Position = Position::new(0, 0);

#[async_trait]
impl Sabotage for OrderIgnored {
    async fn create_group(&self, store: &dyn Backend, request: &CreateGroup) -> Result<()> {
        let mut request = request.clone();
        let many = request.group.stream.partitions > 1;
        if many && std::mem::take(&mut request.settings.ordered) {
            self.ordered.note(&request.group, MARK, ());
        }
        store.create_group(&request).await
    }

    async fn group_info(
        &self,
        store: &dyn Backend,
        group: &GroupRef,
        now: Now,
    ) -> Result<GroupInfo> {
        let mut info = store.group_info(group, now).await?;
        info.ordered |= self.ordered.get(group, MARK).is_some();
        Ok(info)
    }
}

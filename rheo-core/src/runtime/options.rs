//! [`SubscribeOptions`]: how a subscription, or a consumer, claims.

use std::time::Duration;

use crate::{ConsumerId, Error, FetchOptions, GroupInfo, Result, Rheo};

/// How long an idle consumer waits at most before it looks again, unless set.
pub const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How a [`Subscription`](crate::Subscription) claims, where not by the
/// instance's settings.
///
/// ```
/// use std::time::Duration;
/// use rheo_core::runtime::SubscribeOptions;
///
/// let options = SubscribeOptions::default().max_demand(500).lease(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    max_demand: Option<usize>,
    lease: Option<Duration>,
    poll_interval: Option<Duration>,
    consumer: Option<String>,
    partitions: Option<Vec<u32>>,
}

impl SubscribeOptions {
    /// How many unsettled leases are held at most; by default as the instance is set.
    #[must_use]
    pub fn max_demand(mut self, max_demand: usize) -> Self {
        self.max_demand = Some(max_demand);
        self
    }

    /// How long a lease lasts between two renewals; by default as the instance is set.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// How long it waits at most, when there was nothing to claim, before it
    /// looks again; default 1 s. With waking off this is the poll period.
    #[must_use]
    pub fn poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = Some(poll_interval);
        self
    }

    /// The name by which the store knows who holds the leases; by default the
    /// instance's own.
    #[must_use]
    pub fn consumer_id(mut self, consumer: impl Into<String>) -> Self {
        self.consumer = Some(consumer.into());
        self
    }

    /// The partitions to claim from; by default all.
    #[must_use]
    pub fn partitions(mut self, partitions: impl Into<Vec<u32>>) -> Self {
        self.partitions = Some(partitions.into());
        self
    }

    /// These options with every default filled in, where `concurrency` is how
    /// many leases are needed at least to be busy.
    pub(super) fn resolve(
        self,
        operation: &'static str,
        rheo: &Rheo,
        group: &GroupInfo,
        concurrency: usize,
    ) -> Result<Settings> {
        let default_demand = rheo.settings().max_demand.max(concurrency);
        let max_demand = self.max_demand.unwrap_or(default_demand);
        let lease = self.lease.unwrap_or(rheo.settings().lease);
        let poll_interval = self.poll_interval.unwrap_or(DEFAULT_POLL_INTERVAL);
        check(operation, max_demand > 0, "max_demand is at least 1")?;
        check(operation, lease.as_micros() > 0, "a lease lasts longer than zero")?;
        check(operation, !poll_interval.is_zero(), "the poll interval is longer than zero")?;
        let mut fetch = FetchOptions::default().lease(lease);
        if let Some(consumer) = self.consumer {
            ConsumerId::new(&consumer).map_err(|error| error.in_operation(operation))?;
            fetch = fetch.consumer(consumer);
        }
        if let Some(partitions) = self.partitions {
            let count = group.partitions.len();
            let exists = |&partition: &u32| (partition as usize) < count;
            let rule =
                format!("name at least one of the stream's {count} partitions, and no other");
            check(operation, !partitions.is_empty() && partitions.iter().all(exists), rule)?;
            fetch = fetch.partitions(partitions);
        }
        let ordered = group.ordered;
        Ok(Settings { max_demand, lease, poll_interval, fetch, ordered })
    }
}

pub(super) fn check(operation: &'static str, holds: bool, rule: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::invalid(operation, rule)) }
}

/// What a consumer or subscription runs with.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) max_demand: usize,
    pub(super) lease: Duration,
    pub(super) poll_interval: Duration,
    pub(super) fetch: FetchOptions,
    pub(super) ordered: bool,
}

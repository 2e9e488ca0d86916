//! Claiming.

use std::time::Duration;

use metrics::counter;

use super::{MAX_BATCH, Rheo};
use crate::backend::{Claim, Partitions};
use crate::{ConsumerId, Delivery, Error, Fence, Result};

/// How a fetch claims, where not by the instance's settings.
///
/// ```
/// use std::time::Duration;
/// use rheo_core::FetchOptions;
///
/// let options = FetchOptions::default().consumer("worker-7").lease(Duration::from_secs(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchOptions {
    consumer: Option<String>,
    lease: Option<Duration>,
    partitions: Option<Vec<u32>>,
}

impl FetchOptions {
    /// Who claims; by default the instance's own name.
    #[must_use]
    pub fn consumer(mut self, consumer: impl Into<String>) -> Self {
        self.consumer = Some(consumer.into());
        self
    }

    /// How long the leases last; by default as the instance is set.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The partitions to claim from; by default all.
    #[must_use]
    pub fn partitions(mut self, partitions: impl Into<Vec<u32>>) -> Self {
        self.partitions = Some(partitions.into());
        self
    }
}

impl Rheo {
    /// Claims at most `limit` events (and at most 10 000) for a group, and
    /// returns at once, possibly with none.
    ///
    /// Inside a partition lower sequences come first, and redeliveries before
    /// new events; partitions take turns.
    ///
    /// # Errors
    /// Those of [`Rheo`]; a limit of 0, a lease of zero or a partition out of
    /// range is `Invalid`.
    ///
    /// # Cancellation
    /// What a dropped fetch had claimed comes back when its leases expire.
    pub async fn fetch(
        &self,
        stream: &str,
        group: &str,
        limit: usize,
        options: FetchOptions,
    ) -> Result<Vec<Delivery>> {
        if limit == 0 {
            return Err(Error::invalid("fetch", "the limit is at least 1"));
        }
        let lease = valid_lease("fetch", options.lease.unwrap_or(self.settings().lease))?;
        let consumer = match &options.consumer {
            Some(consumer) => {
                ConsumerId::new(consumer).map_err(|error| error.in_operation("fetch"))?
            }
            None => self.settings().consumer.clone(),
        };
        let mut known = self.known("fetch", stream).await?;
        loop {
            let count = known.stream.partitions;
            let claim = Claim {
                group: known.group("fetch", group)?,
                partitions: chosen_partitions("fetch", options.partitions.as_deref(), count)?,
                limit: limit.min(MAX_BATCH),
                consumer: consumer.clone(),
                lease,
                fence: Fence::random(),
                now: self.clock().judge(),
            };
            let mut result = self.claim(&claim).await;
            if !self.outdated(&mut known, &mut result).await {
                return result;
            }
        }
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<Delivery>> {
        let deliveries = self.write_call("fetch", || self.store().claim(claim)).await?;
        counter!("rheo_events_total", "operation" => "fetch").increment(deliveries.len() as u64);
        Ok(deliveries)
    }
}

pub(super) fn valid_lease(operation: &'static str, lease: Duration) -> Result<Duration> {
    if lease.as_micros() == 0 {
        return Err(Error::invalid(operation, "a lease lasts longer than zero"));
    }
    Ok(lease)
}

/// The partitions asked for, checked, in order, each once.
pub(super) fn chosen_partitions(
    operation: &'static str,
    chosen: Option<&[u32]>,
    count: u32,
) -> Result<Partitions> {
    let Some(chosen) = chosen else {
        return Ok(Partitions::All);
    };
    if let Some(wrong) = chosen.iter().find(|&&partition| partition >= count) {
        let context = format!("partition {wrong} is out of range: the stream has {count}");
        return Err(Error::invalid(operation, context));
    }
    if chosen.is_empty() {
        return Err(Error::invalid(operation, "name at least one partition"));
    }
    let mut partitions = chosen.to_vec();
    partitions.sort_unstable();
    partitions.dedup();
    Ok(Partitions::Only(partitions))
}

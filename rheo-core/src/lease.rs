//! Leases: the temporary claim of one consumer on one event for one group.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    ConsumerId, Event, Fence, GroupName, LeaseId, Position, Receipt, StreamName, Timestamp, Token,
};

/// What all leases of one fetch have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ClaimContext {
    stream: StreamName,
    group: GroupName,
    consumer: ConsumerId,
    leased_at: Timestamp,
}

/// One consumer's temporary claim on one event, for one group.
///
/// It can be sent to another process (serde) and settled there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    #[serde(flatten)]
    claim: Arc<ClaimContext>,
    #[serde(flatten)]
    token: Token,
    attempt: u32,
    expires_at: Timestamp,
}

impl Lease {
    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &StreamName {
        &self.claim.stream
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &GroupName {
        &self.claim.group
    }

    /// Who claimed it.
    #[must_use]
    pub fn consumer(&self) -> &ConsumerId {
        &self.claim.consumer
    }

    /// The leased event's position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.token.lease_id.position()
    }

    /// The fencing token.
    #[must_use]
    pub fn lease_id(&self) -> LeaseId {
        self.token.lease_id
    }

    /// The store's own settle identity.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.token.receipt
    }

    /// Fencing token and receipt together.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// How often the group has claimed this event, this time included.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// When it was claimed, by the clock that judges leases.
    #[must_use]
    pub fn leased_at(&self) -> Timestamp {
        self.claim.leased_at
    }

    /// When others may claim the event, by the clock that judges leases.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// How long it was granted for at its claim, or is in all after renewals.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.expires_at.since(self.leased_at())
    }

    /// The same lease with another receipt: what a settle with a wrong
    /// receipt looks like, for tests.
    #[must_use]
    pub fn with_receipt(mut self, receipt: Receipt) -> Self {
        self.token.receipt = receipt;
        self
    }

    pub(crate) fn renewed(mut self, expires_at: Timestamp) -> Self {
        self.expires_at = expires_at;
        self
    }
}

impl AsRef<Lease> for Lease {
    fn as_ref(&self) -> &Lease {
        self
    }
}

/// An event handed out to a consumer, and the lease on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// The lease to settle it with.
    pub lease: Lease,
}

impl AsRef<Lease> for Delivery {
    fn as_ref(&self) -> &Lease {
        &self.lease
    }
}

/// Makes the deliveries of one claim, so that adapters cannot get a lease wrong.
#[derive(Clone, Debug)]
pub struct Granting {
    context: Arc<ClaimContext>,
    fence: Fence,
    expires_at: Timestamp,
}

impl Granting {
    /// For a claim that the store granted at `leased_at`.
    #[must_use]
    pub fn new(claim: &crate::backend::Claim, leased_at: Timestamp) -> Self {
        Self {
            context: Arc::new(ClaimContext {
                stream: claim.group.stream.name.clone(),
                group: claim.group.name.clone(),
                consumer: claim.consumer.clone(),
                leased_at,
            }),
            fence: claim.fence,
            expires_at: leased_at + claim.lease,
        }
    }

    /// When the leases of this claim expire.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// The delivery of `event`, with the lease id as its receipt.
    #[must_use]
    pub fn delivery(&self, event: Event, attempt: u32) -> Delivery {
        let receipt = Receipt::lease(LeaseId::new(self.fence, event.position()));
        self.delivery_with_receipt(event, attempt, receipt)
    }

    /// The delivery of `event`, with the store's own receipt.
    #[must_use]
    pub fn delivery_with_receipt(&self, event: Event, attempt: u32, receipt: Receipt) -> Delivery {
        let lease_id = LeaseId::new(self.fence, event.position());
        let lease = Lease {
            claim: Arc::clone(&self.context),
            token: Token { lease_id, receipt },
            attempt,
            expires_at: self.expires_at,
        };
        Delivery { event, lease }
    }
}

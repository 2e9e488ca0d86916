//! Leases: the temporary claim of one consumer on one event for one group.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::{ConsumerId, Error, Event, GroupName, Result, StreamName, Timestamp};

/// Where an event stands in its stream.
///
/// The order is that of queries: by sequence, then by partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The partition, from 0.
    pub partition: u32,
    /// The sequence within the partition, from 1.
    pub sequence: u64,
}

impl Position {
    /// The position of `sequence` in `partition`.
    #[must_use]
    pub const fn new(partition: u32, sequence: u64) -> Self {
        Self { partition, sequence }
    }
}

impl Ord for Position {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.sequence, self.partition).cmp(&(other.sequence, other.partition))
    }
}

impl PartialOrd for Position {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.partition, self.sequence)
    }
}

/// The secret of one claim: whoever knows it settles what was claimed with it.
///
/// One fence serves all events of one fetch; with an event's position it makes
/// that event's [`LeaseId`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u128);

impl Fence {
    /// A new one, which nobody can guess.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4().as_u128())
    }

    /// From the number that [`as_u128`](Self::as_u128) gave.
    #[must_use]
    pub const fn from_u128(fence: u128) -> Self {
        Self(fence)
    }

    /// As a number, for storing.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

/// Does not show the secret.
impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fence(…)")
    }
}

/// The fencing token of a lease: new for every claim, unguessable.
///
/// As text (and in serde) it is one opaque word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseId {
    fence: Fence,
    position: Position,
}

impl LeaseId {
    /// The token of the event at `position` in the claim with this fence.
    #[must_use]
    pub const fn new(fence: Fence, position: Position) -> Self {
        Self { fence, position }
    }

    /// The fence of the claim.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// The leased event's position.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}-{}", self.fence.0, self.position)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId(…-{})", self.position)
    }
}

impl FromStr for LeaseId {
    type Err = Error;

    /// Reads what `Display` wrote.
    ///
    /// # Errors
    /// `Invalid` where it is something else.
    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let mut parts = text.splitn(3, '-');
            let fence = u128::from_str_radix(parts.next()?, 16).ok()?;
            let partition = parts.next()?.parse().ok()?;
            let sequence = parts.next()?.parse().ok()?;
            Some(Self::new(Fence(fence), Position::new(partition, sequence)))
        };
        parse().ok_or_else(|| Error::invalid("lease id", "the text is no lease id"))
    }
}

/// The store's own identity for settling: the stream entry's id on Redis, the
/// lease id elsewhere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Receipt(ReceiptKind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum ReceiptKind {
    Lease(LeaseId),
    Entry(Box<str>),
}

impl Receipt {
    /// The receipt of a store that has no identity of its own.
    #[must_use]
    pub const fn lease(lease_id: LeaseId) -> Self {
        Self(ReceiptKind::Lease(lease_id))
    }

    /// The receipt of a store that calls the leased event `entry`.
    #[must_use]
    pub fn entry(entry: impl Into<Box<str>>) -> Self {
        let entry = entry.into();
        // One meaning, one value: a lease id that went through text is a lease id again.
        match entry.parse::<LeaseId>() {
            Ok(lease_id) if lease_id.to_string() == *entry => Self::lease(lease_id),
            _ => Self(ReceiptKind::Entry(entry)),
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ReceiptKind::Lease(lease_id) => fmt::Display::fmt(lease_id, f),
            ReceiptKind::Entry(entry) => f.write_str(entry),
        }
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ReceiptKind::Lease(lease_id) => write!(f, "Receipt({lease_id:?})"),
            ReceiptKind::Entry(entry) => write!(f, "Receipt({entry:?})"),
        }
    }
}

macro_rules! serde_as_text {
    ($($name:ident: |$text:ident| $parse:expr;)+) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                $parse.map_err(serde::de::Error::custom)
            }
        }
    )+};
}

serde_as_text! {
    LeaseId: |text| text.parse::<LeaseId>();
    Receipt: |text| Ok::<Receipt, Error>(Receipt::entry(&*text));
}

/// What a settle shows to the store: the fencing token and the receipt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token {
    /// The fencing token.
    pub lease_id: LeaseId,
    /// The store's own settle identity.
    pub receipt: Receipt,
}

impl Token {
    /// The token of a store whose receipts are its lease ids.
    #[must_use]
    pub const fn new(lease_id: LeaseId) -> Self {
        Self { lease_id, receipt: Receipt::lease(lease_id) }
    }
}

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

/// How a lease ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done: the event is terminal for the group.
    Ack,
    /// Claimable again after the delay, or a dead letter where the attempts are used up.
    Retry {
        /// Why, for people.
        reason: String,
        /// How long to wait before the next delivery.
        after: Duration,
    },
    /// A dead letter.
    Reject {
        /// Why, for people.
        reason: String,
    },
    /// Handed back unused: the attempt is not counted.
    Release,
}

impl Outcome {
    /// A retry at once.
    #[must_use]
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::retry_after(reason, Duration::ZERO)
    }

    /// A retry after a delay.
    #[must_use]
    pub fn retry_after(reason: impl Into<String>, after: Duration) -> Self {
        Self::Retry { reason: reason.into(), after }
    }

    /// A dead letter.
    #[must_use]
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::Reject { reason: reason.into() }
    }

    /// The name of the operation that settles so.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Ack => "ack",
            Self::Retry { .. } => "retry",
            Self::Reject { .. } => "reject",
            Self::Release => "release",
        }
    }
}

/// The longest reason that is kept, in bytes; the rest is cut off.
pub const MAX_REASON_BYTES: usize = 4096;

/// A reason as it is stored: cut to 4 KiB at a character border, U+0000 replaced.
#[must_use]
pub fn stored_reason(reason: &str) -> String {
    let end = reason.floor_char_boundary(MAX_REASON_BYTES);
    // U+FFFD is longer than what it replaces, so cut once more.
    let mut stored = reason[..end].replace('\0', "\u{fffd}");
    stored.truncate(stored.floor_char_boundary(MAX_REASON_BYTES));
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease_id() -> LeaseId {
        LeaseId::new(Fence::random(), Position::new(3, 17))
    }

    #[test]
    fn a_lease_id_survives_text_and_hides_in_debug() {
        let id = lease_id();
        assert_eq!(id.to_string().parse::<LeaseId>().unwrap(), id);
        assert_eq!(format!("{id:?}"), "LeaseId(…-3-17)");
        for wrong in ["", "x", "1-2", "1-2-3-4"] {
            assert!(wrong.parse::<LeaseId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_receipt_survives_text() {
        let receipt = Receipt::lease(lease_id());
        assert_eq!(Receipt::entry(receipt.to_string()), receipt);
        assert_eq!(Receipt::entry("0-17").to_string(), "0-17");
    }

    #[test]
    fn reasons_are_cut_at_a_character_and_hold_no_nul() {
        assert_eq!(stored_reason("a\0b"), "a\u{fffd}b");
        let long = stored_reason(&"é".repeat(3000));
        assert_eq!((long.len(), long.chars().count()), (4096, 2048));
        assert!(stored_reason(&"\0".repeat(5000)).len() <= MAX_REASON_BYTES);
    }
}

//! Tokens: what a settle shows to the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::{Error, Position, Result};

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
}

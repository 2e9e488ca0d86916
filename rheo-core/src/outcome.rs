//! [`Outcome`]: how a lease ends, and the reasons that are kept.

use std::time::Duration;

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

    #[test]
    fn reasons_are_cut_at_a_character_and_hold_no_nul() {
        assert_eq!(stored_reason("a\0b"), "a\u{fffd}b");
        let long = stored_reason(&"é".repeat(3000));
        assert_eq!((long.len(), long.chars().count()), (4096, 2048));
        assert!(stored_reason(&"\0".repeat(5000)).len() <= MAX_REASON_BYTES);
    }
}

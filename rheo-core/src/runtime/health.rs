//! [`Health`]: how a consumer or subscription is doing.

use crate::{Error, ErrorKind, Outcome};

/// How a consumer or subscription is doing, at one moment.
///
/// Failing fetches, renewals and settles never stop it; they show here.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Health {
    /// Events that are being handled: running handlers, or events that the
    /// subscription's user holds.
    pub running: usize,
    /// Events claimed and not yet handed on.
    pub buffered: usize,
    /// All leases that are not yet settled, those being settled included.
    pub unsettled: usize,
    /// What has been done since the start.
    pub counts: Counts,
    /// The last failure of the store, if there was one.
    pub last_error: Option<Error>,
    /// Failures of the store since it last answered well.
    pub consecutive_failures: u32,
    /// Whether it claims no more.
    pub draining: bool,
}

/// What has been done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events claimed.
    pub fetched: u64,
    /// Events acked.
    pub acked: u64,
    /// Events handed back for another attempt.
    pub retried: u64,
    /// Events rejected.
    pub rejected: u64,
    /// Claims handed back unused.
    pub released: u64,
    /// Leases lost: not renewed in time, taken by others, or settled too late.
    pub stale: u64,
}

impl Counts {
    pub(super) fn settled(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Ack => &mut self.acked,
            Outcome::Retry { .. } => &mut self.retried,
            Outcome::Reject { .. } => &mut self.rejected,
            Outcome::Release => &mut self.released,
        } += 1;
    }

    /// Leases ended by an outcome of a handler or user, releases aside.
    pub(super) fn ended(&self) -> u64 {
        self.acked + self.retried + self.rejected
    }
}

/// What is remembered for [`Health`].
#[derive(Debug, Default)]
pub(super) struct Vitals {
    pub(super) counts: Counts,
    pub(super) last_error: Option<Error>,
    pub(super) consecutive_failures: u32,
}

impl Vitals {
    pub(super) fn answered(&mut self) {
        self.consecutive_failures = 0;
    }

    pub(super) fn failed(&mut self, error: &Error) {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        self.last_error = Some(error.clone());
    }
}

/// Whether the error says that the lease has ended: it was refused, or its
/// group is gone.
pub(super) fn ends_lease(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StaleLease
            | ErrorKind::ReceiptMismatch
            | ErrorKind::StreamNotFound
            | ErrorKind::GroupNotFound
    )
}

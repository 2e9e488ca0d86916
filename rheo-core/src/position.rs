//! [`Position`]: where an event stands in its stream.

use std::fmt;

use serde::{Deserialize, Serialize};

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

//! [`Position`]: where an event stands in its stream.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

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

impl FromStr for Position {
    type Err = Error;

    /// Reads what [`Display`](fmt::Display) writes, such as `0-17`.
    ///
    /// # Errors
    /// `Invalid` where it is something else.
    fn from_str(text: &str) -> Result<Self> {
        let parts =
            text.split_once('-').map(|(partition, sequence)| (partition.parse(), sequence.parse()));
        match parts {
            Some((Ok(partition), Ok(sequence))) => Ok(Self::new(partition, sequence)),
            _ => Err(Error::invalid("parse", format!("{text:?} is no position like 0-17"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let position = Position::new(3, u64::MAX);
        assert_eq!(position.to_string().parse::<Position>().unwrap(), position);
        for text in ["", "3", "-", "a-1", "1-a", "1-2-3", "-1-2"] {
            assert!(text.parse::<Position>().is_err(), "{text}");
        }
    }
}

//! [`Field`] and [`Condition`]: what a filter looks at, and what must hold there.

use std::cmp::Ordering;

use serde_json::Value;

use super::compare::Comparand;

/// What a filter looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The event's id, as UUID text.
    Id,
    /// Its type.
    Type,
    /// Its key; missing where the event has none.
    Key,
    /// Its partition, a number.
    Partition,
    /// Its sequence, a number.
    Sequence,
    /// When it was appended, an instant as RFC 3339 text, to the microsecond.
    Timestamp,
    /// A part of its metadata: keys from the top, each of an object within
    /// the one before. Arrays are not descended; no keys mean the whole.
    Metadata(Vec<String>),
    /// A part of its payload, likewise.
    Payload(Vec<String>),
}

impl Field {
    /// A part of the metadata, by its keys from the top.
    pub fn metadata(path: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Metadata(path.into_iter().map(Into::into).collect())
    }

    /// A part of the payload, by its keys from the top.
    pub fn payload(path: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Payload(path.into_iter().map(Into::into).collect())
    }

    /// The keys, where this is a part of metadata or payload.
    pub(super) fn path(&self) -> Option<&[String]> {
        match self {
            Self::Metadata(path) | Self::Payload(path) => Some(path),
            _ => None,
        }
    }
}

/// What must hold for a field.
///
/// A missing field meets no condition. Numbers are equal by value, whether
/// written as integer or as float; strings byte for byte, and never equal to
/// numbers. Null equals only a null that is there. An array equals only the
/// same array, never one of its members; objects are equal where their fields
/// are, in whatever order.
///
/// Less and greater hold between two numbers, by value, or between two
/// strings, by their bytes. Between other kinds neither holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// It equals this.
    Equals(Value),
    /// It equals one of these; never, where there are none.
    In(Vec<Value>),
    /// It is less than this.
    Less(Value),
    /// It is less than this, or equal to it.
    LessOrEqual(Value),
    /// It is greater than this.
    Greater(Value),
    /// It is greater than this, or equal to it.
    GreaterOrEqual(Value),
    /// It is there, be it null.
    Exists,
}

impl Condition {
    /// The values to compare with.
    pub(super) fn values(&self) -> &[Value] {
        match self {
            Self::Exists => &[],
            Self::In(values) => values,
            Self::Equals(value)
            | Self::Less(value)
            | Self::LessOrEqual(value)
            | Self::Greater(value)
            | Self::GreaterOrEqual(value) => std::slice::from_ref(value),
        }
    }

    /// The same condition on other values.
    pub(super) fn map(&self, change: impl Fn(&Value) -> Value) -> Self {
        match self {
            Self::Exists => Self::Exists,
            Self::In(values) => Self::In(values.iter().map(change).collect()),
            Self::Equals(value) => Self::Equals(change(value)),
            Self::Less(value) => Self::Less(change(value)),
            Self::LessOrEqual(value) => Self::LessOrEqual(change(value)),
            Self::Greater(value) => Self::Greater(change(value)),
            Self::GreaterOrEqual(value) => Self::GreaterOrEqual(change(value)),
        }
    }

    /// Whether it holds for what was found in the field.
    pub(super) fn holds(&self, found: Comparand<'_>) -> bool {
        let order = |value: &Value| found.partial_cmp(&value.into());
        match self {
            Self::Exists => true,
            Self::Equals(value) => found == value.into(),
            Self::In(values) => values.iter().any(|value| found == value.into()),
            Self::Less(value) => order(value).is_some_and(Ordering::is_lt),
            Self::LessOrEqual(value) => order(value).is_some_and(Ordering::is_le),
            Self::Greater(value) => order(value).is_some_and(Ordering::is_gt),
            Self::GreaterOrEqual(value) => order(value).is_some_and(Ordering::is_ge),
        }
    }
}

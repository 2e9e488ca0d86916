//! [`Failure`]: what went wrong below, and what it is above.

use std::fmt;

use rheo_core::backend::GroupRef;
use rheo_core::{Effect, Error, ErrorKind, StreamName};

use crate::trouble::{Trouble, cause, trouble};

/// What went wrong while an operation ran.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Rheo's own answer.
    Answer(Error),
    /// The driver's or the database's.
    Driver(sqlx::Error),
    /// The time for it was over.
    Late,
    /// Its task was ended with the runtime.
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Answer(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// Whether the database gave way to others, so that the same may succeed when tried again.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Driver(error) if matches!(trouble(error), Trouble::Conflict))
    }

    /// Whether the connection is of no more use, and the fate of what was on it unknown.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Answer(_) => false,
            Self::Driver(error) => matches!(trouble(error), Trouble::Lost(_)),
            Self::Late | Self::Stopped => true,
        }
    }

    /// Whether it failed for want of Rheo's tables.
    pub(crate) fn lacks_tables(&self) -> bool {
        matches!(self, Self::Driver(error) if trouble(error).is_no_tables())
    }

    /// What the caller of `operation` hears of it.
    pub(crate) fn into_error(self, operation: &'static str, effect: Effect) -> Error {
        let unavailable = |sentence: &str| Error::new(ErrorKind::Unavailable, operation, sentence);
        let error = match self {
            Self::Answer(error) => return error.in_operation(operation),
            Self::Late => unavailable("the database did not answer in time"),
            Self::Stopped => unavailable("the runtime that carried it out is shut down"),
            Self::Driver(error) => {
                let (kind, sentence) = trouble(&error).explained();
                Error::new(kind, operation, sentence).with_source(cause(error))
            }
        };
        error.with_effect(effect)
    }
}

/// A column does not hold what Rheo writes there.
pub(crate) fn corrupt(column: usize, why: impl fmt::Display) -> Failure {
    let context = format!("column {column} of a row is not what Rheo writes: {why}");
    Error::new(ErrorKind::Corrupt, "read", context).into()
}

pub(crate) fn stream_not_found(operation: &'static str, name: &StreamName) -> Error {
    Error::new(ErrorKind::StreamNotFound, operation, format!("{name:?}"))
}

pub(crate) fn group_not_found(operation: &'static str, group: &GroupRef) -> Error {
    let context = format!("{:?} of stream {:?}", group.name, group.stream.name);
    Error::new(ErrorKind::GroupNotFound, operation, context)
}

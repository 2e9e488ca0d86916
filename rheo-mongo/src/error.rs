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
    /// The driver's or the server's.
    Driver(mongodb::error::Error),
    /// The server took longer than it may.
    Late,
    /// The server does not know the transaction that was to be committed. The
    /// driver sends a commit again by itself, so it may have been.
    Forgotten,
    /// The runtime shut down in the middle.
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Answer(error)
    }
}

impl From<mongodb::error::Error> for Failure {
    fn from(error: mongodb::error::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// Whether the server gave way to others, so that the same may succeed when tried again.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Driver(error) if matches!(trouble(error), Trouble::Conflict))
    }

    /// Whether the connection broke or the answer did not come.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Self::Answer(_) => false,
            Self::Driver(error) => matches!(trouble(error), Trouble::Lost(_)),
            Self::Late | Self::Forgotten | Self::Stopped => true,
        }
    }

    /// What the caller of `operation` hears of it.
    pub(crate) fn into_error(self, operation: &'static str, effect: Effect) -> Error {
        let unavailable = |sentence: &str| Error::new(ErrorKind::Unavailable, operation, sentence);
        let error = match self {
            Self::Answer(error) => return error.in_operation(operation),
            Self::Late => unavailable("the server did not answer in time"),
            Self::Forgotten => unavailable("the server no longer knows the transaction"),
            Self::Stopped => unavailable("the runtime that carried it out is shut down"),
            Self::Driver(error) => {
                let (kind, sentence) = trouble(&error).explained();
                Error::new(kind, operation, sentence).with_source(cause(error))
            }
        };
        error.with_effect(effect)
    }
}

/// A document is not as Rheo writes it.
pub(crate) fn corrupt(what: &str, why: impl fmt::Display) -> Failure {
    let context = format!("{what} is not as Rheo writes it: {why}");
    Error::new(ErrorKind::Corrupt, "read", context).into()
}

pub(crate) fn stream_not_found(operation: &'static str, name: &StreamName) -> Error {
    Error::new(ErrorKind::StreamNotFound, operation, format!("{name:?}"))
}

pub(crate) fn group_not_found(operation: &'static str, group: &GroupRef) -> Error {
    let context = format!("{:?} of stream {:?}", group.name, group.stream.name);
    Error::new(ErrorKind::GroupNotFound, operation, context)
}

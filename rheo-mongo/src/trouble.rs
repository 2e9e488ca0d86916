//! What the driver's errors mean, by their codes and labels.

mod driver;
mod server;

use std::borrow::Cow;
use std::fmt;

use mongodb::error::{Error, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use rheo_core::ErrorKind;

use server::{Answer, answer};

/// What an error of the driver means for the operation that met it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server gave way to another transaction.
    Conflict,
    /// The connection broke, or the server it led to is no longer the primary:
    /// whether the operation took effect is not known.
    Lost(Cow<'static, str>),
    /// The server or the driver refused, and says why.
    Refused(ErrorKind, Cow<'static, str>),
}

impl Trouble {
    /// The kind of error that it is, and the sentence that says so.
    pub(crate) fn explained(self) -> (ErrorKind, Cow<'static, str>) {
        match self {
            Self::Conflict => {
                (ErrorKind::Conflict, "others kept changing the same, through all retries".into())
            }
            Self::Lost(sentence) => (ErrorKind::Unavailable, sentence),
            Self::Refused(kind, sentence) => (kind, sentence),
        }
    }
}

/// The server cannot do what Rheo is built on.
pub(crate) const STANDALONE: &str = "the server is a standalone, which has no transactions: start \
    mongod with --replSet NAME and run rs.initiate() once, one member is enough";
/// The server's release is too old.
pub(crate) const TOO_OLD: &str = "the server is too old: MongoDB 5.0 or later is wanted";
/// Nobody takes writes.
pub(crate) const NO_PRIMARY: &str =
    "the replica set has no primary now: most of its members have to be there to elect one";

const BROKEN: &str = "the server cannot be reached, or the connection to it broke";
const NO_ANSWER: &str = "no server answers there";
const NO_LOGIN: &str = "the user or the password is wrong, or the user is kept in another database \
    than the one that authSource names";
const COMMIT_UNKNOWN: &str = "the connection broke during the commit";

fn lost(sentence: &'static str) -> Trouble {
    Trouble::Lost(sentence.into())
}

fn config(sentence: impl Into<Cow<'static, str>>) -> Trouble {
    Trouble::Refused(ErrorKind::Config, sentence.into())
}

fn unavailable(sentence: impl Into<Cow<'static, str>>) -> Trouble {
    Trouble::Refused(ErrorKind::Unavailable, sentence.into())
}

/// What an error of the driver means.
pub(crate) fn trouble(error: &Error) -> Trouble {
    let meant = match answer(error) {
        Some(answer) => server::trouble(&answer),
        None => driver::trouble(error),
    };
    let is_in_doubt = error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT);
    if is_in_doubt && !matches!(meant, Trouble::Lost(_)) { lost(COMMIT_UNKNOWN) } else { meant }
}

/// Whether the server knows no such transaction.
pub(crate) fn is_unknown_transaction(error: &Error) -> bool {
    answer(error).is_some_and(|answer| answer.code == 251)
}

/// What lies behind a failure, for logs: the server's code, and its message
/// where that cannot show what is stored.
pub(crate) fn cause(error: Error) -> Cause {
    Cause(match answer(&error) {
        Some(Answer { code, name, message, .. }) if server::shows_no_values(code) => {
            format!("code {code} ({name}): {message}")
        }
        Some(Answer { code, name, .. }) => format!("code {code} ({name})"),
        None => driver::text(&error),
    })
}

/// The text of a driver's error.
pub(crate) struct Cause(String);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

//! What the server's answers mean, by their codes.

use std::borrow::Cow;

use mongodb::error::{Error, ErrorKind as Kind, TRANSIENT_TRANSACTION_ERROR, WriteFailure};
use rheo_core::ErrorKind;

use super::{
    BROKEN, NO_LOGIN, NO_PRIMARY, STANDALONE, TOO_OLD, Trouble, config, lost, unavailable,
};

const NOT_RHEOS: &str = "a collection or an index of that name is not as Rheo makes it";
const CANCELLED: &str = "the server cancelled the operation, which took too long";
const TOO_LARGE: &str = "a document is larger than the server takes";
const UNCONFIRMED: &str = "it is done on the primary, and most of the members did not confirm it";

/// What a server said of what it did not do.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    pub(super) code: i32,
    pub(super) name: &'a str,
    pub(super) message: &'a str,
    /// Whether the same transaction may succeed when it begins anew.
    pub(super) is_transient: bool,
    /// Whether it was done, and only its confirmation is missing.
    pub(super) is_unconfirmed: bool,
}

/// The server's answer, where the error is one.
pub(super) fn answer(error: &Error) -> Option<Answer<'_>> {
    let is_transient = error.contains_label(TRANSIENT_TRANSACTION_ERROR);
    let answer = |code, name, message, is_unconfirmed| {
        Some(Answer { code, name, message, is_transient, is_unconfirmed })
    };
    match &*error.kind {
        Kind::Command(it) => answer(it.code, &it.code_name, &it.message, false),
        Kind::Write(WriteFailure::WriteError(it)) => {
            answer(it.code, it.code_name.as_deref().unwrap_or_default(), &it.message, false)
        }
        Kind::Write(WriteFailure::WriteConcernError(it)) => {
            answer(it.code, &it.code_name, &it.message, true)
        }
        Kind::InsertMany(many) => {
            match (many.write_errors.iter().flatten().next(), &many.write_concern_error) {
                (Some(it), _) => {
                    answer(it.code, it.code_name.as_deref().unwrap_or_default(), &it.message, false)
                }
                (None, Some(it)) => answer(it.code, &it.code_name, &it.message, true),
                (None, None) => None,
            }
        }
        _ => None,
    }
}

/// What a server's answer means.
pub(super) fn trouble(answer: &Answer<'_>) -> Trouble {
    match known(answer.code, answer.message) {
        Some(Trouble::Lost(sentence)) => Trouble::Lost(sentence),
        _ if answer.is_unconfirmed => lost(UNCONFIRMED),
        _ if answer.is_transient => Trouble::Conflict,
        Some(trouble) => trouble,
        None => {
            let code = answer.code;
            unavailable(format!("the server refused the command (code {code})"))
        }
    }
}

fn known(code: i32, message: &str) -> Option<Trouble> {
    Some(match code {
        // A duplicate key is a race that was lost: it aborted the transaction,
        // and what the other wrote is found when it runs again.
        24 | 48 | 112 | 117 | 239 | 246 | 251 | 11000 | 11001 => Trouble::Conflict,
        6 | 7 | 89 | 9001 => lost(BROKEN),
        91 | 11600 | 11602 => lost("the server is shutting down, or no longer the primary"),
        189 | 10058 | 10107 | 13435 | 13436 => lost("the server is not the primary any more"),
        133 => lost(NO_PRIMARY),
        134 => lost("the server is not ready for reads that all members agree on"),
        43 | 237 => lost("the server no longer knows the place in its answer"),
        64 | 79 | 100 => lost(UNCONFIRMED),
        50 | 262 | 11601 => unavailable(CANCELLED),
        290 => unavailable("a transaction took longer than the server allows"),
        14031 => unavailable("the server's disk is full"),
        13 => forbidden(message),
        11 | 18 | 8000 => config(NO_LOGIN),
        20 if is_of_standalones(message) => config(STANDALONE),
        263 => config("the server does not take this within a transaction"),
        67 | 68 | 85 | 86 | 166 => config(NOT_RHEOS),
        73 => config("the server does not take such a name of a database or a collection"),
        59 | 115 | 40324 => config(TOO_OLD),
        257 | 10334 | 17280 | 17419 | 17420 => {
            Trouble::Refused(ErrorKind::EventTooLarge, TOO_LARGE.into())
        }
        _ => return None,
    })
}

/// The driver puts words of its own in the place of the server's.
fn is_of_standalones(message: &str) -> bool {
    message.contains("Transaction numbers") || message.contains("retryable writes")
}

/// The message names the privilege, and after a brace shows the whole command.
fn forbidden(message: &str) -> Trouble {
    if message.contains("requires authentication") {
        return config("the server asks for a login: mongodb://user:password@host/database");
    }
    let (what, command) = message.split_once('{').unwrap_or((message, ""));
    let command = command.split(':').next().unwrap_or_default();
    let denied: Cow<'_, str> = if command.is_empty() {
        what.trim().into()
    } else {
        format!("{} {}", what.trim(), command.trim()).into()
    };
    config(format!(
        "the user lacks a privilege: Rheo wants the role readWrite on the database ({denied})"
    ))
}

/// Whether the message with this code shows nothing of what is stored. Who
/// refuses a value or a command tends to quote it.
pub(super) fn shows_no_values(code: i32) -> bool {
    let quotes = matches!(code, 13 | 11000 | 11001);
    let known = known(code, "");
    !quotes && !matches!(known, None | Some(Trouble::Refused(ErrorKind::EventTooLarge, _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(code: i32, message: &str, is_transient: bool, is_unconfirmed: bool) -> Trouble {
        trouble(&Answer { code, name: "", message, is_transient, is_unconfirmed })
    }

    fn of(code: i32) -> Trouble {
        told(code, "", false, false)
    }

    #[test]
    fn who_gave_way_may_try_again() {
        for code in [112, 11000, 24, 239, 246, 251] {
            assert_eq!(of(code), Trouble::Conflict, "{code}");
        }
        assert_eq!(told(7777, "", true, false), Trouble::Conflict);
        assert_ne!(of(7777), Trouble::Conflict);
    }

    #[test]
    fn what_is_lost_may_have_happened() {
        let is_lost = |trouble| matches!(trouble, Trouble::Lost(_));
        for code in [6, 7, 43, 64, 89, 91, 100, 133, 134, 189, 9001, 10107, 11600, 11602, 13436] {
            assert!(is_lost(of(code)), "{code}");
            assert!(is_lost(told(code, "", true, false)), "{code} within a transaction");
        }
        assert!(is_lost(told(7777, "", false, true)), "the confirmation alone is missing");
    }

    #[test]
    fn codes_have_their_kinds() {
        let kind = |code| of(code).explained().0;
        for code in [11, 13, 18, 59, 73, 85, 86, 263] {
            assert_eq!(kind(code), ErrorKind::Config, "{code}");
        }
        for code in [50, 262, 14031, 2, 121] {
            assert_eq!(kind(code), ErrorKind::Unavailable, "{code}");
        }
        for code in [257, 10334, 17280] {
            assert_eq!(kind(code), ErrorKind::EventTooLarge, "{code}");
        }
    }

    #[test]
    fn standalones_are_told_how_to_be_more() {
        let servers = "Transaction numbers are only allowed on a replica set member or mongos";
        let drivers = "This MongoDB deployment does not support retryable writes. Please add \
                       retryWrites=false to your connection string.";
        for message in [servers, drivers] {
            assert_eq!(told(20, message, false, false), config(STANDALONE));
        }
        assert_eq!(of(20).explained().0, ErrorKind::Unavailable);
    }

    #[test]
    fn a_missing_privilege_is_named_without_the_command() {
        let message = "not authorized on shop to execute command { update: \"rheo_streams\", \
                       updates: [ { q: { _id: \"hush\" } } ], $db: \"shop\" }";
        let sentence = told(13, message, false, false).explained().1;
        assert!(sentence.contains("readWrite"), "{sentence}");
        assert!(sentence.ends_with("(not authorized on shop to execute command update)"));
        let sentence = told(13, "Command find requires authentication", false, false).explained().1;
        assert!(sentence.contains("asks for a login"));
    }

    #[test]
    fn messages_are_shown_where_they_quote_nothing() {
        assert!([112, 189, 18, 85].into_iter().all(shows_no_values));
        assert!(![11000, 13, 10334, 2, 14, 121].into_iter().any(shows_no_values));
    }
}

//! [`Failure`]: what went wrong below, and what it is above.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind as DriverKind, RedisError, ServerError};
use rheo_core::backend::GroupRef;
use rheo_core::{Effect, Error, ErrorKind, StreamName};

use crate::call::About;

/// What went wrong while an operation ran. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server answered that it does not do that.
    Refused(ServerError),
    /// No connection came about: nothing was sent.
    Unreachable(RedisError),
    /// The connection broke while the answer was awaited.
    Broken(RedisError),
    /// The time for the answer was over.
    Late,
    /// It is done, and this many replicas do not have it yet.
    Unreplicated(u32),
    /// It is done, and the server does not tell how many replicas have it.
    Unconfirmed(ServerError),
    /// No node of the cluster is known to serve that key.
    Unserved,
}

impl Failure {
    /// Whether it was refused, and nothing was done, as memory is used up.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Refused(answer) if answer.code() == "OOM")
    }

    /// Whether it is certain that nothing was changed.
    fn changed_nothing(&self) -> bool {
        match self {
            Self::Refused(answer) => !is_of_running_code(answer),
            Self::Unreachable(_) | Self::Unserved => true,
            Self::Broken(_) | Self::Late | Self::Unreplicated(_) | Self::Unconfirmed(_) => false,
        }
    }

    /// What the caller of `operation` hears of it.
    pub(crate) fn into_error(
        self,
        operation: &'static str,
        about: Option<&About>,
        writes: bool,
    ) -> Error {
        let known = !writes || self.changed_nothing();
        let (kind, sentence) = match &self {
            Self::Refused(answer) | Self::Unconfirmed(answer) => explain_answer(answer, about),
            Self::Unreachable(error) | Self::Broken(error) => explain_driver(error),
            Self::Late => unavailable("the server did not answer in time"),
            Self::Unreplicated(missing) => unavailable(format!(
                "it is done on the primary, and {missing} of the wanted replicas did not confirm \
                 it in time"
            )),
            Self::Unserved => unavailable("no node of the cluster serves that partition now"),
        };
        let error = Error::new(kind, operation, sentence).with_effect(if known {
            Effect::NotApplied
        } else {
            Effect::Unknown
        });
        match self {
            Self::Refused(answer) | Self::Unconfirmed(answer) => {
                error.with_source(Cause(text_of(&answer)))
            }
            Self::Unreachable(cause) | Self::Broken(cause) => {
                error.with_source(Cause(cause.to_string()))
            }
            Self::Late | Self::Unreplicated(_) | Self::Unserved => error,
        }
    }
}

/// Whether a function, or a command in it, failed on the way. What came before
/// that in it was done.
fn is_of_running_code(answer: &ServerError) -> bool {
    answer.details().is_some_and(|details| details.contains(" script: "))
}

/// Whether the server is not, or no longer, the one to write to.
pub(crate) fn is_read_only(answer: &ServerError) -> bool {
    answer.code() == "READONLY"
}

/// Whether the server does not have the function that was called.
pub(crate) fn is_without_function(answer: &ServerError) -> bool {
    answer.code() == "ERR" && answer.details() == Some("Function not found")
}

type Explained = (ErrorKind, Cow<'static, str>);

fn unavailable(sentence: impl Into<Cow<'static, str>>) -> Explained {
    (ErrorKind::Unavailable, sentence.into())
}

fn config(sentence: impl Into<Cow<'static, str>>) -> Explained {
    (ErrorKind::Config, sentence.into())
}

fn damaged(sentence: impl Into<Cow<'static, str>>) -> Explained {
    (ErrorKind::Corrupt, sentence.into())
}

/// What an answer of the server, or of Rheo's functions in it, means.
fn explain_answer(answer: &ServerError, about: Option<&About>) -> Explained {
    let details = answer.details().unwrap_or_default();
    match answer.code() {
        "NOSTREAM" => (ErrorKind::StreamNotFound, name_of_stream(about).into()),
        "NORHEOGROUP" | "NOGROUP" => (ErrorKind::GroupNotFound, name(about).into()),
        "EXISTS" => (ErrorKind::AlreadyExists, name(about).into()),
        "NOCURSOR" => {
            (ErrorKind::CursorNotFound, "the list has no such position, or no longer".into())
        }
        "LOADING" => unavailable("the server is starting up: it still loads its data"),
        "BUSY" => unavailable("the server is busy with a script that takes long"),
        "OOM" => unavailable(
            "the server's memory is used up: raise maxmemory, or delete what is not needed",
        ),
        "READONLY" => unavailable("the server is a replica, and takes no writes"),
        "MASTERDOWN" => unavailable("the server is a replica that has lost its primary"),
        "NOREPLICAS" => unavailable(
            "the server takes no writes, as too few replicas follow it (min-replicas-to-write)",
        ),
        "MISCONF" => unavailable(
            "the server takes no writes, as it cannot save them: look at its log and disk",
        ),
        "CLUSTERDOWN" => unavailable("the cluster is down: not all slots have a primary"),
        "TRYAGAIN" => unavailable("the partition is just being moved to another node"),
        "MOVED" | "ASK" | "CROSSSLOT" => {
            config("the server is a node of a cluster: use redis+cluster:// in the URL")
        }
        "NOAUTH" => config("the server asks for a password: redis://user:password@host"),
        "WRONGPASS" => config(WRONG_PASSWORD),
        "NOPERM" => config(format!("the user lacks a privilege: {details}")),
        "NOSCRIPT" => config(WITHOUT_FUNCTIONS),
        "WRONGTYPE" => damaged("a key under Rheo's prefix holds something that Rheo did not write"),
        "EXECABORT" => unavailable("the server did not take all of a transaction's commands"),
        _ if details.contains("executing the script can't run") => {
            config("the user lacks a privilege that Rheo's functions need: ACL LOG names it")
        }
        _ if is_of_running_code(answer) => {
            damaged("a function failed on what it found in the server")
        }
        "ERR" => explain_details(details),
        code => unavailable(format!("the server refused the command (code {code})")),
    }
}

const WITHOUT_FUNCTIONS: &str =
    "Rheo's functions are missing in the server, and do not stay when loaded";
const WRONG_PASSWORD: &str = "the user or the password is wrong";

fn explain_details(details: &str) -> Explained {
    let says = |words: &str| details.contains(words);
    if says("Function not found") {
        config(WITHOUT_FUNCTIONS)
    } else if says("DB index is out of range") || says("invalid DB index") {
        config("the server has no database of that number")
    } else if says("max number of clients") {
        unavailable("the server has no connection to spare (maxclients)")
    } else if says("cluster support disabled") {
        config("the server is not part of a cluster: use redis:// in the URL")
    } else if says("Error compiling function") || says("Error registering functions") {
        config("the server does not take Rheo's functions")
    } else if says("unknown command") || says("unknown subcommand") {
        config("the server lacks a command that Rheo needs: Redis 7.0 or Valkey is wanted")
    } else {
        unavailable("the server refused the command")
    }
}

/// What an error of the driver means.
fn explain_driver(error: &RedisError) -> Explained {
    match error.kind() {
        DriverKind::AuthenticationFailed => config(WRONG_PASSWORD),
        DriverKind::Server(_) | DriverKind::Extension => {
            // Only what sets a connection up is answered through the driver.
            let details = error.detail().unwrap_or_default();
            if details.starts_with("Redis is loading") {
                return unavailable("the server is starting up: it still loads its data");
            }
            explain_details(details)
        }
        DriverKind::Parse => config("what answers there is no Redis server"),
        DriverKind::Io => explain_io(error),
        DriverKind::InvalidClientConfig | DriverKind::Client => {
            config("the driver does not take the address or the certificates")
        }
        _ => unavailable(BROKEN),
    }
}

const BROKEN: &str = "the server cannot be reached, or the connection to it broke";

fn explain_io(error: &RedisError) -> Explained {
    let Some(error) = io_error(error) else {
        return unavailable(BROKEN);
    };
    match error.kind() {
        io::ErrorKind::ConnectionRefused => unavailable("no server answers there"),
        io::ErrorKind::TimedOut => unavailable("no connection came about in time"),
        io::ErrorKind::InvalidData => {
            config(format!("no encrypted connection came about: {error}"))
        }
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => unavailable("the server closed the connection"),
        _ if error.to_string().contains("lookup address") => {
            unavailable("the host's name leads to no address")
        }
        _ => unavailable(BROKEN),
    }
}

/// The driver wraps what it passes on.
fn io_error(error: &RedisError) -> Option<&io::Error> {
    let wrapped = error.source()?.downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
    wrapped.downcast_ref()
}

/// An answer as the server wrote it, but for what could show an argument.
fn text_of(answer: &ServerError) -> String {
    let details = answer.details().unwrap_or_default();
    let details = details.split(", with args beginning").next().unwrap_or_default();
    format!("{} {details}", answer.code())
}

/// What lies behind a failure, for logs.
struct Cause(String);

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

impl StdError for Cause {}

/// The server holds, or answers, something else than Rheo wrote there.
pub(crate) fn corrupt(operation: &'static str, what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, operation, what)
}

pub(crate) fn stream_not_found(operation: &'static str, name: &StreamName) -> Error {
    Error::new(ErrorKind::StreamNotFound, operation, format!("{name:?}"))
}

pub(crate) fn group_not_found(operation: &'static str, group: &GroupRef) -> Error {
    let name = name(Some(&About::from(group)));
    Error::new(ErrorKind::GroupNotFound, operation, name)
}

/// The group, where it is about one, or the stream.
fn name(about: Option<&About>) -> String {
    match about {
        None => String::new(),
        Some(About { stream, group: None }) => format!("{stream:?}"),
        Some(About { stream, group: Some(group) }) => format!("{group:?} of stream {stream:?}"),
    }
}

fn name_of_stream(about: Option<&About>) -> String {
    about.map(|about| format!("{:?}", about.stream)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};
    use rheo_core::{GroupName, Retry};

    use super::*;

    fn refused(line: &str) -> Failure {
        match parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap() {
            Value::ServerError(error) => Failure::Refused(error),
            other => panic!("{other:?}"),
        }
    }

    fn about() -> About {
        let group = Some(GroupName::new("billing").unwrap());
        About { stream: StreamName::new("orders").unwrap(), group }
    }

    fn error(line: &str) -> Error {
        refused(line).into_error("append", Some(&about()), true)
    }

    #[test]
    fn answers_have_their_kinds_and_nothing_ran() {
        let kinds = [
            (ErrorKind::StreamNotFound, "NOSTREAM no such stream"),
            (ErrorKind::GroupNotFound, "NORHEOGROUP no such group"),
            (ErrorKind::GroupNotFound, "NOGROUP No such key 'k' or consumer group 'g'"),
            (ErrorKind::AlreadyExists, "EXISTS already"),
            (ErrorKind::CursorNotFound, "NOCURSOR no such position"),
            (ErrorKind::Unavailable, "LOADING Redis is loading the dataset in memory"),
            (ErrorKind::Unavailable, "BUSY Redis is busy running a script."),
            (ErrorKind::Unavailable, "OOM command not allowed when used memory > 'maxmemory'."),
            (ErrorKind::Unavailable, "READONLY You can't write against a read only replica."),
            (ErrorKind::Unavailable, "MASTERDOWN Link with MASTER is down"),
            (ErrorKind::Unavailable, "NOREPLICAS Not enough good replicas to write."),
            (ErrorKind::Unavailable, "MISCONF Errors writing to the AOF file"),
            (ErrorKind::Unavailable, "CLUSTERDOWN Hash slot not served"),
            (ErrorKind::Unavailable, "TRYAGAIN Multiple keys request during rehashing"),
            (ErrorKind::Unavailable, "EXECABORT Transaction discarded"),
            (ErrorKind::Unavailable, "ERR max number of clients reached"),
            (ErrorKind::Unavailable, "NEWCODE of a later server"),
            (ErrorKind::Config, "NOAUTH Authentication required."),
            (ErrorKind::Config, "WRONGPASS invalid username-password pair"),
            (ErrorKind::Config, "NOPERM this user has no permissions to run the 'fcall' command"),
            (ErrorKind::Config, "MOVED 3999 127.0.0.1:6381"),
            (ErrorKind::Config, "CROSSSLOT Keys in request don't hash to the same slot"),
            (ErrorKind::Config, "NOSCRIPT No matching script."),
            (ErrorKind::Config, "ERR Function not found"),
            (ErrorKind::Config, "ERR DB index is out of range"),
            (ErrorKind::Config, "ERR This instance has cluster support disabled"),
            (ErrorKind::Config, "ERR unknown command 'FCALL', with args beginning with: 'a'"),
            (ErrorKind::Corrupt, "WRONGTYPE Operation against a key"),
        ];
        for (kind, line) in kinds {
            let error = error(line);
            assert_eq!((error.kind(), error.effect()), (kind, Effect::NotApplied), "{line}");
        }
        assert_eq!(error("OOM").retry(), Retry::After);
    }

    #[test]
    fn sentences_name_what_it_is_about_and_show_no_arguments() {
        assert_eq!(error("NOSTREAM").context(), "\"orders\"");
        assert_eq!(error("NORHEOGROUP").context(), "\"billing\" of stream \"orders\"");
        let denied = error("NOPERM this user has no permissions to run the 'fcall' command");
        assert!(denied.context().ends_with("run the 'fcall' command"), "{denied}");
        let shown =
            format!("{:?}", error("ERR unknown command 'X', with args beginning with: 'a'"));
        assert!(!shown.contains("'a'"), "{shown}");
    }

    #[test]
    fn what_may_have_run_is_told() {
        let io = |kind| RedisError::from(io::Error::from(kind));
        let effect = |failure: Failure, writes| failure.into_error("x", None, writes).effect();
        let broken = || Failure::Broken(io(io::ErrorKind::BrokenPipe));
        assert_eq!(effect(broken(), true), Effect::Unknown);
        assert_eq!(effect(broken(), false), Effect::NotApplied);
        assert_eq!(effect(Failure::Late, true), Effect::Unknown);
        assert_eq!(effect(Failure::Unreplicated(1), true), Effect::Unknown);
        let unreachable = Failure::Unreachable(io(io::ErrorKind::ConnectionRefused));
        assert_eq!(effect(unreachable.clone(), true), Effect::NotApplied);
        let error = unreachable.into_error("x", None, true);
        assert_eq!(error.to_string(), "x: unavailable: no server answers there");
        let halfway = "WRONGTYPE Operation against a key script: f, on @user_function:3.";
        assert_eq!(effect(refused(halfway), true), Effect::Unknown);
    }

    #[test]
    fn a_missing_function_is_known() {
        let missing = |line| match refused(line) {
            Failure::Refused(error) => is_without_function(&error),
            _ => false,
        };
        assert!(missing("ERR Function not found"));
        assert!(!missing("ERR other"));
    }
}

//! What the driver's own errors mean: those that no server answered with.

use std::io;

use mongodb::error::{Error, ErrorKind as Kind};
use rheo_core::ErrorKind;

use super::{
    BROKEN, NO_ANSWER, NO_LOGIN, NO_PRIMARY, STANDALONE, TOO_OLD, Trouble, config, lost,
    unavailable,
};

const NO_HOST: &str = "the host's name leads to no address";
const NO_TIME: &str = "no connection came about in time";
const CLOSED: &str = "the server closed the connection at once: tls=true is for one that encrypts, \
    and for no other";
const NOT_ENCRYPTED: &str =
    "what answers there does not speak TLS: tls=true is for a server that encrypts";
const NOT_TRUSTED: &str =
    "the server's certificate is not trusted: tlsCAFile names who vouches for it";
const OTHER_SET: &str =
    "no server there belongs to the replica set that replicaSet names in the URL";

/// What an error of the driver means.
pub(super) fn trouble(error: &Error) -> Trouble {
    match &*error.kind {
        Kind::Io(error) => of_io(error),
        Kind::ServerSelection { message, .. } => of_selection(message),
        Kind::ConnectionPoolCleared { .. } => lost(BROKEN),
        Kind::DnsResolve { .. } => lost(NO_HOST),
        Kind::InvalidResponse { .. } => lost("the server's answer is not understood"),
        Kind::Shutdown => unavailable("the client is shut down"),
        Kind::Authentication { .. } => config(NO_LOGIN),
        Kind::InvalidTlsConfig { .. } => config("the driver does not take the certificates"),
        Kind::SessionsNotSupported | Kind::IncompatibleServer { .. } => config(TOO_OLD),
        Kind::Transaction { message, .. } if message.contains("not supported by this") => {
            config(STANDALONE)
        }
        Kind::Bson(_) => Trouble::Refused(
            ErrorKind::Corrupt,
            "the database holds something that Rheo did not write".into(),
        ),
        _ => unavailable("the driver does not carry out the operation"),
    }
}

fn of_io(error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => lost(NO_ANSWER),
        io::ErrorKind::TimedOut => lost(NO_TIME),
        _ => of_encryption(&error.to_string()).unwrap_or(lost(BROKEN)),
    }
}

/// Rustls tells of it in words alone.
fn of_encryption(message: &str) -> Option<Trouble> {
    if message.contains("invalid peer certificate") {
        Some(config(NOT_TRUSTED))
    } else if message.contains("received corrupt message") || message.contains("handshake eof") {
        Some(config(NOT_ENCRYPTED))
    } else {
        None
    }
}

/// There is no server for the operation. Why, the driver tells in words alone,
/// for each of the servers that it knows.
fn of_selection(message: &str) -> Trouble {
    let says = |words: &str| message.contains(words);
    if let Some(trouble) = of_encryption(message) {
        trouble
    } else if says("wire version") {
        config(TOO_OLD)
    } else if says("Type: RsGhost") {
        config("the server waits to be a replica set: run rs.initiate() once")
    } else if says("Type: RsSecondary") || says("Type: RsOther") || says("Type: RsArbiter") {
        lost(NO_PRIMARY)
    } else if says("Connection refused") {
        lost(NO_ANSWER)
    } else if says("lookup address") {
        lost(NO_HOST)
    } else if says("unexpected end of file") || says("early eof") || says("reset by peer") {
        lost(CLOSED)
    } else if !says("Servers:") && says("Set Name") {
        config(OTHER_SET)
    } else if says("timed out") || (says("Type: Unknown") && !says("Error:")) {
        lost(NO_TIME)
    } else {
        lost(BROKEN)
    }
}

/// Its text, where that cannot show what is stored.
pub(super) fn text(error: &Error) -> String {
    match &*error.kind {
        Kind::Io(error) => error.to_string(),
        Kind::ServerSelection { message, .. }
        | Kind::ConnectionPoolCleared { message, .. }
        | Kind::DnsResolve { message, .. }
        | Kind::Authentication { message, .. }
        | Kind::InvalidTlsConfig { message, .. }
        | Kind::IncompatibleServer { message, .. }
        | Kind::Transaction { message, .. } => message.clone(),
        Kind::Shutdown | Kind::SessionsNotSupported => error.kind.to_string(),
        _ => "an error of the driver, whose text could show what is stored".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use mongodb::bson::{deserialize_from_document, doc};

    use super::*;

    fn of(kind: io::ErrorKind, text: &str) -> Trouble {
        trouble(&io::Error::new(kind, text).into())
    }

    #[test]
    fn a_broken_connection_is_lost() {
        for kind in [
            io::ErrorKind::ConnectionRefused,
            io::ErrorKind::TimedOut,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::UnexpectedEof,
        ] {
            assert!(matches!(of(kind, ""), Trouble::Lost(_)), "{kind}");
        }
        let wrong = "received corrupt message of type InvalidContentType";
        assert_eq!(of(io::ErrorKind::InvalidData, wrong), config(NOT_ENCRYPTED));
        let foreign = "invalid peer certificate: UnknownIssuer";
        assert_eq!(of(io::ErrorKind::InvalidData, foreign), config(NOT_TRUSTED));
    }

    #[test]
    fn what_keeps_the_driver_from_a_server_is_told() {
        let server = |what: &str| {
            format!(
                "Server selection timeout: No available servers. Topology: {{ Type: Unknown, \
                 Servers: [ {{ Address: h:1, {what} }} ] }}"
            )
        };
        let refused = "Type: Unknown, Error: Kind: I/O error: Connection refused (os error 111)";
        assert_eq!(of_selection(&server(refused)), lost(NO_ANSWER));
        assert_eq!(of_selection(&server("Type: Unknown")), lost(NO_TIME));
        assert_eq!(of_selection(&server("Type: RsSecondary")), lost(NO_PRIMARY));
        let ghost = of_selection(&server("Type: RsGhost")).explained();
        assert!(ghost.0 == ErrorKind::Config && ghost.1.contains("rs.initiate()"));
        let other = "Topology: { Type: ReplicaSetNoPrimary, Set Name: other }";
        assert_eq!(of_selection(other), config(OTHER_SET));
        assert_eq!(of_selection("something new"), lost(BROKEN));
    }

    #[test]
    fn what_the_driver_cannot_read_is_shown_to_nobody() {
        let document = doc! { "a": "hush" };
        let read = deserialize_from_document::<HashMap<String, i32>>(document);
        let error = Error::from(read.unwrap_err());
        assert_eq!(trouble(&error).explained().0, ErrorKind::Corrupt);
        assert!(!text(&error).contains("hush"));
    }
}

//! What the drivers' errors mean, by their codes.

use std::borrow::Cow;
use std::fmt;

use rheo_core::ErrorKind;
use sqlx::error::DatabaseError;

/// What an error of a driver means for the operation that met it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The database gave way to another transaction.
    Conflict,
    /// The connection broke, or never came about.
    Lost(Cow<'static, str>),
    /// The database refused, and says why.
    Refused(ErrorKind, Cow<'static, str>),
}

impl Trouble {
    /// Whether the tables are missing.
    pub(crate) fn is_no_tables(&self) -> bool {
        *self == config(NO_TABLES)
    }

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

const NO_TABLES: &str =
    "the tables are missing: call prepare(), or run the SQL that schema_sql() prints";
const OTHER_TABLES: &str = "the tables are not as this version of Rheo makes them";
const DISK_FULL: &str = "the database's disk is full";
const NO_WRITES: &str = "the database accepts no writes: it is read-only, or a standby";
#[cfg(any(feature = "postgres", feature = "mysql"))]
const NO_LOGIN: &str = "the user or the password is wrong";
#[cfg(any(feature = "postgres", feature = "mysql"))]
const NO_DATABASE: &str = "there is no database of that name";
const TOO_LARGE: &str = "a value is larger than the database takes";
const CANCELLED: &str = "the database cancelled the statement, which took too long";
const BROKEN: &str = "the database cannot be reached, or the connection to it broke";
#[cfg(any(feature = "postgres", feature = "mysql"))]
const ENDED: &str = "the server ended the connection";
const NOT_RHEOS: &str = "the database holds something that Rheo did not write";

fn lost(sentence: &'static str) -> Trouble {
    Trouble::Lost(sentence.into())
}

fn config(sentence: &'static str) -> Trouble {
    Trouble::Refused(ErrorKind::Config, sentence.into())
}

fn unavailable(sentence: &'static str) -> Trouble {
    Trouble::Refused(ErrorKind::Unavailable, sentence.into())
}

fn corrupt(sentence: impl Into<Cow<'static, str>>) -> Trouble {
    Trouble::Refused(ErrorKind::Corrupt, sentence.into())
}

/// A privilege is missing: the database's message names it and the table, and no values.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn forbidden(message: &str) -> Trouble {
    let sentence = format!("the user lacks a privilege: {message}");
    Trouble::Refused(ErrorKind::Config, sentence.into())
}

fn other(code: impl fmt::Display) -> Trouble {
    let sentence = format!("the database refused the statement (code {code})");
    Trouble::Refused(ErrorKind::Unavailable, sentence.into())
}

/// What an error of a driver means.
pub(crate) fn trouble(error: &sqlx::Error) -> Trouble {
    match error {
        sqlx::Error::Database(error) => of_database(&**error),
        sqlx::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            lost("no server answers there")
        }
        sqlx::Error::Io(_) => lost(BROKEN),
        sqlx::Error::Tls(_) => lost("no encrypted connection came about"),
        sqlx::Error::PoolTimedOut => lost(
            "no connection in time: the database does not answer, or all connections are in use",
        ),
        sqlx::Error::PoolClosed => lost("the connection pool is closed"),
        sqlx::Error::Protocol(_) => lost("the database's answer is not understood"),
        sqlx::Error::WorkerCrashed | sqlx::Error::BeginFailed => {
            lost("the driver lost its connection")
        }
        sqlx::Error::Configuration(_) => config("the URL is not what the driver takes"),
        _ => corrupt(NOT_RHEOS),
    }
}

fn of_database(error: &dyn DatabaseError) -> Trouble {
    #[cfg(feature = "postgres")]
    if let Some(error) = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>() {
        return of_postgres(error.code(), error.message());
    }
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return of_mysql(error.number(), error.message());
    }
    #[cfg(feature = "sqlite")]
    if let Some(code) = error.code().and_then(|code| code.parse().ok()) {
        return of_sqlite(code, error.message());
    }
    other(error.code().unwrap_or_default())
}

#[cfg(feature = "postgres")]
fn of_postgres(state: &str, message: &str) -> Trouble {
    match state {
        "40001" | "40P01" | "55P03" => Trouble::Conflict,
        "57P01" | "57P02" | "57P05" | "25P03" | "25P04" => lost(ENDED),
        "57P03" => lost("the server is starting up or shutting down"),
        "53300" => unavailable("the server has no connection to spare (max_connections)"),
        "57014" => unavailable(CANCELLED),
        "53100" => unavailable(DISK_FULL),
        "25006" => unavailable(NO_WRITES),
        "42P01" | "3F000" => config(NO_TABLES),
        "42501" => forbidden(message),
        "28P01" | "28000" => config(NO_LOGIN),
        "3D000" => config(NO_DATABASE),
        "26000" | "42P05" => {
            config("a proxy between pools transactions: say so by the option transaction_pooling")
        }
        "54000" => Trouble::Refused(ErrorKind::EventTooLarge, TOO_LARGE.into()),
        "XX001" | "XX002" => corrupt("the database reports damaged data"),
        _ => match state.get(..2).unwrap_or_default() {
            "08" => lost(BROKEN),
            "22" | "23" => corrupt(format!("{NOT_RHEOS} (code {state})")),
            "42" => config(OTHER_TABLES),
            _ => other(state),
        },
    }
}

#[cfg(feature = "mysql")]
fn of_mysql(number: u16, message: &str) -> Trouble {
    match number {
        1020 | 1205 | 1213 => Trouble::Conflict,
        1153 | 1118 => Trouble::Refused(
            ErrorKind::EventTooLarge,
            format!("{TOO_LARGE} (max_allowed_packet, or a tenth of the redo log)").into(),
        ),
        1053 | 1079 | 1152..=1161 | 1184 | 1927 | 2006 | 2013 | 4031 => lost(ENDED),
        1040 | 1203 | 1226 => {
            unavailable("the server has no connection to spare (max_connections)")
        }
        1461 => unavailable("the server keeps no more statements (max_prepared_stmt_count)"),
        1317 | 1969 | 3024 => unavailable(CANCELLED),
        1021 | 1114 => unavailable(DISK_FULL),
        1290 | 1792 | 1836 => unavailable(NO_WRITES),
        1146 => config(NO_TABLES),
        1044 | 1142 | 1143 | 1227 | 1370 => forbidden(message),
        1045 | 1698 => config(NO_LOGIN),
        1046 | 1049 => config(NO_DATABASE),
        1665 => config("Rheo needs binlog_format ROW or MIXED on this server"),
        1054 | 1091 | 1305 => config(OTHER_TABLES),
        1048 | 1062 | 1264 | 1366 | 1406 => corrupt(format!("{NOT_RHEOS} (code {number})")),
        _ => other(number),
    }
}

#[cfg(feature = "sqlite")]
fn of_sqlite(code: i32, message: &str) -> Trouble {
    match code & 0xff {
        5 | 6 => Trouble::Conflict,
        8 => unavailable(NO_WRITES),
        9 => unavailable(CANCELLED),
        10 => lost("reading or writing the database's file failed"),
        13 => unavailable(DISK_FULL),
        14 => unavailable("the database's file cannot be opened"),
        11 => corrupt("the database reports damaged data"),
        26 => config("the file is no SQLite database"),
        18 => Trouble::Refused(ErrorKind::EventTooLarge, TOO_LARGE.into()),
        19 | 20 => corrupt(format!("{NOT_RHEOS} (code {code})")),
        1 if message.starts_with("no such table") => config(NO_TABLES),
        1 if message.starts_with("no such column") => config(OTHER_TABLES),
        _ => other(code),
    }
}

/// What lies behind a failure, for logs: the database's code and message. What
/// else the driver knows could show the values of a row.
pub(crate) fn cause(error: sqlx::Error) -> Cause {
    let text = match error {
        sqlx::Error::Database(error) => {
            let code = code(&*error);
            match of_database(&*error) {
                // Who refuses a value tends to quote it.
                Trouble::Refused(ErrorKind::Corrupt | ErrorKind::EventTooLarge, _) => {
                    format!("code {code}")
                }
                _ => format!("code {code}: {}", error.message()),
            }
        }
        error => error.to_string(),
    };
    Cause(text)
}

/// MySQL's numbers say more than its states.
fn code(error: &dyn DatabaseError) -> String {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        return error.number().to_string();
    }
    error.code().unwrap_or_default().into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of error that a trouble becomes.
    #[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
    fn kinds(troubles: impl IntoIterator<Item = Trouble>, kind: ErrorKind) {
        for trouble in troubles {
            assert_eq!(trouble.clone().explained().0, kind, "{trouble:?}");
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn codes_of_postgresql_have_their_kinds() {
        let of = |states: &'static [&str]| states.iter().map(|state| of_postgres(state, "why"));
        kinds(of(&["40001", "40P01", "55P03"]), ErrorKind::Conflict);
        kinds(of(&["57P01", "57P03", "53300", "08006", "53100", "25006"]), ErrorKind::Unavailable);
        kinds(of(&["42P01", "42501", "28P01", "3D000", "26000", "42703"]), ErrorKind::Config);
        kinds(of(&["23505", "22P02", "XX001"]), ErrorKind::Corrupt);
        kinds(of(&["54000"]), ErrorKind::EventTooLarge);
        kinds(of(&["", "é", "P0001"]), ErrorKind::Unavailable);
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn codes_of_mysql_have_their_kinds() {
        let of = |numbers: &'static [u16]| numbers.iter().map(|&number| of_mysql(number, "why"));
        kinds(of(&[1205, 1213]), ErrorKind::Conflict);
        kinds(of(&[1040, 1053, 2006, 2013, 1021, 1114, 1290]), ErrorKind::Unavailable);
        kinds(of(&[1146, 1142, 1044, 1045, 1049, 1046, 1054]), ErrorKind::Config);
        kinds(of(&[1062, 1366]), ErrorKind::Corrupt);
        kinds(of(&[1118, 1153]), ErrorKind::EventTooLarge);
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn codes_of_sqlite_have_their_kinds() {
        let of = |codes: &'static [i32]| codes.iter().map(|&code| of_sqlite(code, "why"));
        kinds(of(&[5, 6, 261, 517]), ErrorKind::Conflict);
        kinds(of(&[8, 10, 13, 14, 1]), ErrorKind::Unavailable);
        kinds(of(&[11, 1555, 2067]), ErrorKind::Corrupt);
        kinds([of_sqlite(1, "no such table: rheo_streams")], ErrorKind::Config);
    }
}

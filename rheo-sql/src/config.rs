//! [`Options`]: what can be set, in code or in the URL.

use std::time::Duration;

use rheo_core::Result;
use rheo_core::adapter::{config, millis, number, switch};

use crate::Dialect;
use crate::statements::Names;

/// How Rheo uses a database.
///
/// All of it can stand in the URL as well, after a question mark, under the
/// names of the setters; times there are in milliseconds, as in
/// `sqlite:log.db?table_prefix=audit_&max_connections=4&poll_ms=50`.
/// What stands in the URL prevails. What Rheo does not know goes to the driver.
///
/// ```
/// use rheo_sql::Options;
///
/// let options = Options::default().table_prefix("audit_").max_connections(4);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) names: Names,
    pub(crate) max_connections: u32,
    pub(crate) wake: bool,
    pub(crate) poll: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) statement_timeout: Duration,
    pub(crate) transaction_pooling: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: Names { schema: None, prefix: "rheo_".into() },
            max_connections: 8,
            wake: true,
            poll: Duration::from_millis(200),
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            transaction_pooling: false,
        }
    }
}

/// The names in the URL, in the order of the documentation.
const KEYS: &str = "table_prefix, schema, max_connections, wake, poll_ms, connect_timeout_ms, \
    statement_timeout_ms, transaction_pooling";

impl Options {
    /// What the names of Rheo's tables begin with: small letters, digits and
    /// `_`, up to 30, no digit first. `rheo_` by default. Instances with
    /// different prefixes do not see each other.
    #[must_use]
    pub fn table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.names.prefix = prefix.into();
        self
    }

    /// The schema of the tables, on PostgreSQL; by default the connection's own.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.names.schema = Some(schema.into());
        self
    }

    /// How many connections there are at most, 8 by default. On PostgreSQL
    /// waking takes one more. A pool of the host's has limits of its own.
    #[must_use]
    pub fn max_connections(mut self, most: u32) -> Self {
        self.max_connections = most;
        self
    }

    /// Whether waiting consumers are woken when work arrives (by LISTEN and
    /// NOTIFY on PostgreSQL), as by default. Otherwise they look for it, once
    /// in a [poll](Self::poll).
    #[must_use]
    pub fn wake(mut self, wake: bool) -> Self {
        self.wake = wake;
        self
    }

    /// How often a waiting consumer looks for work where nothing wakes it,
    /// 200 ms by default.
    #[must_use]
    pub fn poll(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// How long to wait for a connection, 5 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the database may take for an operation, 30 s by default. Then
    /// its connection is closed.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Whether a proxy stands between that gives each transaction another
    /// connection, such as PgBouncer in transaction mode. Nothing is then kept
    /// on a connection: no prepared statements, and no waking. Off by default.
    #[must_use]
    pub fn transaction_pooling(mut self, pooling: bool) -> Self {
        self.transaction_pooling = pooling;
        self
    }

    /// Sets what the URL says, where the key is one of Rheo's. Answers whether it is.
    fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "table_prefix" => self.names.prefix = value.into(),
            "schema" => self.names.schema = Some(value.into()),
            "max_connections" => self.max_connections = number(key, value)?,
            "wake" => self.wake = switch(key, value)?,
            "poll_ms" => self.poll = millis(key, value)?,
            "connect_timeout_ms" => self.connect_timeout = millis(key, value)?,
            "statement_timeout_ms" => self.statement_timeout = millis(key, value)?,
            "transaction_pooling" => self.transaction_pooling = switch(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what no type can.
    pub(crate) fn checked(mut self, dialect: Dialect) -> Result<Self> {
        let prefix = &self.names.prefix;
        if !is_name(prefix, 30) {
            return Err(config(format!(
                "table_prefix {prefix:?}: 1 to 30 small letters, digits and _, no digit first"
            )));
        }
        if let Some(schema) = &self.names.schema {
            if !dialect.has_schemas() {
                return Err(config("the option schema is for PostgreSQL alone"));
            }
            if !is_name(schema, 63) {
                return Err(config(format!(
                    "schema {schema:?}: 1 to 63 small letters, digits and _, no digit first"
                )));
            }
        }
        let times = [self.poll, self.connect_timeout, self.statement_timeout];
        if self.max_connections == 0 || times.contains(&Duration::ZERO) {
            return Err(config("max_connections and all times are to be above 0"));
        }
        self.wake &= !self.transaction_pooling;
        Ok(self)
    }
}

/// Takes Rheo's own keys out of a URL's query. What is left is the driver's,
/// whose keys `theirs` knows.
pub(crate) fn take_options(
    dialect: Dialect,
    url: &str,
    mut options: Options,
    theirs: &[&str],
) -> Result<(String, Options)> {
    let Some((address, query)) = url.split_once('?') else {
        return Ok((url.into(), options.checked(dialect)?));
    };
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if options.set(key, value)? {
            continue;
        }
        let known = theirs.iter().any(|known| key == *known || key.starts_with("options["));
        if !known {
            return Err(config(format!(
                "unknown option {key:?} in the URL: Rheo's are {KEYS}; the driver's are {}",
                theirs.join(", ")
            )));
        }
        rest.push(pair);
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((format!("{address}{query}"), options.checked(dialect)?))
}

fn is_name(name: &str, most: usize) -> bool {
    let fits = (1..=most).contains(&name.len()) && !name.starts_with(|c: char| c.is_ascii_digit());
    fits && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    fn take(url: &str) -> Result<(String, Options)> {
        take_options(Dialect::Sqlite, url, Options::default(), &["mode", "sslmode"])
    }

    #[test]
    fn our_keys_are_taken_and_the_drivers_left() {
        let url = "postgres://u:p%3F@h/d?wake=off&sslmode=require&poll_ms=50&table_prefix=a_";
        let (rest, options) = take(url).unwrap();
        assert_eq!(rest, "postgres://u:p%3F@h/d?sslmode=require");
        assert!(!options.wake);
        assert_eq!((options.poll, &*options.names.prefix), (Duration::from_millis(50), "a_"));
        assert_eq!(take("sqlite:a.db?wake=on").unwrap().0, "sqlite:a.db");
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |url: &str| take(url).unwrap_err().context().to_string();
        assert!(told("sqlite:a?colour=red").contains("unknown option \"colour\""));
        assert!(told("sqlite:a?colour=red").contains("table_prefix, schema"));
        assert_eq!(told("sqlite:a?poll_ms=soon"), "poll_ms=soon: a number is wanted");
        assert_eq!(told("sqlite:a?wake=maybe"), "wake=maybe: on or off is wanted");
        for prefix in ["", "1a", "A", "a-b", "a\"", "abcdefghijklmnopqrstuvwxyzabcde"] {
            assert!(told(&format!("sqlite:a?table_prefix={prefix}")).contains("table_prefix"));
        }
    }
}

//! [`Options`]: what can be set, in code or in the URL.

use std::time::Duration;

use rheo_core::Result;
use rheo_core::adapter::{config, decoded, millis, number, switch};

/// How Rheo uses a MongoDB database.
///
/// All of it can stand in the URL as well, after a question mark, under the
/// names of the setters; times there are in milliseconds, as in
/// `mongodb://localhost/shop?collection_prefix=audit_&max_connections=4&poll_ms=50`.
/// What stands in the URL prevails. What Rheo does not know and MongoDB's own
/// URLs do, such as `replicaSet`, `tls` or `authSource`, goes to the driver.
///
/// ```
/// use rheo_mongo::Options;
///
/// let options = Options::default().collection_prefix("audit_").max_connections(4);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) collection_prefix: String,
    pub(crate) max_connections: u32,
    pub(crate) wake: bool,
    pub(crate) poll: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) operation_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            collection_prefix: "rheo_".into(),
            max_connections: 8,
            wake: true,
            poll: Duration::from_millis(200),
            connect_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(30),
        }
    }
}

/// The names in the URL, in the order of the documentation.
const KEYS: &str = "collection_prefix, max_connections, wake, poll_ms, connect_timeout_ms, \
    operation_timeout_ms";

/// What the driver knows in a URL. Rheo itself decides from where it reads and
/// when it waits for what.
const DRIVERS: [&str; 26] = [
    "appName",
    "authMechanism",
    "authMechanismProperties",
    "authSource",
    "connectTimeoutMS",
    "directConnection",
    "heartbeatFrequencyMS",
    "journal",
    "loadBalanced",
    "maxConnecting",
    "maxIdleTimeMS",
    "maxPoolSize",
    "minPoolSize",
    "replicaSet",
    "retryReads",
    "retryWrites",
    "serverMonitoringMode",
    "serverSelectionTimeoutMS",
    "srvMaxHosts",
    "srvServiceName",
    "ssl",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "w",
];

impl Options {
    /// What the names of Rheo's collections begin with: up to 64 letters,
    /// digits, `_`, `-` and `.`, a letter first. `rheo_` by default. Instances
    /// with different prefixes do not see each other.
    #[must_use]
    pub fn collection_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.collection_prefix = prefix.into();
        self
    }

    /// How many connections to the primary there are at most, 8 by default.
    /// Waking takes one more, and so does the driver, which watches each
    /// server. A client of the host's has limits of its own.
    #[must_use]
    pub fn max_connections(mut self, most: u32) -> Self {
        self.max_connections = most;
        self
    }

    /// Whether waiting consumers are woken when work arrives, by a change
    /// stream, as by default. Otherwise they look for it, once in a
    /// [poll](Self::poll).
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

    /// How long to wait for a server, 5 s by default. A client of the host's
    /// has a time of its own.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an operation may take, 30 s by default, running it again after
    /// conflicts included.
    #[must_use]
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.operation_timeout = timeout;
        self
    }

    /// Sets what the URL says, where the key is one of Rheo's. Answers whether it is.
    fn set(&mut self, key: &str, value: &str) -> Result<bool> {
        match key {
            "collection_prefix" => self.collection_prefix = text(key, value)?,
            "max_connections" => self.max_connections = number(key, value)?,
            "wake" => self.wake = switch(key, value)?,
            "poll_ms" => self.poll = millis(key, value)?,
            "connect_timeout_ms" => self.connect_timeout = millis(key, value)?,
            "operation_timeout_ms" => self.operation_timeout = millis(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what no type can.
    pub(crate) fn checked(self) -> Result<Self> {
        let prefix = &self.collection_prefix;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let fits = (1..=64).contains(&prefix.len()) && prefix.bytes().all(is_name);
        let begins = prefix.starts_with(|c: char| c.is_ascii_alphabetic());
        // The server keeps such names for itself.
        if !fits || !begins || prefix.starts_with("system.") {
            return Err(config(format!(
                "collection_prefix {prefix:?}: 1 to 64 letters, digits, _, - and ., a letter \
                 first, and not system."
            )));
        }
        let times = [self.poll, self.connect_timeout, self.operation_timeout];
        if self.max_connections == 0 || times.iter().any(|time| time.as_millis() == 0) {
            return Err(config("max_connections is to be 1 at least, and all times 1 ms"));
        }
        Ok(self)
    }
}

/// Takes Rheo's own keys out of a URL's query. What is left is the driver's.
pub(crate) fn take_options(url: &str, mut options: Options) -> Result<(String, Options)> {
    let Some((address, query)) = url.split_once('?') else {
        return Ok((url.into(), options.checked()?));
    };
    // Such a URL is to be refused before anything of it is shown.
    if query.contains('@') || url.contains('#') {
        return Err(config(
            "in a user's name, a password or an option, ? is to be written as %3F, @ as %40 and \
             # as %23",
        ));
    }
    let mut rest = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if options.set(key, value)? {
            continue;
        }
        if !DRIVERS.iter().any(|known| known.eq_ignore_ascii_case(key)) {
            return Err(config(format!(
                "unknown option {key:?} in the URL: Rheo's are {KEYS}; the driver's are {}",
                DRIVERS.join(", ")
            )));
        }
        rest.push(pair);
    }
    let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
    Ok((format!("{address}{query}"), options.checked()?))
}

fn text(key: &str, value: &str) -> Result<String> {
    decoded(value).ok_or_else(|| config(format!("{key}: the value is not encoded as in a URL")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(url: &str) -> Result<(String, Options)> {
        take_options(url, Options::default())
    }

    #[test]
    fn our_keys_are_taken_and_the_drivers_left() {
        let url = "mongodb://u:p%3F@h,i/d?wake=off&replicaSet=rs0&poll_ms=50&TLS=true\
            &collection_prefix=a%2Eb_&operation_timeout_ms=9";
        let (rest, options) = take(url).unwrap();
        assert_eq!(rest, "mongodb://u:p%3F@h,i/d?replicaSet=rs0&TLS=true");
        assert!(!options.wake);
        assert_eq!((options.poll, &*options.collection_prefix), (millis_of(50), "a.b_"));
        assert_eq!(options.operation_timeout, millis_of(9));
        assert_eq!(take("mongodb://h/d?wake=on").unwrap().0, "mongodb://h/d");
        assert_eq!(take("mongodb://h/d").unwrap().0, "mongodb://h/d");
    }

    fn millis_of(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |query: &str| {
            let error = take(&format!("mongodb://h/d?{query}")).unwrap_err();
            error.context().to_string()
        };
        assert!(told("colour=red").contains("unknown option \"colour\""));
        assert!(told("colour=red").contains("collection_prefix, max_connections"));
        assert!(told("readPreference=secondary").contains("replicaSet, retryReads"));
        assert_eq!(told("poll_ms=soon"), "poll_ms=soon: a number is wanted");
        assert_eq!(told("wake=maybe"), "wake=maybe: on or off is wanted");
        assert!(told("poll_ms=0").contains("1 ms"));
        assert!(told("max_connections=0").contains("1 at least"));
        assert!(told("collection_prefix=%zz").contains("not encoded"));
        let long = "a".repeat(65);
        for prefix in ["", "1a", "_a", "a$", "a b", "a%00", "%C3%A9", "system.", &long] {
            assert!(told(&format!("collection_prefix={prefix}")).contains("a letter"), "{prefix}");
        }
    }

    #[test]
    fn what_may_be_a_password_is_not_shown() {
        for url in ["mongodb://u:se?cret@h/d", "mongodb://u:se#cret@h/d?wake=on"] {
            let error = take(url).unwrap_err();
            assert!(error.context().contains("%3F"));
            assert!(!format!("{error:?}").contains("cret"));
        }
    }
}

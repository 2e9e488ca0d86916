//! [`Options`]: what can be set, in code or in the URL.

use std::path::PathBuf;
use std::time::Duration;

use rheo_core::Result;
use rheo_core::adapter::{config, decoded, millis, number, switch};

/// What a stream's events can be found by without reading the whole log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Index {
    /// By type.
    Type,
    /// By key.
    Key,
    /// By the lineage fields of the metadata, such as `correlation_id`.
    Lineage,
}

impl Index {
    pub(crate) const ALL: [Self; 3] = [Self::Type, Self::Key, Self::Lineage];

    /// Its name in a URL, and in the server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Key => "key",
            Self::Lineage => "lineage",
        }
    }
}

/// How Rheo uses a server or a cluster.
///
/// All of it can stand in the URL as well, after a question mark, under the
/// names of the setters; times there are in milliseconds, as in
/// `redis://localhost?prefix=audit:&index=type,key&poll_ms=50`.
/// What stands in the URL prevails.
///
/// ```
/// use rheo_redis::{Index, Options};
///
/// let options = Options::default().prefix("audit:").index([Index::Type, Index::Key]);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) prefix: String,
    pub(crate) wake: bool,
    pub(crate) poll: Duration,
    pub(crate) index: Vec<Index>,
    pub(crate) replicas: u32,
    pub(crate) replica_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            prefix: "rheo:".into(),
            wake: true,
            poll: Duration::from_millis(200),
            index: Vec::new(),
            replicas: 0,
            replica_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(10),
            ca_file: None,
        }
    }
}

/// The names in the URL, in the order of the documentation.
const KEYS: &str = "prefix, wake, poll_ms, index, replicas, replica_timeout_ms, \
    connect_timeout_ms, response_timeout_ms, ca_file";

impl Options {
    /// What the names of all of Rheo's keys begin with, `rheo:` by default: up
    /// to 255 bytes without braces and control characters. Instances with
    /// different prefixes do not see each other, unless one prefix begins with
    /// the other.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Whether waiting consumers are woken when work arrives, by PUBLISH and
    /// SUBSCRIBE on a connection of its own, as by default. Otherwise they look
    /// for it, once in a [poll](Self::poll).
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

    /// What the events of streams that this instance creates can be found by
    /// without reading the whole log; nothing by default. Each index costs
    /// memory and time for every event.
    #[must_use]
    pub fn index(mut self, by: impl IntoIterator<Item = Index>) -> Self {
        self.index = by.into_iter().collect();
        self
    }

    /// How many replicas are to have a change before the operation that made it
    /// returns, by WAIT; none by default. Where fewer have it in
    /// [time](Self::replica_timeout), the operation fails as `Unavailable`, its
    /// effect unknown: the primary has it. All operations of the instance stand
    /// in line while one waits.
    #[must_use]
    pub fn replicas(mut self, count: u32) -> Self {
        self.replicas = count;
        self
    }

    /// How long to wait for [replicas](Self::replicas), 1 s by default; shorter
    /// than the [response timeout](Self::response_timeout).
    #[must_use]
    pub fn replica_timeout(mut self, timeout: Duration) -> Self {
        self.replica_timeout = timeout;
        self
    }

    /// How long to wait for a connection, 5 s by default.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the server may take for an answer, 10 s by default. Then later
    /// operations get another connection.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// A file of certificates in PEM form. Only a server whose certificate one
    /// of them vouches for is then trusted; by default those are trusted that
    /// browsers trust. For `rediss://` and its like.
    #[must_use]
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(file.into());
        self
    }

    /// The indexes as the server keeps them: a list with commas.
    pub(crate) fn index_list(&self) -> String {
        let names: Vec<_> = self.index.iter().map(|index| index.name()).collect();
        names.join(",")
    }

    fn set(&mut self, key: &str, value: String) -> Result<()> {
        match key {
            "prefix" => self.prefix = value,
            "wake" => self.wake = switch(key, &value)?,
            "poll_ms" => self.poll = millis(key, &value)?,
            "index" => self.index = indexes(key, &value)?,
            "replicas" => self.replicas = number(key, &value)?,
            "replica_timeout_ms" => self.replica_timeout = millis(key, &value)?,
            "connect_timeout_ms" => self.connect_timeout = millis(key, &value)?,
            "response_timeout_ms" => self.response_timeout = millis(key, &value)?,
            "ca_file" => self.ca_file = Some(value.into()),
            _ => {
                return Err(config(format!("unknown option {key:?} in the URL: there are {KEYS}")));
            }
        }
        Ok(())
    }

    /// Checks what no type can, and brings the rest into its one form.
    pub(crate) fn checked(mut self) -> Result<Self> {
        let prefix = &self.prefix;
        let strange = |c: char| c == '{' || c == '}' || c.is_control();
        if !(1..=255).contains(&prefix.len()) || prefix.contains(strange) {
            return Err(config(format!(
                "prefix {prefix:?}: 1 to 255 bytes, no braces and no control characters"
            )));
        }
        let times = [self.poll, self.replica_timeout, self.connect_timeout, self.response_timeout];
        if times.iter().any(|time| time.as_millis() == 0) {
            return Err(config("all times are to be 1 ms at least"));
        }
        if self.replicas > 0 && self.replica_timeout >= self.response_timeout {
            return Err(config("replica_timeout is to be shorter than response_timeout"));
        }
        self.index.sort();
        self.index.dedup();
        Ok(self)
    }
}

/// Takes the options out of a URL: what is left is the address.
pub(crate) fn take_options(url: &str, mut options: Options) -> Result<(&str, Options)> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    // Such a URL is to be refused before anything of it is shown.
    if query.contains('@') || url.contains('#') {
        return Err(config(
            "in a user's name, a password or an option, ? is to be written as %3F, @ as %40 and \
             # as %23",
        ));
    }
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)
            .ok_or_else(|| config(format!("{key}: the value is not encoded as in a URL")))?;
        options.set(key, value)?;
    }
    Ok((address, options.checked()?))
}

fn indexes(key: &str, value: &str) -> Result<Vec<Index>> {
    let index = |name: &str| {
        let found = Index::ALL.into_iter().find(|index| index.name() == name);
        found.ok_or_else(|| config(format!("{key}={value}: a list of type, key and lineage")))
    };
    value.split(',').filter(|name| !name.is_empty()).map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(url: &str) -> Result<(&str, Options)> {
        take_options(url, Options::default())
    }

    #[test]
    fn options_are_taken_and_the_address_is_left() {
        let url = "redis://u:p%3F@h/2?wake=off&prefix=a%3Ab&poll_ms=50&index=lineage,type,type\
            &replicas=2&ca_file=/a%20b";
        let (rest, options) = take(url).unwrap();
        assert_eq!(rest, "redis://u:p%3F@h/2");
        assert!(!options.wake);
        assert_eq!((options.poll, &*options.prefix), (Duration::from_millis(50), "a:b"));
        assert_eq!((&*options.index_list(), options.replicas), ("type,lineage", 2));
        assert_eq!(options.ca_file, Some("/a b".into()));
        assert_eq!(take("redis://h?").unwrap().0, "redis://h");
        assert_eq!(take("redis://h").unwrap().1.index_list(), "");
    }

    #[test]
    fn what_is_wrong_is_told() {
        let told = |url: &str| take(url).unwrap_err().context().to_string();
        assert!(told("redis://h?colour=red").contains("unknown option \"colour\""));
        assert!(told("redis://h?colour=red").contains("prefix, wake"));
        assert_eq!(told("redis://h?poll_ms=soon"), "poll_ms=soon: a number is wanted");
        assert_eq!(told("redis://h?wake=maybe"), "wake=maybe: on or off is wanted");
        assert!(told("redis://h?index=type,id").contains("type, key and lineage"));
        assert!(told("redis://h?poll_ms=0").contains("1 ms"));
        assert!(told("redis://h?replicas=1&replica_timeout_ms=10000").contains("shorter"));
        assert!(told("redis://h?prefix=%zz").contains("not encoded"));
        for prefix in ["", "a{b", "a}", "a%0a"] {
            assert!(told(&format!("redis://h?prefix={prefix}")).contains("no braces"));
        }
    }

    #[test]
    fn what_may_be_a_password_is_not_shown() {
        for url in ["redis://u:se?cret@h", "redis://u:se#cret@h", "redis://h#insecure"] {
            let error = take(url).unwrap_err();
            assert!(error.context().contains("%3F"));
            assert!(!format!("{error:?}").contains("cret"));
        }
    }
}

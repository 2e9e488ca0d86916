//! [`Address`]: what a URL says about where the servers are, and who asks.

use std::fmt;
use std::path::Path;

use redis::io::tcp::TcpSettings;
use redis::{
    Client, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, RedisResult, TlsCertificates,
};
use rheo_core::Result;
use rheo_core::adapter::{config, decoded};

/// The port where the URL names none.
const PORT: u16 = 6379;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Who asks, and how: the same at every node of a cluster.
#[derive(Clone)]
pub(crate) struct Access {
    login: RedisConnectionInfo,
    encrypted: bool,
    /// The certificates that are trusted, where it is not the usual ones.
    trusted: Option<Vec<u8>>,
}

/// What a URL says, but for the options.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) cluster: bool,
    /// The server, or some nodes of the cluster.
    pub(crate) places: Vec<Place>,
    pub(crate) access: Access,
}

impl Address {
    /// Reads a URL without its options. What may be secret is in no error.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) = url.split_once("://").ok_or_else(unlike)?;
        let (scheme, cluster) = match scheme.strip_suffix("+cluster") {
            Some(scheme) => (scheme, true),
            None => (scheme, false),
        };
        let encrypted = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(unlike()),
        };
        let (user, rest) = match rest.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, rest),
        };
        let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
        let places: Vec<_> = hosts.split(',').map(place).collect::<Result<_>>()?;
        if places.len() > 1 && !cluster {
            return Err(config("several hosts are for a cluster: redis+cluster://…"));
        }
        let mut login = login(user)?;
        if !matches!(database, "" | "0") {
            if cluster {
                return Err(config("a cluster has no database but 0"));
            }
            let number = database.parse::<u16>();
            let number = number.map_err(|_| config("after the host a database's number is wanted"));
            login = login.set_db(number?.into());
        }
        let access = Access { login, encrypted, trusted: None };
        Ok(Self { cluster, places, access })
    }
}

impl Access {
    /// Trusts the certificates in this file, and no others.
    pub(crate) fn trusting(mut self, file: &Path) -> Result<Self> {
        if !self.encrypted {
            return Err(config("ca_file is for an encrypted connection: rediss://…"));
        }
        let read = std::fs::read(file);
        let read = read.map_err(|error| config(format!("ca_file {}: {error}", file.display())));
        self.trusted = Some(read?);
        Ok(self)
    }

    /// What connects to a server.
    pub(crate) fn client(&self, place: &Place) -> RedisResult<Client> {
        let Place { host, port } = place.clone();
        let addr = if self.encrypted {
            // The application's own choice of cryptography prevails, if it made one.
            let _ = rustls::crypto::ring::default_provider().install_default();
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let info = addr
            .into_connection_info()?
            .set_tcp_settings(TcpSettings::default().set_nodelay(true))
            .set_redis_settings(self.login.clone());
        match &self.trusted {
            Some(trusted) => {
                let root_cert = Some(trusted.clone());
                Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })
            }
            None => Client::open(info),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("user", &self.login.username())
            .field("encrypted", &self.encrypted)
            .finish_non_exhaustive()
    }
}

fn place(text: &str) -> Result<Place> {
    let (host, port) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    // A password whose @ is forgotten would look like a port.
    let port = port.map_or(Ok(PORT), str::parse).map_err(|_| unlike())?;
    if host.is_empty() {
        return Err(config("the URL names no host"));
    }
    Ok(Place { host: host.into(), port })
}

fn login(user: Option<&str>) -> Result<RedisConnectionInfo> {
    let mut login = RedisConnectionInfo::default().set_lib_name("rheo", env!("CARGO_PKG_VERSION"));
    let Some(user) = user else {
        return Ok(login);
    };
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let decoded = |text| {
        decoded(text).ok_or_else(|| config("the user or the password is not encoded as in a URL"))
    };
    if password.is_empty() {
        return Err(config("the URL names a user without a password: redis://user:password@host"));
    }
    if !name.is_empty() {
        login = login.set_username(decoded(name)?);
    }
    Ok(login.set_password(decoded(password)?))
}

fn unlike() -> rheo_core::Error {
    config(
        "the URL is not like redis://user:password@host:port/database, with rediss:// where it is \
         encrypted, or redis+cluster://host:port,host:port; valkey:// is the same",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).unwrap()
    }

    fn told(url: &str) -> String {
        Address::parse(url).unwrap_err().context().into()
    }

    #[test]
    fn urls_say_where_and_who() {
        let address = parse("redis://ada:p%3Aa%40s%2Fs@db.example:7000/3");
        assert!(!address.cluster && !address.access.encrypted);
        assert_eq!(address.places, [Place { host: "db.example".into(), port: 7000 }]);
        let login = &address.access.login;
        assert_eq!((login.username(), login.password()), (Some("ada"), Some("p:a@s/s")));
        assert_eq!(login.db(), 3);
        let address = parse("valkeys://:secret@[::1]");
        assert!(address.access.encrypted);
        assert_eq!(address.places, [Place { host: "::1".into(), port: PORT }]);
        assert_eq!(address.access.login.username(), None);
        assert_eq!(address.access.login.password(), Some("secret"));
        assert_eq!(parse("redis://[fe80::1]:7/").places[0].port, 7);
    }

    #[test]
    fn clusters_have_many_places() {
        let address = parse("rediss+cluster://u:p@a:1,b,[::1]:3/0");
        assert!(address.cluster && address.access.encrypted);
        let places: Vec<_> = address.places.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["a:1", "b:6379", "::1:3"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for url in ["redis:", "http://h", "redis+unix://h", "h:1", "redis://h:x", "redis://h:99999"]
        {
            assert!(told(url).contains("is not like"), "{url}");
        }
        assert!(told("redis://").contains("no host"));
        assert!(told("redis://a,b").contains("for a cluster"));
        assert!(told("redis://h/x").contains("database's number"));
        assert!(told("redis+cluster://h/1").contains("no database but 0"));
        assert!(told("redis://user@h").contains("without a password"));
        assert!(told("redis://u:%zz@h").contains("not encoded"));
    }

    #[test]
    fn secrets_are_never_shown() {
        let mut shown = format!("{:?}", parse("redis://u:hush@h"));
        for url in ["redis://u:hush@:x", "redis://u:hush", "http://u:hush@h", "redis://u:hush%zz@h"]
        {
            shown += &format!("{:?}", Address::parse(url).unwrap_err());
        }
        assert!(!shown.contains("hush"), "{shown}");
    }
}

//! [`Address`]: what a URL says about where the servers are, and who asks.

use std::fmt;

use mongodb::Client;
use mongodb::error::ErrorKind as Kind;
use mongodb::options::{ClientOptions, ConnectionString, HostInfo, ReadPreference};
use rheo_core::Result;
use rheo_core::adapter::config;
use tokio::time::timeout;

use super::told;
use crate::config::Options;
use crate::error::Failure;

/// What a URL says, but for Rheo's options.
pub(super) struct Address {
    pub(super) database: String,
    connection: ConnectionString,
}

impl Address {
    /// Reads a URL. What may be secret is in no error.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let known = ["mongodb://", "mongodb+srv://"];
        if !known.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(unlike());
        }
        // What is wrong before the options, the driver cannot say without
        // showing what may be a password.
        let address = url.split('?').next().unwrap_or_default();
        ConnectionString::parse(address).map_err(|_| unlike())?;
        let connection = ConnectionString::parse(url).map_err(wrong_option)?;
        let Some(database) = connection.default_database.clone() else {
            return Err(config("the URL names no database: mongodb://host/database"));
        };
        check_database(&database)?;
        Ok(Self { database, connection })
    }

    /// Which servers it leads to, for people.
    pub(super) fn place(&self) -> String {
        let hosts = match &self.connection.host_info {
            HostInfo::HostIdentifiers(hosts) => {
                hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
            }
            HostInfo::DnsRecord(name) => name.clone(),
            _ => String::new(),
        };
        format!("MongoDB at {hosts}, database {:?}", self.database)
    }

    /// What connects to the servers, when it is used.
    pub(super) async fn client(&self, options: &Options) -> Result<Client> {
        let parsing = ClientOptions::parse(self.connection.clone()).into_future();
        let parsed = timeout(options.connect_timeout, parsing).await;
        let parsed = parsed.map_err(|_| told(Failure::Late))?;
        let mut settings = parsed.map_err(|error| told(error.into()))?;
        settings.app_name.get_or_insert_with(|| "rheo".into());
        settings.connect_timeout.get_or_insert(options.connect_timeout);
        settings.server_selection_timeout.get_or_insert(options.connect_timeout);
        settings.max_pool_size.get_or_insert(options.max_connections + u32::from(options.wake));
        // A transaction would take it over.
        settings.selection_criteria = Some(ReadPreference::Primary.into());
        Client::with_options(settings).map_err(|error| told(error.into()))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.place()).finish()
    }
}

/// Checks what the server would refuse, or take for something else.
pub(super) fn check_database(name: &str) -> Result<()> {
    let strange = |c: char| matches!(c, '/' | '\\' | '.' | ' ' | '"' | '$' | '\0');
    if !(1..64).contains(&name.len()) || name.contains(strange) {
        return Err(config(format!(
            "database {name:?}: 1 to 63 bytes, without / \\ . \" $ and spaces"
        )));
    }
    Ok(())
}

fn unlike() -> rheo_core::Error {
    config(
        "the URL is not like mongodb://user:password@host:port/database or \
         mongodb+srv://user:password@host/database, with @ : / ? # % [ ] in the user and the \
         password written as in a URL (%40 for @)",
    )
}

/// The driver names the option. It quotes values of one alone, which may be secret.
fn wrong_option(error: mongodb::error::Error) -> rheo_core::Error {
    match *error.kind {
        Kind::InvalidArgument { message, .. } if !message.contains("authMechanismProperties") => {
            config(format!("the options in the URL: {message}"))
        }
        _ => config("the options in the URL are not what the driver takes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(url: &str) -> String {
        Address::parse(url).unwrap_err().context().into()
    }

    #[test]
    fn urls_say_where() {
        let place = |url| Address::parse(url).unwrap().place();
        let several = place("mongodb://u:p%40@a:1,b/shop?replicaSet=rs");
        assert_eq!(several, "MongoDB at a:1,b:27017, database \"shop\"");
        let name = place("mongodb+srv://u:p@cluster.example/shop");
        assert_eq!(name, "MongoDB at cluster.example, database \"shop\"");
    }

    #[test]
    fn what_is_wrong_is_told() {
        for url in ["mongo://h/d", "h/d", "mongodb:h/d", "mongodb:///d", "mongodb://h:x/d"] {
            assert!(told(url).contains("is not like mongodb://"), "{url}");
        }
        for url in ["mongodb://h", "mongodb://h/", "mongodb://h?tls=true"] {
            assert!(told(url).contains("names no database: mongodb://host/database"), "{url}");
        }
        assert!(told("mongodb://h/a.b").contains("database \"a.b\""));
        assert!(told(&format!("mongodb://h/{}", "a".repeat(64))).contains("1 to 63 bytes"));
        assert!(told("mongodb://h/d?tls=maybe").contains("tls"));
        assert!(told("mongodb://h/d?maxPoolSize=many").contains("maxpoolsize"));
        assert!(told("mongodb+srv://h:1/d").contains("is not like"));
    }

    #[test]
    fn secrets_are_never_shown() {
        let mut shown = format!("{:?}", Address::parse("mongodb://u:hush@h/d").unwrap());
        for url in [
            "mongodb://u:hush",
            "mongodb://u:hush/d",
            "mongodb://u:hush@:x/d",
            "mongodb://u:hu/sh@h/d",
            "mongodb://u:hush%zz@h/d",
            "mongo://u:hush@h/d",
            "mongodb://u:p@h/d?authMechanismProperties=hush",
        ] {
            shown += &format!("{:?}", Address::parse(url).unwrap_err());
        }
        assert!(!shown.contains("hush"), "{shown}");
    }
}

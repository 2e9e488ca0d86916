//! [`Facts`]: what is known of a server, or of all nodes of a cluster.

use std::collections::HashMap;

use redis::{Cmd, FromRedisValue, cmd};
use rheo_core::Result;
use rheo_core::adapter::config;

use crate::error::Failure;
use crate::link::{Answer, Batch, Node};

/// What an event may have, encoded: the server takes no more than 512 MB in one
/// piece by default, and a function holds an event more than once.
const EVENT_BYTES: usize = 64 << 20;

/// What is known of a server, or of all nodes of a cluster, as it connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `Redis` or `Valkey`.
    pub(crate) product: String,
    pub(crate) version: String,
    pub(crate) cluster: bool,
    /// Whether a restart keeps what was acknowledged.
    pub(crate) durable: bool,
    /// How large an event may be.
    pub(crate) event_bytes: usize,
}

impl Facts {
    /// Asks a server, and refuses one on which Rheo cannot work.
    pub(super) async fn read(node: &Node, cluster: bool) -> Result<Self> {
        let hello = ask(node, &cmd("HELLO")).await?;
        let hello = hello.map_err(|refused| told(Failure::Refused(refused)))?;
        let hello = HashMap::<String, redis::Value>::from_redis_value(hello);
        let hello = hello.map_err(|_| config("what answers there is no Redis server"))?;
        let text = |key: &str| {
            let value = hello.get(key).cloned();
            value.and_then(|value| String::from_redis_value(value).ok()).unwrap_or_default()
        };
        check_mode(&text("mode"), cluster)?;
        if text("role") != "master" {
            return Err(config("the server is a replica: name the primary in the URL"));
        }
        let mut info = cmd("INFO");
        info.arg("server").arg("persistence").arg("memory");
        // Whoever may not read it can use the server all the same.
        let info = ask(node, &info).await?.ok().and_then(|it| String::from_redis_value(it).ok());
        let info = Info::new(info.as_deref().unwrap_or_default());
        Self::of(&text("server"), &text("version"), cluster, &info)
    }

    fn of(server: &str, version: &str, cluster: bool, info: &Info<'_>) -> Result<Self> {
        let valkey = info.get("valkey_version");
        let is_valkey = server == "valkey" || valkey.is_some();
        let product = if is_valkey { "Valkey" } else { "Redis" };
        // Valkey tells the version of Redis that it stands in for as well.
        let shown = valkey.unwrap_or(version);
        let major = version.split('.').next().and_then(|major| major.parse().ok());
        if major.is_none_or(|major: u32| major < 7) {
            return Err(config(format!("{product} {shown} is too old: 7.0 or later is wanted")));
        }
        let evicts = info.get("maxmemory_policy").filter(|policy| policy.starts_with("allkeys-"));
        if let Some(policy) = evicts
            && info.get("maxmemory").is_some_and(|bytes| bytes != "0")
        {
            // Events and leases would vanish one by one, and no law would hold.
            return Err(config(format!(
                "the server drops any key where memory runs short (maxmemory-policy {policy}): \
                 set it to noeviction"
            )));
        }
        Ok(Self {
            product: product.into(),
            version: shown.into(),
            cluster,
            durable: info.get("aof_enabled") == Some("1"),
            event_bytes: EVENT_BYTES,
        })
    }

    /// What holds for both.
    pub(super) fn and(self, other: Self) -> Self {
        Self { durable: self.durable && other.durable, ..self }
    }
}

fn check_mode(mode: &str, cluster: bool) -> Result<()> {
    match (mode, cluster) {
        ("cluster", false) => {
            Err(config("the server is a node of a cluster: use redis+cluster:// in the URL"))
        }
        ("sentinel", _) => {
            Err(config("the server is a Sentinel, which holds no data: name the primary"))
        }
        _ => Ok(()),
    }
}

async fn ask(node: &Node, command: &Cmd) -> Result<Answer> {
    let answers = node.send(&Batch::reads(&[command])).await.map_err(told)?;
    answers.into_iter().next().ok_or_else(|| told(Failure::Unserved))
}

fn told(failure: Failure) -> rheo_core::Error {
    failure.into_error(super::CONNECT, None, false)
}

/// The lines of INFO.
struct Info<'a>(HashMap<&'a str, &'a str>);

impl<'a> Info<'a> {
    fn new(text: &'a str) -> Self {
        Self(text.lines().filter_map(|line| line.split_once(':')).collect())
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str, info: &str) -> Result<Facts> {
        Facts::of("redis", version, false, &Info::new(info))
    }

    #[test]
    fn product_version_and_durability_are_told() {
        let facts = of("7.0.15", "# Server\r\naof_enabled:1\r\nmaxmemory:0\r\n").unwrap();
        assert_eq!((&*facts.product, &*facts.version, facts.durable), ("Redis", "7.0.15", true));
        let facts = of("7.2.4", "valkey_version:8.0.1\r\naof_enabled:0\r\n").unwrap();
        assert_eq!((&*facts.product, &*facts.version, facts.durable), ("Valkey", "8.0.1", false));
        assert!(!of("10.0", "").unwrap().durable);
    }

    #[test]
    fn servers_that_will_not_do_are_refused() {
        let told = |version, info| of(version, info).unwrap_err().context().to_string();
        assert!(told("6.2.14", "").contains("Redis 6.2.14 is too old"));
        assert!(told("", "").contains("too old"));
        let evicts = "maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n";
        assert!(told("7.4.0", evicts).contains("noeviction"));
        of("7.4.0", "maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n").unwrap();
        of("7.4.0", "maxmemory:100\r\nmaxmemory_policy:volatile-lru\r\n").unwrap();
        assert!(check_mode("cluster", false).unwrap_err().context().contains("redis+cluster"));
        assert!(check_mode("sentinel", true).unwrap_err().context().contains("Sentinel"));
    }

    #[test]
    fn a_cluster_is_durable_where_all_nodes_are() {
        let durable = of("7.0.15", "aof_enabled:1").unwrap();
        let other = of("7.0.15", "aof_enabled:0").unwrap();
        assert!(durable.clone().and(durable.clone()).durable);
        assert!(!durable.and(other).durable);
    }
}

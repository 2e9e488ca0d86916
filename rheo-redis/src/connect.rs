//! How a [`Redis`] comes about, and what is asked of a server before it is used.

pub(crate) mod address;
mod facts;

use std::sync::Arc;

use futures::future::try_join_all;
use redis::{Client, FromRedisValue, cmd};
use rheo_core::backend::Server;
use rheo_core::{Error, ErrorKind, Result};

pub(crate) use facts::Facts;

use crate::claim::Turns;
use crate::config::{Options, take_options};
use crate::connect::address::Address;
use crate::error::{Failure, corrupt};
use crate::keys::Keys;
use crate::link::{Batch, Link};
use crate::wake::Waking;
use crate::{Redis, Store};

/// The version of how the keys are laid out.
const VERSION: u32 = 1;

const CONNECT: &str = "connect";

impl Redis {
    /// Connects to the server or the cluster that a URL names:
    /// `redis://user:password@host:port/database`, `rediss://…` where the
    /// connection is encrypted, `redis+cluster://host:port,host:port` or
    /// `rediss+cluster://…` with some nodes of a cluster; `valkey` may stand for
    /// `redis`. [`Options`] may stand after a question mark.
    ///
    /// # Errors
    /// `Config` where the URL, an option, the login or the server is not what
    /// it must be; `Unavailable` where no server answers, or one that is not
    /// ready.
    pub async fn connect(url: &str) -> Result<Arc<Self>> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects to the server or the cluster that a URL names, with these
    /// options; those in the URL prevail.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: Options) -> Result<Arc<Self>> {
        let (url, options) = take_options(url, options)?;
        let mut address = Address::parse(url)?;
        if let Some(file) = &options.ca_file {
            address.access = address.access.trusting(file)?;
        }
        let link = Link::new(&address, &options)?;
        let facts = look_at(&link).await.map_err(|error| at(&address, error))?;
        let keys = Keys::new(&options.prefix);
        let waking = Waking::new(if options.wake { clients(&address)? } else { Vec::new() });
        let turns = Turns::default();
        let store = Store { link, keys, options, facts, waking, turns };
        store.check_version(CONNECT).await.map_err(|error| at(&address, error))?;
        Ok(Arc::new(Self { store: Arc::new(store) }))
    }
}

/// Reads what must be known, and loads the functions.
async fn look_at(link: &Link) -> Result<Facts> {
    let nodes = link.primaries().await.map_err(told)?;
    let facts = try_join_all(nodes.iter().map(|node| Facts::read(node, link.is_cluster()))).await?;
    link.load_functions().await.map_err(told)?;
    facts.into_iter().reduce(Facts::and).ok_or_else(|| told(Failure::Unserved))
}

impl Store {
    /// Makes sure that the functions are there, and says which version of Rheo
    /// laid out the keys.
    pub(crate) async fn prepare(&self) -> Result<()> {
        let told = |failure: Failure| failure.into_error("prepare", None, true);
        self.link.load_functions().await.map_err(told)?;
        let mut set = cmd("SET");
        set.arg(self.version_key()).arg(VERSION).arg("NX");
        let answers = self.link.send(&Batch::step(&[&set], true)).await.map_err(told)?;
        for answer in answers {
            answer.map_err(|refused| told(Failure::Refused(refused)))?;
        }
        self.check_version("prepare").await
    }

    /// Asks each server that is written to for a sign of life.
    pub(crate) async fn ping(&self) -> Result<Server> {
        let told = |failure: Failure| failure.into_error("ping", None, false);
        let nodes = self.link.primaries().await.map_err(told)?;
        let ping = cmd("PING");
        let ping = [&ping];
        let batch = Batch::reads(&ping);
        for answers in
            try_join_all(nodes.iter().map(|node| node.send(&batch))).await.map_err(told)?
        {
            for answer in answers {
                answer.map_err(|refused| told(Failure::Refused(refused)))?;
            }
        }
        let Facts { product, version, .. } = &self.facts;
        Ok(Server { product: product.clone(), version: version.clone() })
    }

    fn version_key(&self) -> String {
        format!("{}version", self.options.prefix)
    }

    /// Refuses keys that a later version of Rheo laid out.
    async fn check_version(&self, operation: &'static str) -> Result<()> {
        let told = |failure: Failure| failure.into_error(operation, None, false);
        let mut get = cmd("GET");
        get.arg(self.version_key());
        let found = self.link.read(&[&get]).await.map_err(told)?.into_iter().next();
        let found = found.transpose().map_err(|refused| told(Failure::Refused(refused)))?;
        match found.map(Option::<u32>::from_redis_value) {
            Some(Ok(Some(version))) if version > VERSION => Err(Error::new(
                ErrorKind::Config,
                operation,
                format!(
                    "a later version of Rheo laid out the keys under {:?} (layout {version}, this \
                     one knows {VERSION})",
                    self.options.prefix
                ),
            )),
            Some(Err(_)) => Err(corrupt(operation, "the version of the layout is no number")),
            _ => Ok(()),
        }
    }
}

fn told(failure: Failure) -> Error {
    failure.into_error(CONNECT, None, false)
}

/// The same error, with the place.
fn at(address: &Address, error: Error) -> Error {
    let places: Vec<_> = address.places.iter().map(ToString::to_string).collect();
    let context = format!("{}: {}", places.join(","), error.context());
    Error::new(error.kind(), CONNECT, context).with_retry(error.retry()).with_source(error)
}

/// What makes connections for waking.
fn clients(address: &Address) -> Result<Vec<Client>> {
    let client = |place| address.access.client(place).map_err(Failure::Unreachable).map_err(told);
    address.places.iter().map(client).collect()
}

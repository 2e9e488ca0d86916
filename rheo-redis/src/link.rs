//! [`Link`]: the way to a server, or to the servers of a cluster.

mod batch;
mod cluster;
mod line;
mod node;
mod slot;

use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use redis::Cmd;
use rheo_core::Result;

pub(crate) use batch::{Answer, Batch};
use cluster::Cluster;
pub(crate) use node::Node;

use crate::config::Options;
use crate::connect::address::Address;
use crate::error::Failure;

/// The way to a server, or to the servers of a cluster.
#[derive(Debug)]
pub(crate) enum Link {
    /// One server, or whichever of a replica set stands behind its address.
    Single(Arc<Node>),
    /// The nodes of a cluster, each for its slots.
    Cluster(Box<Cluster>),
}

impl Link {
    /// A way to this address, on which nothing was sent yet.
    pub(crate) fn new(address: &Address, options: &Options) -> Result<Self> {
        let patience = node::Patience::of(options);
        if address.cluster {
            return Ok(Self::Cluster(Box::new(Cluster::new(address, patience))));
        }
        let place = &address.places[0];
        let client = address
            .access
            .client(place)
            .map_err(|error| Failure::Unreachable(error).into_error("connect", None, false))?;
        Ok(Self::Single(Arc::new(Node::new(client, place.clone(), patience))))
    }

    /// Sends what goes together in one step, to where its keys are.
    pub(crate) async fn send(&self, batch: &Batch<'_>) -> Result<Vec<Answer>, Failure> {
        match self {
            Self::Single(node) => node.send(batch).await,
            Self::Cluster(cluster) => cluster.send(batch).await,
        }
    }

    /// Sends commands that only read: in one round trip to a single server,
    /// side by side to the nodes of a cluster.
    pub(crate) async fn read(&self, commands: &[&Cmd]) -> Result<Vec<Answer>, Failure> {
        match self {
            Self::Single(node) => node.send(&Batch::reads(commands)).await,
            Self::Cluster(cluster) => {
                let send = |command| async move {
                    let answers = cluster.send(&Batch::reads(&[command])).await?;
                    answers.into_iter().next().ok_or(Failure::Unserved)
                };
                join_all(commands.iter().copied().map(send)).await.into_iter().collect()
            }
        }
    }

    /// Whether it leads to a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// Gives the functions to all servers that are written to, unless they have
    /// them.
    pub(crate) async fn load_functions(&self) -> Result<(), Failure> {
        let nodes = self.primaries().await?;
        try_join_all(nodes.iter().map(|node| node.load_functions())).await?;
        Ok(())
    }

    /// The server, or the nodes that serve a cluster's slots.
    pub(crate) async fn primaries(&self) -> Result<Vec<Arc<Node>>, Failure> {
        match self {
            Self::Single(node) => Ok(vec![Arc::clone(node)]),
            Self::Cluster(cluster) => cluster.primaries().await,
        }
    }
}

//! Rheo on Redis and Valkey: durable consumer groups on Redis Streams, on a
//! single server, a replica set behind one address, or a cluster.
//!
//! Each partition is one stream key, and an event's entry id is its sequence:
//! `0-17` is event 17. Each group is a consumer group of the server, whose
//! pending list shows what is leased or waits. Whatever changes more than one
//! thing is one function inside the server.

mod append;
mod backend;
mod call;
mod claim;
mod codec;
mod config;
mod connect;
mod error;
mod functions;
mod group;
mod inspect;
mod keys;
mod link;
mod read;
mod replay;
mod search;
mod seek;
mod settle;
mod store;
mod stream;
mod wake;

use std::sync::Arc;

pub use config::{Index, Options};

pub(crate) use store::Store;

/// A log and its groups on Redis: the backend to build a
/// [`Rheo`](rheo_core::Rheo) on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {
    store: Arc<Store>,
}

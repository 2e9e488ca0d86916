//! Rheo on MongoDB: durable consumer groups in the database that is there
//! already, and a log of documents that people can query.
//!
//! A log is found by its URL, or lies beside the host's own collections, on a
//! client that the host owns:
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rheo_core::{NewEvent, Rheo};
//! use rheo_mongo::mongodb::{Client, bson::doc};
//! use rheo_mongo::{InTransaction, Mongo, Options};
//!
//! let client = Client::with_uri_str("mongodb://localhost").await?;
//! let mongo = Mongo::on_client(client.clone(), "shop", Options::default()).await?;
//! let rheo = Rheo::builder(mongo).build().await?;
//! rheo.create_stream("orders", 1).await?;
//!
//! // The order and its event are there if and only if the transaction commits.
//! let mut session = client.start_session().await?;
//! session.start_transaction().await?;
//! let orders = client.database("shop").collection("orders");
//! orders.insert_one(doc! { "_id": 7, "amount": 12.5 }).session(&mut session).await?;
//! rheo.append_in(&mut session, "orders", NewEvent::new("order.placed", 7)).await?;
//! session.commit_transaction().await?;
//! # Ok(()) }
//! ```
//!
//! Transactions want a replica set, of which one member is enough, or a sharded
//! cluster. The collections are Rheo's own, made by `prepare`.

mod append;
mod backend;
mod claim;
mod codec;
mod collections;
mod config;
mod connect;
mod error;
mod group;
mod inspect;
mod operation;
mod read;
mod replay;
mod search;
mod seek;
mod settle;
mod state;
mod store;
mod stream;
mod transaction;
mod trouble;
mod wake;

use std::sync::Arc;

pub use config::Options;
pub use transaction::InTransaction;

/// The driver, in the version whose clients and sessions are meant here.
pub use mongodb;

pub(crate) use store::Store;

/// A log and its groups in a MongoDB database: the backend to build a
/// [`Rheo`](rheo_core::Rheo) on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Mongo {
    store: Arc<Store>,
}

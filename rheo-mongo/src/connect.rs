//! How a [`Mongo`] comes about: from a URL, or on a client that the host owns.

mod address;
mod facts;

use std::sync::{Arc, Mutex};

use mongodb::Client;
use rheo_core::{Error, Result};
use tokio::time::timeout;

pub(crate) use facts::ServerFacts;

use crate::collections::Collections;
use crate::config::{Options, take_options};
use crate::connect::address::Address;
use crate::error::Failure;
use crate::wake::Waking;
use crate::{Mongo, Store};

const CONNECT: &str = "connect";

impl Mongo {
    /// Connects to the database that a URL names:
    /// `mongodb://user:password@host:port,host:port/database`, or
    /// `mongodb+srv://user:password@host/database`. [`Options`] may stand after
    /// a question mark, and MongoDB's own.
    ///
    /// Rheo reads from the primary alone, and a change is done once most of the
    /// members have it on disk, whatever the URL says.
    ///
    /// # Errors
    /// `Config` where the URL, an option, the login or the server is not what
    /// it must be: a standalone server has no transactions. `Unavailable` where
    /// no server answers, or none is the primary.
    pub async fn connect(url: &str) -> Result<Arc<Self>> {
        Self::connect_with(url, Options::default()).await
    }

    /// Connects to the database that a URL names, with these options; those
    /// in the URL prevail.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn connect_with(url: &str, options: Options) -> Result<Arc<Self>> {
        let (url, options) = take_options(url, options)?;
        let address = Address::parse(&url)?;
        let place = address.place();
        let client = address.client(&options).await.map_err(|error| at(&place, error))?;
        let started = start(client, &address.database, options, true).await;
        started.map_err(|error| at(&place, error))
    }

    /// Works with a client that the host owns, which is never shut down here,
    /// in this database. The host's transactions and Rheo's can then be one.
    /// How many connections there are, and how long they take to come about, is
    /// the client's affair.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    pub async fn on_client(client: Client, database: &str, options: Options) -> Result<Arc<Self>> {
        address::check_database(database)?;
        let started = start(client, database, options.checked()?, false).await;
        started.map_err(|error| at(&format!("MongoDB, database {database:?}"), error))
    }

    /// Closes the connections, once what runs on them has ended. Does nothing
    /// where the host owns the client. Later operations fail as `Unavailable`.
    pub async fn close(&self) {
        let Store { client, owns_client: true, options, waking, .. } = &*self.store else {
            return;
        };
        waking.end().await;
        let ending = client.clone().shutdown().into_future();
        if timeout(options.operation_timeout, ending).await.is_err() {
            // What has not ended by now has failed.
            client.clone().shutdown().immediate(true).await;
        }
    }
}

async fn start(
    client: Client,
    database: &str,
    options: Options,
    owns_client: bool,
) -> Result<Arc<Mongo>> {
    let looking = timeout(options.operation_timeout, ServerFacts::read(&client, database)).await;
    let facts = looking.unwrap_or(Err(Failure::Late)).map_err(told)?;
    let collections = Collections::new(&client, database, &options.collection_prefix);
    let (waking, turns) = (Waking::default(), Mutex::default());
    let store = Store { client, owns_client, collections, options, facts, waking, turns };
    let store = Arc::new(store);
    store.check_version().await?;
    Ok(Arc::new(Mongo { store }))
}

fn told(failure: Failure) -> Error {
    failure.into_error(CONNECT, rheo_core::Effect::NotApplied)
}

/// The same error, with the place.
fn at(place: &str, error: Error) -> Error {
    let context = format!("{place}: {}", error.context());
    Error::new(error.kind(), CONNECT, context).with_retry(error.retry()).with_source(error)
}

//! Where it is measured: a throwaway server.

use mongodb::bson::Document;
use mongodb::options::ClientOptions;
use mongodb::{Client, Collection, Database};
use rheo_conformance::servers;
use rheo_core::backend::Server;
use rheo_core::{Confirm, GroupOptions, Rheo, Timestamp};
use rheo_mongo::{Mongo, Options};

use crate::bare::Log;
use crate::counter::Counter;

/// A server that lasts as long as this does.
pub(crate) struct Place {
    /// What the names of all collections of this run begin with.
    prefix: String,
    server: servers::Mongo,
    facts: Server,
    client: Client,
    database: Database,
}

impl Place {
    pub(crate) async fn start() -> Self {
        let server = servers::Mongo::start().await.expect("a server");
        let prefix = format!("ratios{}_", Timestamp::now().as_micros());
        let client = Client::with_uri_str(server.url()).await.expect("a client");
        let database = client.default_database().expect("the URL has a database");
        let rheo = rheo_on(&client, &database, &prefix).await;
        let facts = rheo.ping().await.expect("it answers");
        Self { prefix, server, facts, client, database }
    }

    /// The server's name and version.
    pub(crate) fn version(&self) -> String {
        format!("{} {}", self.facts.product, self.facts.version)
    }

    /// Whether a scan of an index ends where its limit does. SecantusDB reads
    /// on, so queues there have to be short.
    pub(crate) fn stops_early(&self) -> bool {
        self.facts.product == "MongoDB"
    }

    /// A handle with a client of its own.
    pub(crate) async fn rheo(&self) -> Rheo {
        let mongo = Mongo::connect_with(self.server.url(), options(&self.prefix)).await;
        Rheo::builder(mongo.expect("connected")).build().await.expect("a handle")
    }

    /// A handle whose commands are counted.
    pub(crate) async fn counted(&self, counter: &Counter) -> Rheo {
        let mut options = ClientOptions::parse(self.server.url()).await.expect("a URL");
        options.command_event_handler = Some(counter.handler(self.events().name()));
        let client = Client::with_options(options).expect("a client");
        rheo_on(&client, &self.database, &self.prefix).await
    }

    /// The events of all handles.
    pub(crate) fn events(&self) -> Collection<Document> {
        self.database.collection(&format!("{}events", self.prefix))
    }

    /// A log that only the bare driver writes, new.
    pub(crate) async fn bare_log(&self, name: &str) -> Log {
        Log::create(&self.client, &self.database, &format!("{}bare_{name}", self.prefix)).await
    }
}

/// A handle without waking, which nothing here waits for.
async fn rheo_on(client: &Client, database: &Database, prefix: &str) -> Rheo {
    let mongo = Mongo::on_client(client.clone(), database.name(), options(prefix)).await;
    Rheo::builder(mongo.expect("connected")).build().await.expect("a handle")
}

fn options(prefix: &str) -> Options {
    Options::default().collection_prefix(prefix).wake(false)
}

/// Makes a stream of one partition with a group.
pub(crate) async fn create(rheo: &Rheo, stream: &str) {
    rheo.create_stream(stream, 1).await.expect("a new stream");
    rheo.create_group(stream, "group", GroupOptions::default()).await.expect("a new group");
}

pub(crate) async fn delete(rheo: &Rheo, stream: &str) {
    rheo.delete_stream(stream, Confirm::Yes).await.expect("deleted");
}

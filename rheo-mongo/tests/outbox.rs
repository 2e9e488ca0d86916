//! Kills a process in the middle of a transaction that is both its own and
//! Rheo's, and looks at the database from outside.

#![cfg(unix)]

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{
    Confirm, Delivery, ErrorKind, FetchOptions, GroupOptions, ManualClock, NewEvent, Outcome, Rheo,
};
use rheo_mongo::mongodb::bson::{Document, doc};
use rheo_mongo::mongodb::{Client, Database};
use rheo_mongo::{InTransaction, Mongo, Options};

/// Where the clerk can be killed, and what there is then: orders, their
/// events, shipments, and events that are not settled.
const POINTS: [(&str, [u64; 4]); 6] = [
    ("the order is written", [0, 0, 0, 0]),
    ("the event is appended", [0, 0, 0, 0]),
    ("the order is committed", [1, 1, 0, 1]),
    ("the shipment is written", [1, 1, 0, 1]),
    ("the lease is settled", [1, 1, 0, 1]),
    ("the shipment is committed", [1, 1, 1, 0]),
];

const DONE: [u64; 4] = [1, 1, 1, 0];

/// A shop, as one process sees it.
struct Shop {
    client: Client,
    database: Database,
    rheo: Rheo,
}

impl Shop {
    /// Its clock shows how many hours have passed.
    async fn enter(url: &str, hours: u64) -> Self {
        let client = Client::with_uri_str(url).await.unwrap();
        let database = client.default_database().unwrap();
        let mongo = Mongo::on_client(client.clone(), database.name(), Options::default()).await;
        let clock = ManualClock::new("2026-03-15T12:00:00Z".parse().unwrap());
        clock.advance(Duration::from_secs(3600 * hours));
        let rheo = Rheo::builder(mongo.unwrap()).clock(clock).build().await.unwrap();
        Self { client, database, rheo }
    }

    /// Places the order unless it is there, and ships it unless that is done.
    async fn work(&self) {
        let orders = self.database.collection("orders");
        let shipments = self.database.collection("shipments");
        let mut session = self.client.start_session().await.unwrap();
        if orders.count_documents(doc! {}).await.unwrap() == 0 {
            session.start_transaction().await.unwrap();
            orders.insert_one(doc! { "_id": 7 }).session(&mut session).await.unwrap();
            reach("the order is written");
            let event = NewEvent::new("order.placed", 7);
            self.rheo.append_in(&mut session, "orders", event).await.unwrap();
            reach("the event is appended");
            session.commit_transaction().await.unwrap();
            reach("the order is committed");
        }
        if let Some(order) = self.one_order().await {
            session.start_transaction().await.unwrap();
            shipments.insert_one(doc! { "_id": 7 }).session(&mut session).await.unwrap();
            reach("the shipment is written");
            self.rheo.settle_in(&mut session, &order.lease, Outcome::Ack).await.unwrap();
            reach("the lease is settled");
            session.commit_transaction().await.unwrap();
            reach("the shipment is committed");
        }
    }

    async fn one_order(&self) -> Option<Delivery> {
        let fetched = self.rheo.fetch("orders", "shipping", 1, FetchOptions::default()).await;
        fetched.unwrap().pop()
    }

    async fn count(&self, collection: &str) -> u64 {
        let collection = self.database.collection::<Document>(collection);
        collection.count_documents(doc! {}).await.unwrap()
    }

    /// What an outsider sees.
    async fn look(&self) -> [u64; 4] {
        let events = self.rheo.read("orders", 0, 0, 10).await.unwrap().len() as u64;
        let lag = self.rheo.lag("orders", "shipping").await.unwrap().total();
        [self.count("orders").await, events, self.count("shipments").await, lag]
    }

    /// Makes it an empty shop.
    async fn open(&self) {
        for name in ["orders", "shipments"] {
            let collection = self.database.collection::<Document>(name);
            collection.delete_many(doc! {}).await.unwrap();
        }
        match self.rheo.delete_stream("orders", Confirm::Yes).await {
            Err(error) if error.kind() != ErrorKind::StreamNotFound => panic!("{error}"),
            _ => {}
        }
        self.rheo.create_stream("orders", 1).await.unwrap();
        self.rheo.create_group("orders", "shipping", GroupOptions::default()).await.unwrap();
    }

    /// Ends the transactions of the dead, which the server else does after a minute.
    async fn bury(&self) {
        let admin = self.client.database("admin");
        admin.run_command(doc! { "killAllSessions": [] }).await.unwrap();
    }
}

/// Says that the clerk has come to this point, and stays there if it is to be
/// killed there.
fn reach(point: &str) {
    eprintln!("{point}");
    while env::var("CLERK_STOPS").is_ok_and(|stop| stop == point) {
        std::thread::park();
    }
}

/// The process that is killed: this program again, with nothing but this test.
#[tokio::test]
#[ignore = "the other test starts it"]
async fn clerk() {
    let Ok(url) = env::var("CLERK_URL") else { return };
    let hours = env::var("CLERK_HOURS").unwrap().parse().unwrap();
    Shop::enter(&url, hours).await.work().await;
}

fn start_clerk(url: &str, stop: &str, hours: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "clerk", "--ignored", "--nocapture"])
        .env("CLERK_URL", url)
        .env("CLERK_STOPS", stop)
        .env("CLERK_HOURS", hours.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the clerk is at this point, and kills it there.
fn kill_at(point: &str, mut clerk: Child) {
    let mut told = String::new();
    for line in BufReader::new(clerk.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == point {
            // That is SIGKILL: nothing of the process runs any more.
            clerk.kill().unwrap();
            clerk.wait().unwrap();
            return;
        }
        told += &format!("{line}\n");
    }
    panic!("the clerk ended before {point:?}:\n{told}");
}

/// Kills a clerk at each point; the next one finds all or nothing, and does the rest.
#[tokio::test]
async fn all_or_nothing() {
    let Some(server) = servers::found("mongo", Server::private().await) else { return };
    let shop = Shop::enter(server.url(), 2).await;
    for name in ["orders", "shipments"] {
        shop.database.create_collection(name).await.unwrap();
    }
    for (point, left) in POINTS {
        shop.open().await;
        kill_at(point, start_clerk(server.url(), point, 0));
        assert_eq!(shop.look().await, left, "killed when {point}");
        shop.bury().await;
        // By the next clerk's clock the lease of the first has expired.
        assert!(start_clerk(server.url(), "", 1).wait().unwrap().success());
        assert_eq!(shop.look().await, DONE, "after one was killed when {point}");
    }
}

//! Waking other processes through a change stream, also after the connection
//! that hears it was cut.

#![cfg(unix)]

use std::time::Duration;

use rheo_conformance::servers::{self, Mongo as Server};
use rheo_core::{FetchOptions, GroupOptions, NewEvent, Rheo};
use rheo_mongo::mongodb::Client;
use rheo_mongo::mongodb::event::EventHandler;
use rheo_mongo::mongodb::event::command::CommandEvent;
use rheo_mongo::mongodb::options::ClientOptions;
use rheo_mongo::{Mongo, Options};
use tokio::sync::watch;

const HOUR: Duration = Duration::from_secs(3600);
/// Far less than the waits here.
const SOON: Duration = Duration::from_secs(60);

/// What the server has answered an instance, as its driver tells: how often,
/// where that is a number.
#[derive(Debug, Default)]
struct Answered {
    /// Where there is work.
    looks: usize,
    /// That it tells of changes.
    watches: usize,
    /// Whether it has said goodbye: nobody uses its client any more.
    has_left: bool,
}

impl Answered {
    fn count(&mut self, event: &CommandEvent) {
        let CommandEvent::Succeeded(answer) = event else { return };
        let cursor = answer.reply.get_document("cursor");
        let namespace = cursor.and_then(|cursor| cursor.get_str("ns")).unwrap_or_default();
        match answer.command_name.as_str() {
            "aggregate" if namespace.ends_with(".rheo_streams") => self.looks += 1,
            "aggregate" if namespace.ends_with(".$cmd.aggregate") => self.watches += 1,
            "endSessions" => self.has_left = true,
            _ => {}
        }
    }
}

/// An instance that never polls.
struct Instance {
    rheo: Rheo,
    answered: watch::Receiver<Answered>,
}

impl Instance {
    async fn new(url: &str) -> Self {
        let (counting, answered) = watch::channel(Answered::default());
        let mut options = ClientOptions::parse(url).await.unwrap();
        let count = move |event| counting.send_modify(|answered| answered.count(&event));
        options.command_event_handler = Some(EventHandler::callback(count));
        let database = options.default_database.clone().unwrap();
        let client = Client::with_options(options).unwrap();
        let options = Options::default().poll(HOUR);
        let mongo = Mongo::on_client(client, &database, options).await.unwrap();
        Self { rheo: Rheo::builder(mongo).build().await.unwrap(), answered }
    }

    /// Returns once so much was answered.
    async fn sees(&self, enough: impl FnMut(&Answered) -> bool) {
        self.answered.clone().wait_for(enough).await.unwrap();
    }

    /// Waits until a change wakes it.
    async fn is_woken_by<T>(&self, change: impl Future<Output = rheo_core::Result<T>>) {
        let looks = self.answered.borrow().looks;
        let rheo = self.rheo.clone();
        let wait = tokio::spawn(async move { rheo.wait("s", "g", HOUR).await });
        // Where it listened before, only a signal makes it look once more.
        self.sees(|answered| answered.looks > looks && answered.watches > 0).await;
        change.await.unwrap();
        wait.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_cut_connection_comes_back_and_wakes_again() {
    let Some(server) = servers::found("mongo", Server::private().await) else { return };
    let waiting = Instance::new(server.proxied_url()).await;
    let changing = Instance::new(server.url()).await;
    waiting.rheo.create_stream("s", 2).await.unwrap();
    waiting.rheo.create_group("s", "g", GroupOptions::default()).await.unwrap();
    assert_eq!(waiting.answered.borrow().watches, 0);
    let test = async {
        for _ in 0..3 {
            for partition in [0, 1] {
                let event = NewEvent::new("t", 1).partition(partition);
                waiting.is_woken_by(changing.rheo.append("s", event)).await;
                let fetched = waiting.rheo.fetch("s", "g", 10, FetchOptions::default()).await;
                let delivery = fetched.unwrap().remove(0);
                waiting.is_woken_by(changing.rheo.release(&delivery)).await;
                let fetched = waiting.rheo.fetch("s", "g", 10, FetchOptions::default()).await;
                waiting.rheo.ack(&fetched.unwrap()[0]).await.unwrap();
            }
            server.proxy().unwrap().cut().await;
        }
        let event = NewEvent::new("t", 1).partition(0);
        waiting.is_woken_by(changing.rheo.append("s", event)).await;
        let Instance { rheo, mut answered } = waiting;
        drop(rheo);
        answered.wait_for(|answered| answered.has_left).await.unwrap();
    };
    tokio::time::timeout(SOON, test)
        .await
        .expect("it is woken, and listens no longer than it lives");
}

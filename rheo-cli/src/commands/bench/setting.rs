//! [`Setting`]: what is measured and where, and the logs that it is measured on.

use std::sync::Arc;

use rheo::{Confirm, Rheo};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::events::{BATCH, events, plain};
use super::place::Place;
use super::raw::{self, Raw};
use crate::failure::{Failure, Outcome};

/// How many events a turn takes at most: they are made before it begins.
const MOST_OF_A_TURN: u64 = 20_000;

/// How many events go in one call where nothing is measured.
const CHUNK: u64 = 1000;

/// A client of the bare driver.
pub(crate) type Client = Arc<Mutex<Box<dyn Raw>>>;

/// What is measured, and where.
pub(crate) struct Setting<'a> {
    pub(crate) place: &'a Place,
    pub(crate) runs: u32,
    /// How many events a log has.
    pub(crate) events: u64,
    /// Whether the bare driver takes turns.
    pub(crate) raw: bool,
}

/// A stream, and the bare driver's clients on a log of their own.
pub(crate) struct Log {
    pub(crate) stream: String,
    /// None where the bare driver does not take turns.
    pub(crate) clients: Vec<Client>,
}

impl Setting<'_> {
    pub(crate) fn rheo(&self) -> &Rheo {
        &self.place.rheo
    }

    /// How many events a turn takes at most.
    pub(crate) fn events_of_a_turn(&self) -> u64 {
        self.events.min(MOST_OF_A_TURN)
    }

    /// Works on a new stream, beside so many clients of the bare driver on a
    /// new log. Both are deleted at the end, however that comes about.
    pub(crate) async fn on_log<T>(
        &self,
        subject: &str,
        partitions: u32,
        clients: u32,
        work: impl AsyncFnOnce(&Log) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let unique = Uuid::new_v4().simple();
        let clients = match self.raw {
            true => raw::clients(&self.place.url, &format!("bench_{unique}"), clients).await?,
            false => Vec::new(),
        };
        let log = Log { stream: format!("bench-{subject}-{unique}"), clients };
        let worked = async {
            self.rheo().create_stream(&log.stream, partitions).await?;
            work(&log).await
        };
        let worked = worked.await;
        let stream_gone = self.rheo().delete_stream(&log.stream, Confirm::Yes).await;
        let log_gone = match log.clients.first() {
            Some(client) => client.lock().await.delete().await,
            None => Ok(()),
        };
        let worked = worked?;
        stream_gone?;
        log_gone?;
        Ok(worked)
    }

    /// Appends so many events, spread over the partitions.
    pub(crate) async fn fill(&self, stream: &str, partitions: u32, count: u64) -> Outcome {
        for (turn, first) in (0..count).step_by(CHUNK as usize).enumerate() {
            let events = events(first, CHUNK.min(count - first), turn as u32 % partitions);
            self.rheo().append_batch(stream, events).await?;
        }
        Ok(())
    }
}

/// The same with the bare driver, in one partition.
pub(crate) async fn fill_raw(client: &Client, count: u64) -> Outcome {
    let mut client = client.lock().await;
    for first in (0..count).step_by(BATCH as usize) {
        client.append(&plain(first, BATCH.min(count - first))).await?;
    }
    Ok(())
}

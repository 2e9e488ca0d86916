//! [`Counter`]: what the server answers to the commands of a client.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use mongodb::bson::{Bson, Document};
use mongodb::event::EventHandler;
use mongodb::event::command::{CommandEvent, CommandSucceededEvent};

/// Counts what goes over a client. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<Mutex<Counts>>);

/// What commands came to.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) commands: u64,
    /// Events that were returned.
    pub(crate) events: u64,
    /// Other documents that were returned.
    pub(crate) others: u64,
    /// Documents that were inserted, updated or deleted.
    pub(crate) written: u64,
}

impl Counter {
    /// What hears of a client's commands; events lie in the collection of this name.
    pub(crate) fn handler(&self, events: &str) -> EventHandler<CommandEvent> {
        let (counter, events) = (self.clone(), events.to_string());
        EventHandler::callback(move |event| {
            if let CommandEvent::Succeeded(answered) = event {
                counter.0.lock().unwrap_or_else(PoisonError::into_inner).add(&answered, &events);
            }
        })
    }

    /// What was counted since this was asked before.
    pub(crate) fn take(&self) -> Counts {
        take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    fn add(&mut self, answered: &CommandSucceededEvent, events: &str) {
        self.commands += 1;
        let reply = &answered.reply;
        match &*answered.command_name {
            "insert" | "update" | "delete" => self.written += number(reply),
            "findAndModify" => {
                self.written += reply.get_document("lastErrorObject").map_or(0, number);
                self.others += u64::from(reply.get_document("value").is_ok());
            }
            _ => {
                let Ok(cursor) = reply.get_document("cursor") else { return };
                let batch = ["firstBatch", "nextBatch"];
                let batch = batch.into_iter().find_map(|name| cursor.get_array(name).ok());
                let count = batch.map_or(0, Vec::len) as u64;
                let collection = cursor.get_str("ns").ok().and_then(|name| name.split_once('.'));
                let of_events = collection.is_some_and(|(_, name)| name == events);
                *(if of_events { &mut self.events } else { &mut self.others }) += count;
            }
        }
    }
}

/// How many documents a write was about.
fn number(reply: &Document) -> u64 {
    match reply.get("n") {
        Some(&Bson::Int32(number)) => u64::from(number.cast_unsigned()),
        Some(&Bson::Int64(number)) => number.cast_unsigned(),
        _ => 0,
    }
}

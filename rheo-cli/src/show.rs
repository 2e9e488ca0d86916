//! Events and progress, as JSON and as lines for people.

use std::io::{self, Write};

use rheo::{DeadLetter, Delivery, Event};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::failure::{Failure, Outcome};
use crate::output::{Output, visible};

/// How much of a line a terminal is given: none is wider.
const TERMINAL_CHARACTERS: usize = 1000;

/// Prints an event: as a line of JSON, or as a line for people, which a
/// terminal cuts at its width.
pub(crate) fn event(event: &Event, output: Output) -> Outcome {
    if output.json {
        return output.json_line(&EventJson::new(event)?);
    }
    let line = line(event);
    let mut out = io::stdout().lock();
    if output.is_terminal() {
        // The terminal is told not to wrap: it knows its width, and how wide
        // each character is.
        let seen: String = line.chars().take(TERMINAL_CHARACTERS).collect();
        return Ok(writeln!(out, "\x1b[?7l{seen}\x1b[?7h")?);
    }
    Ok(writeln!(out, "{line}")?)
}

/// Position, time, type, key and payload. Control characters are shown, not
/// carried out.
fn line(event: &Event) -> String {
    let position = event.position().to_string();
    let timestamp = event.timestamp().to_string();
    let (event_type, key) = (event.event_type(), event.key().unwrap_or("-"));
    let payload = event.body().payload_text();
    visible(&format!("{position:<8}  {timestamp:<27}  {event_type:<12}  {key:<8}  {payload}"))
}

/// An event as all commands show it to programs.
#[derive(Debug, Serialize)]
pub(crate) struct EventJson<'a> {
    stream: &'a str,
    partition: u32,
    sequence: u64,
    id: String,
    timestamp: String,
    r#type: &'a str,
    key: Option<&'a str>,
    metadata: &'a RawValue,
    payload: &'a RawValue,
}

impl<'a> EventJson<'a> {
    /// # Errors
    /// Where what is stored is no JSON.
    pub(crate) fn new(event: &'a Event) -> Result<Self, Failure> {
        let body = event.body();
        Ok(Self {
            stream: event.stream().as_str(),
            partition: event.partition(),
            sequence: event.sequence(),
            id: event.id().to_string(),
            timestamp: event.timestamp().to_string(),
            r#type: event.event_type(),
            key: event.key(),
            metadata: raw(body.metadata_text())?,
            payload: raw(body.payload_text())?,
        })
    }
}

fn raw(text: &str) -> Result<&RawValue, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(format!("no JSON is stored: {error}")))
}

/// A dead letter as programs see it.
#[derive(Debug, Serialize)]
pub(crate) struct DeadLetterJson<'a> {
    event: EventJson<'a>,
    attempt: u32,
    reason: &'a str,
    dead_at: String,
}

impl<'a> DeadLetterJson<'a> {
    pub(crate) fn new(letter: &'a DeadLetter) -> Result<Self, Failure> {
        Ok(Self {
            event: EventJson::new(&letter.event)?,
            attempt: letter.attempt,
            reason: &letter.reason,
            dead_at: letter.dead_at.to_string(),
        })
    }
}

/// An event on its way to a handler, as programs see it.
#[derive(Debug, Serialize)]
pub(crate) struct DeliveryJson<'a> {
    #[serde(flatten)]
    event: EventJson<'a>,
    group: &'a str,
    attempt: u32,
}

impl<'a> DeliveryJson<'a> {
    pub(crate) fn new(delivery: &'a Delivery) -> Result<Self, Failure> {
        Ok(Self {
            event: EventJson::new(&delivery.event)?,
            group: delivery.lease.group().as_str(),
            attempt: delivery.lease.attempt(),
        })
    }
}

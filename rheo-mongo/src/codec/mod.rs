//! Events as documents of the collection `events`.
//!
//! Metadata and payload stand there in their [natural form](natural), for people
//! to query. Where that loses something, or is too large for a document, the
//! exact text of it stands beside in `exact`, and is what is read.

mod natural;
#[cfg(test)]
mod spec;
mod text;

use std::borrow::Cow;

use mongodb::bson::oid::ObjectId;
use mongodb::bson::raw::{RawElement, cstr};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use rheo_core::backend::RoutedEvent;
use rheo_core::{Event, EventBody, EventParts, Position, Result, StreamName, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use self::natural::Natural;
pub(crate) use self::natural::is_natural_key;
use self::text::{DAMAGED, Strange};
use crate::error::{Failure, corrupt};

/// The largest event, encoded, that fits a document whatever is in it.
pub(crate) const MOST_BYTES: usize = 15 * 1024 * 1024;

/// What of MongoDB's 16 MiB is for type, key, metadata and payload, in every
/// form in which they stand there.
const CONTENT_BYTES: usize = 16 * 1024 * 1024 - 64 * 1024;

/// The metadata keys that have an index.
pub(crate) const LINEAGE_KEYS: [&str; 5] =
    ["correlation_id", "causation_id", "producer", "schema", "schema_version"];

/// How long a string may be, in bytes, that stands in its natural form under a
/// lineage key even where the metadata as a whole is too large.
pub(crate) const LINEAGE_BYTES: usize = 4096;

/// The document of an event.
pub(crate) fn document(
    stream: &StreamName,
    log: ObjectId,
    sequence: u64,
    latest: Timestamp,
    event: &RoutedEvent,
) -> RawDocumentBuf {
    let body = &event.body;
    let micros = body.timestamp().as_micros();
    let mut document = RawDocumentBuf::new();
    // First, so that the driver need not put one there.
    document.append(cstr!("_id"), ObjectId::new());
    document.append(cstr!("stream"), stream.as_str());
    document.append(cstr!("log"), log);
    document.append(cstr!("partition"), event.partition.cast_signed());
    document.append(cstr!("sequence"), sequence.cast_signed());
    document.append(cstr!("id"), binary(body.id()));
    document.append(cstr!("time"), DateTime::from_millis(micros.div_euclid(1000)));
    document.append(cstr!("timestamp"), micros);
    document.append(cstr!("latest"), latest.as_micros());
    document.append(cstr!("type"), body.event_type());
    if let Some(key) = body.key() {
        document.append(cstr!("key"), key);
    }
    append_content(&mut document, body);
    if event.idempotent {
        document.append(cstr!("given"), true);
    }
    document
}

fn append_content(document: &mut RawDocumentBuf, body: &EventBody) {
    let (metadata, payload) = (body.metadata_text(), body.payload_text());
    let mut room = CONTENT_BYTES.saturating_sub(body.encoded_len());
    let natural_metadata = fitting(metadata, &mut room).or_else(|| lineage(body));
    let natural_payload = fitting(payload, &mut room);
    let mut exact = RawDocumentBuf::new();
    for (name, text, natural) in [
        (cstr!("metadata"), metadata, natural_metadata),
        (cstr!("payload"), payload, natural_payload),
    ] {
        let value = natural.as_ref().and_then(Natural::value);
        document.append(name, value.unwrap_or(RawBsonRef::Null));
        if natural.is_none_or(|natural| natural.loses) {
            exact.append(name, text);
        }
    }
    if !exact.is_empty() {
        document.append(cstr!("exact"), exact);
    }
}

/// The natural form of a text, where there is room for what it takes beyond the
/// text's own length.
fn fitting(text: &str, room: &mut usize) -> Option<Natural> {
    let natural = Natural::of(text)?;
    let spared = if natural.loses { 0 } else { text.len() };
    *room = room.checked_sub(natural.len().saturating_sub(spared))?;
    Some(natural)
}

/// What an index finds in metadata that are too large for their natural form.
fn lineage(body: &EventBody) -> Option<Natural> {
    let mut metadata = body.metadata();
    metadata.retain(|key, value| {
        let is_short = value.as_str().is_some_and(|text| text.len() <= LINEAGE_BYTES);
        is_short && LINEAGE_KEYS.contains(&key.as_str())
    });
    let mut natural = Natural::of(&Value::Object(metadata).to_string())?;
    natural.loses = true;
    Some(natural)
}

/// A condition that holds for all events whose metadata or payload, whichever
/// is named, is not whole in its natural form.
pub(crate) fn left_out(name: &str) -> Document {
    doc! { format!("exact.{name}"): { "$exists": true } }
}

/// An id as it stands in documents.
pub(crate) fn binary(id: Uuid) -> Binary {
    Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() }
}

/// The sequence of the event in a document.
pub(crate) fn sequence(document: &RawDocument) -> Option<u64> {
    let sequence = document.get("sequence").ok()??;
    u64::try_from(integer(sequence)?).ok()
}

/// The event in a document.
///
/// # Errors
/// `Corrupt` where it is not as Rheo writes it.
pub(crate) fn event(document: &RawDocument, stream: &StreamName) -> Result<Event, Failure> {
    let strange = |why| corrupt(&format!("an event of stream {stream:?}"), why);
    let fields = Fields::of(document).map_err(strange)?;
    let position = fields.position().ok_or_else(|| strange("it has no place in the log"))?;
    let strange = |why| corrupt(&format!("event {position} of stream {stream:?}"), why);
    let body = EventBody::from_store(&EventParts {
        id: fields.id.ok_or_else(|| strange("it has no id"))?,
        timestamp: fields.timestamp.ok_or_else(|| strange("it has no timestamp"))?,
        event_type: fields.event_type.ok_or_else(|| strange("it has no type"))?,
        key: fields.key,
        metadata: &fields.metadata.into_text().map_err(strange)?,
        payload: &fields.payload.into_text().map_err(strange)?,
    })?;
    Ok(Event::new(stream.clone(), position, body))
}

/// What is read of a document.
#[derive(Default)]
struct Fields<'a> {
    partition: Option<u32>,
    sequence: Option<u64>,
    id: Option<Uuid>,
    timestamp: Option<Timestamp>,
    event_type: Option<&'a str>,
    key: Option<&'a str>,
    metadata: Content<'a>,
    payload: Content<'a>,
}

impl<'a> Fields<'a> {
    fn of(document: &'a RawDocument) -> Result<Self, Strange> {
        let mut fields = Self::default();
        for field in document.iter_elements() {
            let field = field.map_err(|_| DAMAGED)?;
            let value = || field.value().map_err(|_| DAMAGED);
            match field.key().as_str() {
                "partition" => fields.partition = integer(value()?).and_then(|n| n.try_into().ok()),
                "sequence" => fields.sequence = integer(value()?).and_then(|n| n.try_into().ok()),
                "id" => fields.id = uuid(value()?),
                "timestamp" => fields.timestamp = integer(value()?).map(Timestamp::from_micros),
                "type" => fields.event_type = value()?.as_str(),
                "key" => fields.key = Some(value()?.as_str().ok_or("its key is no string")?),
                "metadata" => fields.metadata.natural = Some(field),
                "payload" => fields.payload.natural = Some(field),
                "exact" => fields.read_exact(value()?)?,
                _ => {}
            }
        }
        Ok(fields)
    }

    fn read_exact(&mut self, exact: RawBsonRef<'a>) -> Result<(), Strange> {
        let exact = exact.as_document().ok_or("its exact form is no document")?;
        for field in exact {
            let (name, text) = field.map_err(|_| DAMAGED)?;
            let text = text.as_str().ok_or("its exact form is no text")?;
            match name.as_str() {
                "metadata" => self.metadata.exact = Some(text),
                "payload" => self.payload.exact = Some(text),
                _ => {}
            }
        }
        Ok(())
    }

    fn position(&self) -> Option<Position> {
        let sequence = self.sequence.filter(|&sequence| sequence > 0)?;
        Some(Position::new(self.partition?, sequence))
    }
}

/// Metadata or payload, in the forms that a document has of it.
#[derive(Default)]
struct Content<'a> {
    natural: Option<RawElement<'a>>,
    exact: Option<&'a str>,
}

impl<'a> Content<'a> {
    fn into_text(self) -> Result<Cow<'a, str>, Strange> {
        if let Some(exact) = self.exact {
            return Ok(exact.into());
        }
        let natural = self.natural.ok_or("it has no metadata or no payload")?;
        let mut text = Vec::with_capacity(natural.size());
        text::write(&mut text, &natural)?;
        String::from_utf8(text).map(Cow::Owned).map_err(|_| DAMAGED)
    }
}

fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    value.as_i64().or_else(|| value.as_i32().map(i64::from))
}

fn uuid(value: RawBsonRef<'_>) -> Option<Uuid> {
    let binary = value.as_binary().filter(|binary| binary.subtype == BinarySubtype::Uuid)?;
    Uuid::from_slice(binary.bytes).ok()
}

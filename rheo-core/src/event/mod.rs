//! Events: what is appended, and what is read.

pub(crate) mod json;
mod lineage;
mod new_event;
mod routing;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use uuid::Uuid;

pub use lineage::Lineage;
pub use new_event::{MAX_KEY_BYTES, MAX_TYPE_BYTES, NewEvent};
pub use routing::partition_for_key;

use crate::{Error, ErrorKind, Position, Result, StreamName, Timestamp};

/// The parts of an event that an adapter reads from its store.
#[derive(Clone, Copy, Debug)]
pub struct EventParts<'a> {
    /// The event's id.
    pub id: Uuid,
    /// When it was appended.
    pub timestamp: Timestamp,
    /// Its type.
    pub event_type: &'a str,
    /// Its key, if it has one.
    pub key: Option<&'a str>,
    /// Its metadata, as the text of a JSON object.
    pub metadata: &'a str,
    /// Its payload, as JSON text.
    pub payload: &'a str,
}

impl EventParts<'_> {
    /// How many bytes they count against the size limit.
    pub(crate) fn encoded_len(&self) -> usize {
        self.event_type.len()
            + self.key.map_or(0, str::len)
            + self.metadata.len()
            + self.payload.len()
    }
}

/// An event apart from its place in the log. Immutable, and cheap to clone.
#[derive(Clone)]
pub struct EventBody(Arc<BodyInner>);

/// All text lies in one allocation: type, key, metadata and payload in turn.
struct BodyInner {
    id: Uuid,
    timestamp: Timestamp,
    has_key: bool,
    type_end: u32,
    key_end: u32,
    metadata_end: u32,
    text: Box<str>,
}

impl EventBody {
    /// Puts together what a store holds.
    ///
    /// # Errors
    /// `Corrupt` where metadata or payload are not JSON as Rheo writes it.
    pub fn from_store(parts: &EventParts<'_>) -> Result<Self> {
        let corrupt = |what: &str, why: String| {
            let context = format!("the {what} of event {} is damaged: {why}", parts.id);
            Error::new(ErrorKind::Corrupt, "read", context)
        };
        json::check(parts.metadata).map_err(|why| corrupt("metadata", why))?;
        if !parts.metadata.trim_start().starts_with('{') {
            return Err(corrupt("metadata", "it is no object".into()));
        }
        json::check(parts.payload).map_err(|why| corrupt("payload", why))?;
        Ok(Self::assemble(parts))
    }

    /// Puts together parts that are known to be valid, and to have at most 4 GiB.
    pub(crate) fn assemble(parts: &EventParts<'_>) -> Self {
        let key = parts.key.unwrap_or_default();
        let mut text = String::with_capacity(parts.encoded_len());
        let mut push = |part: &str| {
            text.push_str(part);
            u32::try_from(text.len()).unwrap_or(u32::MAX)
        };
        let type_end = push(parts.event_type);
        let key_end = push(key);
        let metadata_end = push(parts.metadata);
        push(parts.payload);
        Self(Arc::new(BodyInner {
            id: parts.id,
            timestamp: parts.timestamp,
            has_key: parts.key.is_some(),
            type_end,
            key_end,
            metadata_end,
            text: text.into_boxed_str(),
        }))
    }

    /// The event's id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// When it was appended, by the clock of the instance that did.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.0.timestamp
    }

    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.0.text[..self.0.type_end as usize]
    }

    /// Its key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        let key = &self.0.text[self.0.type_end as usize..self.0.key_end as usize];
        self.0.has_key.then_some(key)
    }

    /// Its metadata, as the text of a JSON object.
    #[must_use]
    pub fn metadata_text(&self) -> &str {
        &self.0.text[self.0.key_end as usize..self.0.metadata_end as usize]
    }

    /// Its payload, as JSON text.
    #[must_use]
    pub fn payload_text(&self) -> &str {
        &self.0.text[self.0.metadata_end as usize..]
    }

    /// Its metadata.
    #[must_use]
    pub fn metadata(&self) -> Map<String, Value> {
        // Checked to be an object when the body was made.
        serde_json::from_str(self.metadata_text()).unwrap_or_default()
    }

    /// Its payload.
    #[must_use]
    pub fn payload(&self) -> Value {
        // Checked to be JSON when the body was made.
        serde_json::from_str(self.payload_text()).unwrap_or_default()
    }

    /// How many bytes it counts against the size limit: type, key, metadata
    /// and payload as text.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.0.text.len()
    }
}

/// Equal in meaning: the order of an object's keys does not count.
impl PartialEq for EventBody {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.0, &*other.0);
        let same_text = || {
            a.text == b.text
                && (a.type_end, a.key_end, a.metadata_end)
                    == (b.type_end, b.key_end, b.metadata_end)
        };
        a.id == b.id
            && a.timestamp == b.timestamp
            && self.event_type() == other.event_type()
            && self.key() == other.key()
            && (same_text()
                || self.metadata() == other.metadata() && self.payload() == other.payload())
    }
}

/// Shows sizes instead of metadata and payload, which may be confidential.
impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody")
            .field("id", &self.id())
            .field("timestamp", &self.timestamp())
            .field("event_type", &self.event_type())
            .field("key", &self.key())
            .field("metadata_bytes", &self.metadata_text().len())
            .field("payload_bytes", &self.payload_text().len())
            .finish()
    }
}

/// An event in the log. Immutable, and cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// # let rheo = rheo_core::Rheo::builder(rheo_ets::Memory::new()).build().await?;
/// use rheo_core::NewEvent;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Order { id: u64, total: f64 }
///
/// rheo.create_stream("orders", 1).await?;
/// let order = Order { id: 7, total: 12.5 };
/// let event = rheo.append("orders", NewEvent::new("order.placed", &order)).await?;
/// assert_eq!(event.sequence(), 1);
/// assert_eq!(event.payload_as::<Order>()?, order);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq)]
pub struct Event {
    stream: StreamName,
    partition: u32,
    sequence: u64,
    body: EventBody,
}

impl Event {
    /// An event at its place in the log.
    #[must_use]
    pub fn new(stream: StreamName, position: Position, body: EventBody) -> Self {
        Self { stream, partition: position.partition, sequence: position.sequence, body }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// The partition, from 0.
    #[must_use]
    pub fn partition(&self) -> u32 {
        self.partition
    }

    /// The sequence within the partition, from 1, without gaps.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Partition and sequence.
    #[must_use]
    pub fn position(&self) -> Position {
        Position::new(self.partition, self.sequence)
    }

    /// The event apart from its place.
    #[must_use]
    pub fn body(&self) -> &EventBody {
        &self.body
    }

    /// The event's id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.body.id()
    }

    /// When it was appended, by the clock of the instance that did.
    #[must_use]
    pub fn timestamp(&self) -> Timestamp {
        self.body.timestamp()
    }

    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> &str {
        self.body.event_type()
    }

    /// Its key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.body.key()
    }

    /// Its metadata.
    #[must_use]
    pub fn metadata(&self) -> Map<String, Value> {
        self.body.metadata()
    }

    /// The lineage that its metadata tells.
    #[must_use]
    pub fn lineage(&self) -> Lineage {
        Lineage::from_metadata(&self.metadata())
    }

    /// Its payload.
    #[must_use]
    pub fn payload(&self) -> Value {
        self.body.payload()
    }

    /// Its payload, as a type of yours.
    ///
    /// # Errors
    /// `Invalid` where the payload is no such type.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(self.body.payload_text()).map_err(|error| {
            // Serde's message may quote the payload: tell only where it stopped.
            let context = format!(
                "the payload of {} {} ({:?}) is no {}: it differs at column {}",
                self.stream,
                self.position(),
                self.event_type(),
                std::any::type_name::<T>(),
                error.column()
            );
            Error::invalid("payload_as", context)
        })
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("stream", &self.stream)
            .field("partition", &self.partition)
            .field("sequence", &self.sequence)
            .field("body", &self.body)
            .finish()
    }
}

/// One JSON document with all fields, for programs.
impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut document = serializer.serialize_struct("Event", 9)?;
        document.serialize_field("id", &self.id())?;
        document.serialize_field("stream", &self.stream)?;
        document.serialize_field("partition", &self.partition)?;
        document.serialize_field("sequence", &self.sequence)?;
        document.serialize_field("timestamp", &self.timestamp())?;
        document.serialize_field("type", self.event_type())?;
        document.serialize_field("key", &self.key())?;
        document.serialize_field("metadata", &self.metadata())?;
        document.serialize_field("payload", &self.payload())?;
        document.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts<'a>(metadata: &'a str, payload: &'a str) -> EventParts<'a> {
        EventParts {
            id: Uuid::nil(),
            timestamp: Timestamp::from_micros(1),
            event_type: "t",
            key: Some("k"),
            metadata,
            payload,
        }
    }

    #[test]
    fn a_body_gives_back_its_parts() {
        let body = EventBody::from_store(&parts(r#"{"a":1}"#, "[1,2]")).unwrap();
        assert_eq!((body.event_type(), body.key()), ("t", Some("k")));
        assert_eq!(body.metadata_text(), r#"{"a":1}"#);
        assert_eq!(body.payload_text(), "[1,2]");
        assert_eq!(body.encoded_len(), 14);
    }

    #[test]
    fn an_empty_key_is_a_key() {
        let with = EventParts { key: Some(""), ..parts("{}", "1") };
        let without = EventParts { key: None, ..with };
        let (with, without) = (EventBody::assemble(&with), EventBody::assemble(&without));
        assert_eq!((with.key(), without.key()), (Some(""), None));
        assert_ne!(with, without);
    }

    #[test]
    fn equality_is_of_meaning() {
        let one = EventBody::assemble(&parts("{}", r#"{"a":1,"b":2}"#));
        let other = EventBody::assemble(&parts("{}", r#"{"b":2,"a":1}"#));
        assert_eq!(one, other);
        assert_ne!(one, EventBody::assemble(&parts("{}", r#"{"a":1.0,"b":2}"#)));
    }

    #[test]
    fn damaged_text_is_corrupt() {
        for (metadata, payload) in [("{", "1"), ("[]", "1"), ("{}", "")] {
            let error = EventBody::from_store(&parts(metadata, payload)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}

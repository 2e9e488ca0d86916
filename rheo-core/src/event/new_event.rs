//! [`NewEvent`]: an event on its way to the log.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{EventBody, EventParts, Lineage, json, partition_for_key};
use crate::backend::RoutedEvent;
use crate::{Error, ErrorKind, Result, Timestamp};

/// The longest an event's type may be, in bytes of UTF-8.
pub const MAX_TYPE_BYTES: usize = 255;
/// The longest an event's key may be, in bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 512;

/// An event to append: a type, a payload, and what else is set.
///
/// The payload is any [`Serialize`] value. What cannot be stored (a string
/// with U+0000, nesting deeper than 64, a map whose keys are no strings) is
/// `Invalid` when the event is appended, before anything is written. As
/// everywhere in serde_json, a float that is not finite becomes null.
///
/// ```
/// use rheo_core::NewEvent;
/// use serde_json::json;
///
/// let event = NewEvent::new("price", json!({"symbol": "AAPL", "price": 25.94}))
///     .key("AAPL")
///     .metadata("desk", "equities");
/// ```
#[derive(Clone)]
pub struct NewEvent {
    id: Option<Uuid>,
    event_type: String,
    key: Option<String>,
    partition: Option<u32>,
    metadata: Map<String, Value>,
    /// Its text, or why it cannot be stored.
    payload: Result<String, String>,
    /// The first metadata value that could not be encoded, and why.
    problem: Option<String>,
}

/// Shows sizes instead of metadata and payload, which may be confidential.
impl fmt::Debug for NewEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewEvent")
            .field("id", &self.id)
            .field("event_type", &self.event_type)
            .field("key", &self.key)
            .field("partition", &self.partition)
            .field("metadata_fields", &self.metadata.len())
            .field("payload_bytes", &self.payload.as_ref().map_or(0, String::len))
            .finish_non_exhaustive()
    }
}

impl NewEvent {
    /// An event of a type (1 to 255 bytes, no U+0000), with a payload.
    pub fn new(event_type: impl Into<String>, payload: impl Serialize) -> Self {
        Self {
            id: None,
            event_type: event_type.into(),
            key: None,
            partition: None,
            metadata: Map::new(),
            payload: json::encode(&payload),
            problem: None,
        }
    }

    /// Gives the event an id: an idempotency key within the partition that the
    /// event is routed to. Appending the same id again returns the stored
    /// event, and writes nothing.
    #[must_use]
    pub fn id(mut self, id: Uuid) -> Self {
        self.id = Some(id);
        self
    }

    /// Gives the event a key (up to 512 bytes, no U+0000). Events of one key
    /// share a partition, and keep their order.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Names the partition, whatever the key.
    #[must_use]
    pub fn partition(mut self, partition: u32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Sets one metadata field.
    #[must_use]
    pub fn metadata(mut self, field: impl Into<String>, value: impl Serialize) -> Self {
        let field = field.into();
        match serde_json::to_value(value) {
            Ok(value) => {
                self.metadata.insert(field, value);
            }
            Err(error) => {
                self.problem.get_or_insert(error.to_string());
            }
        }
        self
    }

    /// Sets the lineage's metadata fields.
    #[must_use]
    pub fn lineage(mut self, lineage: &Lineage) -> Self {
        for (field, value) in lineage.parts() {
            self.metadata.insert(field.into(), value.into());
        }
        self
    }

    /// Checks the event, encodes it and chooses its partition.
    pub(crate) fn route(
        &self,
        operation: &'static str,
        partitions: u32,
        timestamp: Timestamp,
        size_limit: usize,
    ) -> Result<RoutedEvent> {
        let invalid = |why: String| Error::invalid(operation, why);
        self.check().map_err(invalid)?;
        let partition = self.choose_partition(partitions).map_err(invalid)?;
        let metadata = self.encode_metadata().map_err(invalid)?;
        let payload = match &self.payload {
            Ok(payload) => payload,
            Err(why) => return Err(invalid(format!("the payload cannot be stored: {why}"))),
        };
        let parts = EventParts {
            id: self.id.unwrap_or_else(Uuid::now_v7),
            timestamp,
            event_type: &self.event_type,
            key: self.key.as_deref(),
            metadata: &metadata,
            payload,
        };
        let size = parts.encoded_len();
        if size > size_limit {
            let context = format!("the event has {size} bytes encoded, the limit is {size_limit}");
            return Err(Error::new(ErrorKind::EventTooLarge, operation, context));
        }
        Ok(RoutedEvent {
            partition,
            body: EventBody::assemble(&parts),
            idempotent: self.id.is_some(),
        })
    }

    fn check(&self) -> Result<(), String> {
        if self.event_type.is_empty() {
            return Err("an event's type has at least one character".into());
        }
        check_text("type", &self.event_type, MAX_TYPE_BYTES)?;
        check_text("key", self.key.as_deref().unwrap_or_default(), MAX_KEY_BYTES)
    }

    fn choose_partition(&self, partitions: u32) -> Result<u32, String> {
        match (self.partition, &self.key) {
            (Some(partition), _) if partition >= partitions => {
                Err(format!("partition {partition} is out of range: the stream has {partitions}"))
            }
            (Some(partition), _) => Ok(partition),
            (None, Some(key)) => Ok(partition_for_key(key, partitions)),
            (None, None) => Ok(0),
        }
    }

    fn encode_metadata(&self) -> Result<Cow<'static, str>, String> {
        let text = match &self.problem {
            Some(problem) => Err(problem.clone()),
            None if self.metadata.is_empty() => Ok(Cow::Borrowed("{}")),
            None => json::encode(&self.metadata).map(Cow::Owned),
        };
        text.map_err(|why| format!("the metadata cannot be stored: {why}"))
    }
}

fn check_text(what: &str, text: &str, max_bytes: usize) -> Result<(), String> {
    if text.len() > max_bytes {
        return Err(format!("the {what} has {} bytes, the limit is {max_bytes}", text.len()));
    }
    if text.contains('\0') {
        return Err(format!("the {what} holds the character U+0000"));
    }
    Ok(())
}

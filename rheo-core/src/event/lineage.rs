//! [`Lineage`]: where an event comes from, by well-known metadata keys.

use serde_json::{Map, Value};

use super::Event;

/// The metadata keys of the lineage, in the order of the fields.
pub(crate) const LINEAGE_KEYS: [&str; 5] =
    ["correlation_id", "causation_id", "producer", "schema", "schema_version"];

/// Where an event comes from. Each part is a metadata field of the same name,
/// and can be queried by it.
///
/// ```
/// use rheo_core::{Lineage, NewEvent};
///
/// let lineage = Lineage::default().correlation_id("corr-1").producer("pricing");
/// let event = NewEvent::new("price", 12.5).lineage(&lineage);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lineage {
    /// What belongs together: the same for all that one cause set off.
    pub correlation_id: Option<String>,
    /// What directly caused this event.
    pub causation_id: Option<String>,
    /// Who made it.
    pub producer: Option<String>,
    /// The payload's schema.
    pub schema: Option<String>,
    /// That schema's version.
    pub schema_version: Option<String>,
}

impl Lineage {
    /// The lineage of what `event` causes: the same correlation (or, where it
    /// has none, its id), and its id as the cause.
    #[must_use]
    pub fn caused_by(event: &Event) -> Self {
        let id = event.id().to_string();
        Self {
            correlation_id: event.lineage().correlation_id.or_else(|| Some(id.clone())),
            causation_id: Some(id),
            ..Self::default()
        }
    }

    /// Sets what belongs together.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Self {
        self.correlation_id = Some(id.into());
        self
    }

    /// Sets the direct cause.
    #[must_use]
    pub fn causation_id(mut self, id: impl Into<String>) -> Self {
        self.causation_id = Some(id.into());
        self
    }

    /// Sets who made it.
    #[must_use]
    pub fn producer(mut self, producer: impl Into<String>) -> Self {
        self.producer = Some(producer.into());
        self
    }

    /// Sets the payload's schema.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Sets the schema's version.
    #[must_use]
    pub fn schema_version(mut self, version: impl Into<String>) -> Self {
        self.schema_version = Some(version.into());
        self
    }

    /// Reads the parts that are there as strings.
    pub(crate) fn from_metadata(metadata: &Map<String, Value>) -> Self {
        let [correlation_id, causation_id, producer, schema, schema_version] =
            LINEAGE_KEYS.map(|key| metadata.get(key).and_then(Value::as_str).map(Into::into));
        Self { correlation_id, causation_id, producer, schema, schema_version }
    }

    /// The parts that are set, by their keys.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let values = [
            &self.correlation_id,
            &self.causation_id,
            &self.producer,
            &self.schema,
            &self.schema_version,
        ];
        LINEAGE_KEYS
            .into_iter()
            .zip(values)
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
    }
}

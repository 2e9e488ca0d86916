//! [`Fields`]: where the parts of an event come from.

use clap::Args;
use rheo::NewEvent;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::ids;

/// What the command line says of events.
#[derive(Clone, Debug, Args)]
pub(super) struct Fields {
    /// The type; the object on a line of NDJSON is then the payload itself
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,

    /// The payload's field with the type, a.b for deeper ones; as for --type
    #[arg(long, value_name = "FIELD", conflicts_with = "event_type")]
    type_field: Option<String>,

    /// The key
    #[arg(long)]
    key: Option<String>,

    /// The payload's field with the key
    #[arg(long, value_name = "FIELD", conflicts_with = "key")]
    key_field: Option<String>,

    /// The payload's field with the id, which makes appending again harmless; several together are one id
    #[arg(long, value_name = "FIELD")]
    id_field: Vec<String>,

    /// The partition, whatever the key
    #[arg(long, value_name = "N")]
    partition: Option<u32>,

    /// A metadata field, of which the value is a string; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    metadata: Vec<(String, String)>,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("it is NAME=VALUE")?;
    Ok((pair.0.into(), pair.1.into()))
}

/// The text of a payload's field, None where it is null or an empty cell.
pub(super) type Found = Result<Option<String>, String>;

/// What a line says itself of its event, which comes before all options.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) event_type: Option<String>,
    pub(super) key: Option<String>,
    pub(super) id: Option<String>,
    pub(super) partition: Option<u32>,
    pub(super) metadata: Map<String, Value>,
}

/// An event to be appended.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) event: NewEvent,
    /// Whether it has an id of the person's, so that appending it again is harmless.
    pub(super) identified: bool,
}

/// Makes events for one stream.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    pub(super) stream: String,
    pub(super) fields: Fields,
}

impl Maker {
    /// Whether options say where the type comes from.
    pub(super) fn knows_type(&self) -> bool {
        self.fields.event_type.is_some() || self.fields.type_field.is_some()
    }

    /// The fields of the payload that are looked at.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let Fields { type_field, key_field, id_field, .. } = &self.fields;
        type_field.iter().chain(key_field).chain(id_field).map(String::as_str)
    }

    /// # Errors
    /// A sentence that says what is wrong with the line.
    pub(super) fn draft(
        &self,
        own: Own,
        payload: impl Serialize,
        find: impl Fn(&str) -> Found,
    ) -> Result<Draft, String> {
        let fields = &self.fields;
        let id = self.id(own.id, &find)?;
        let event_type = own_or_found(own.event_type, fields.type_field.as_deref(), &find)?
            .or_else(|| fields.event_type.clone())
            .ok_or("it has no type")?;
        let key = own_or_found(own.key, fields.key_field.as_deref(), &find)?
            .or_else(|| fields.key.clone());

        let mut event = NewEvent::new(event_type, payload);
        if let Some(id) = id {
            event = event.id(id);
        }
        if let Some(key) = key {
            event = event.key(key);
        }
        if let Some(partition) = own.partition.or(fields.partition) {
            event = event.partition(partition);
        }
        for (name, value) in &fields.metadata {
            event = event.metadata(name, value);
        }
        for (name, value) in own.metadata {
            event = event.metadata(name, value);
        }
        Ok(Draft { event, identified: id.is_some() })
    }

    fn id(
        &self,
        own: Option<String>,
        find: impl Fn(&str) -> Found,
    ) -> Result<Option<Uuid>, String> {
        let id = |text: &str| ids::id(&self.stream, text);
        match own.as_deref() {
            Some("") => return Err("its id is empty".into()),
            Some(text) => return Ok(Some(id(text))),
            None => {}
        }
        let part = |field: &String| {
            let text = find(field)?.filter(|text| !text.is_empty());
            text.ok_or_else(|| format!("its field {field:?}, of the id, is empty"))
        };
        let parts = self.fields.id_field.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        Ok(match parts.as_slice() {
            [] => None,
            [part] => Some(id(part)),
            // As JSON, so that ("a", "bc") and ("ab", "c") never meet.
            parts => Some(id(&Value::from(parts).to_string())),
        })
    }
}

fn own_or_found(
    own: Option<String>,
    field: Option<&str>,
    find: impl Fn(&str) -> Found,
) -> Result<Option<String>, String> {
    match (own, field) {
        (None, Some(field)) => find(field),
        (own, _) => Ok(own),
    }
}

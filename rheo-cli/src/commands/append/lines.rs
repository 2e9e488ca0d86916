//! NDJSON: an event on each line.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::io;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Draft, Found, Maker, Own};
use super::input::{Entry, Lines};

/// A whole event, as other commands print it too. Where it was in another
/// stream says nothing here; its partition does.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event<'a> {
    r#type: String,
    key: Option<String>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    partition: Option<u32>,
    metadata: Option<Map<String, Value>>,
    #[serde(borrow)]
    payload: &'a RawValue,
    #[serde(rename = "stream")]
    _stream: Option<IgnoredAny>,
    #[serde(rename = "sequence")]
    _sequence: Option<IgnoredAny>,
    #[serde(rename = "timestamp")]
    _timestamp: Option<IgnoredAny>,
}

type Object<'a> = HashMap<String, &'a RawValue>;

/// The entries of a file. Empty lines are none.
pub(super) struct NdJson {
    pub(super) lines: Lines,
    pub(super) maker: Maker,
}

impl Iterator for NdJson {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = match self.lines.next().transpose()? {
                Ok(Ok(line)) if line.trim_ascii().is_empty() => continue,
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            let Lines { number, offset, .. } = self.lines;
            let draft = line.and_then(|line| draft(&self.maker, &line));
            return Some(Ok(Entry { first: number, last: number, offset, draft }));
        }
    }
}

/// The event of a line: the whole of it is the payload where options say what
/// type it has.
fn draft(maker: &Maker, line: &str) -> Result<Draft, String> {
    if maker.knows_type() {
        let payload = serde_json::from_str(line).map_err(|error| sentence(&error))?;
        return of_payload(maker, Own::default(), payload);
    }
    let event: Event<'_> = serde_json::from_str(line).map_err(|error| match error.is_data() {
        true => format!(
            "{}; without --type or --type-field, a line is an object with type and payload",
            sentence(&error)
        ),
        false => sentence(&error),
    })?;
    let id = event.id.map(|id| text("id", id)).transpose()?.flatten();
    let own = Own {
        event_type: Some(event.r#type),
        key: event.key,
        id,
        partition: event.partition,
        metadata: event.metadata.unwrap_or_default(),
    };
    of_payload(maker, own, event.payload)
}

/// The event with a payload of which options may name fields.
pub(super) fn of_payload(maker: &Maker, own: Own, payload: &RawValue) -> Result<Draft, String> {
    let fields = OnceCell::new();
    maker.draft(own, payload, |name| {
        let fields = fields.get_or_init(|| object(payload)).as_ref();
        let value = fields.and_then(|fields| value(fields, name));
        text(name, value.ok_or_else(|| format!("its payload has no field {name:?}"))?)
    })
}

fn object(value: &RawValue) -> Option<Object<'_>> {
    serde_json::from_str(value.get()).ok()
}

/// The value under a name, or else, from dot to dot, deeper inside.
fn value<'a>(fields: &Object<'a>, name: &str) -> Option<&'a RawValue> {
    if let Some(value) = fields.get(name) {
        return Some(value);
    }
    let (name, deeper) = name.split_once('.')?;
    value(&object(fields.get(name)?)?, deeper)
}

/// A string as it is, a number by its digits as written: as a number, two long
/// ones could become the same.
fn text(name: &str, value: &RawValue) -> Found {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'"') => serde_json::from_str(json).map(Some).map_err(|error| sentence(&error)),
        Some(b'n') => Ok(None),
        Some(b'[' | b'{') => Err(format!("its field {name:?} is an array or an object")),
        _ => Ok(Some(json.into())),
    }
}

/// What is wrong with a line, without its number, which is told apart.
fn sentence(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(told.as_str(), |(what, _)| what);
    let verdict = if error.is_data() { "" } else { "it is no JSON: " };
    format!("{verdict}{what}, at column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn fields_are_found_by_name_and_by_path() {
        let payload = raw(r#"{"a":{"b":{"c":7}},"a.b":"near","":"empty"}"#);
        let fields = object(payload).unwrap();
        let found = |name| value(&fields, name).map(RawValue::get);
        assert_eq!(found("a.b"), Some("\"near\""));
        assert_eq!(found("a.b.c"), Some("7"));
        assert_eq!(found(""), Some("\"empty\""));
        assert_eq!((found("a.c"), found("b")), (None, None));
    }

    #[test]
    fn long_numbers_keep_their_digits() {
        let long = "123456789012345678901234567890";
        assert_eq!(text("n", raw(long)), Ok(Some(long.into())));
        assert_eq!(text("n", raw("\"\\u00e9\"")), Ok(Some("é".into())));
        assert_eq!(text("n", raw("null")), Ok(None));
        assert!(text("n", raw("[1]")).is_err());
    }
}

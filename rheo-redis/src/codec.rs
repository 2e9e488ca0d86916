//! Events as entries of the log.
//!
//! An entry's id is `0-` and the event's sequence. Its fields are `id`, `at`
//! (microseconds), `type`, `key` where there is one, `metadata` and `payload`;
//! and `latest`, where the partition had an event with a later timestamp before.

use redis::Value;
use rheo_core::{Event, EventBody, EventParts, Position, Result, StreamName, Timestamp};
use uuid::Uuid;

use crate::error::corrupt;

/// The id of the entry with this sequence.
pub(crate) fn entry_id(sequence: u64) -> String {
    format!("0-{sequence}")
}

/// The sequence of the entry with this id.
fn sequence(id: &[u8]) -> Option<u64> {
    text(id.strip_prefix(b"0-")?)?.parse().ok()
}

/// The events in a list of entries, as XRANGE and its like answer it. What was
/// deleted by hand is not there.
///
/// # Errors
/// `Corrupt` where an entry holds something else.
pub(crate) fn events(value: Value, stream: &StreamName, partition: u32) -> Result<Vec<Event>> {
    let entries = entries(value, stream, partition)?;
    entries.into_iter().map(|(_, event)| event).collect()
}

/// The same with each entry's sequence, and each event or error by itself.
///
/// # Errors
/// `Corrupt` where an entry's id is no sequence.
pub(crate) fn entries(
    value: Value,
    stream: &StreamName,
    partition: u32,
) -> Result<Vec<(u64, Result<Event>)>> {
    let Value::Array(entries) = value else {
        return Err(corrupt("read", "a list of entries is another answer than expected"));
    };
    let mut events = Vec::with_capacity(entries.len());
    for entry in &entries {
        if let Some((sequence, fields)) = parts(entry, stream, partition)? {
            let position = Position::new(partition, sequence);
            let body = body(fields, stream, position);
            events.push((sequence, body.map(|body| Event::new(stream.clone(), position, body))));
        }
    }
    Ok(events)
}

/// The list of entries in the answer to an XREADGROUP of one log; none where
/// the answer is another.
pub(crate) fn entries_of_read(answer: Value) -> Option<Value> {
    match answer {
        Value::Nil => Some(Value::Array(Vec::new())),
        Value::Map(logs) => logs.into_iter().next().map(|(_, entries)| entries),
        Value::Array(logs) => match logs.into_iter().next()? {
            Value::Array(log) => log.into_iter().nth(1),
            _ => None,
        },
        _ => None,
    }
}

/// An entry's sequence, and names and values of its fields in turn; nothing
/// where it was deleted.
fn parts<'a>(
    entry: &'a Value,
    stream: &StreamName,
    partition: u32,
) -> Result<Option<(u64, &'a [Value])>> {
    let strange = || {
        let place = format!("partition {partition} of stream {stream:?}");
        corrupt("read", format!("an entry of {place} is none that Rheo wrote"))
    };
    let Value::Array(entry) = entry else { return Err(strange()) };
    let [Value::BulkString(id), fields] = &entry[..] else { return Err(strange()) };
    let sequence = sequence(id).ok_or_else(strange)?;
    match fields {
        Value::Array(fields) => Ok(Some((sequence, fields))),
        Value::Nil => Ok(None),
        _ => Err(strange()),
    }
}

fn body(fields: &[Value], stream: &StreamName, position: Position) -> Result<EventBody> {
    let damaged =
        |what: &str| corrupt("read", format!("event {position} of stream {stream:?} {what}"));
    let (mut id, mut at, mut event_type, mut key, mut metadata, mut payload) =
        (None, None, None, None, None, None);
    for field in fields.chunks(2) {
        let [Value::BulkString(name), Value::BulkString(value)] = field else {
            return Err(damaged("has fields that are no text"));
        };
        let value = text(value).ok_or_else(|| damaged("has a field that is no UTF-8"))?;
        match name.as_slice() {
            b"id" => id = Uuid::try_parse(value).ok(),
            b"at" => at = value.parse().ok(),
            b"type" => event_type = Some(value),
            b"key" => key = Some(value),
            b"metadata" => metadata = Some(value),
            b"payload" => payload = Some(value),
            _ => {}
        }
    }
    EventBody::from_store(&EventParts {
        id: id.ok_or_else(|| damaged("has no id"))?,
        timestamp: at.map(Timestamp::from_micros).ok_or_else(|| damaged("has no timestamp"))?,
        event_type: event_type.ok_or_else(|| damaged("has no type"))?,
        key,
        metadata: metadata.ok_or_else(|| damaged("has no metadata"))?,
        payload: payload.ok_or_else(|| damaged("has no payload"))?,
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use rheo_core::ErrorKind;

    use super::*;

    const ID: &str = "018f4d3a-9a7b-7c3e-8a51-0123456789ab";
    const FIELDS: [(&str, &str); 6] = [
        ("id", ID),
        ("at", "-1"),
        ("type", "t"),
        ("key", ""),
        ("metadata", "{}"),
        ("payload", "[1]"),
    ];

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn list(values: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(values.into_iter().collect())
    }

    fn entry(id: &str, fields: &[(&str, &str)]) -> Value {
        let fields = fields.iter().flat_map(|&(name, value)| [bulk(name), bulk(value)]);
        list([bulk(id), list(fields)])
    }

    fn read(entries: impl IntoIterator<Item = Value>) -> Result<Vec<Event>> {
        events(list(entries), &StreamName::new("orders").unwrap(), 3)
    }

    #[test]
    fn entries_are_events() {
        let late = [&FIELDS[..3], &FIELDS[4..], &[("latest", "7")]].concat();
        let deleted = list([bulk("0-18"), Value::Nil]);
        let events = read([entry("0-17", &FIELDS), deleted, entry("0-19", &late)]).unwrap();
        let [first, second] = &events[..] else { panic!("{events:?}") };
        assert_eq!(first.position(), Position::new(3, 17));
        assert_eq!(first.id().to_string(), ID);
        assert_eq!(first.timestamp(), Timestamp::from_micros(-1));
        assert_eq!((first.event_type(), first.key()), ("t", Some("")));
        assert_eq!((first.body().metadata_text(), first.body().payload_text()), ("{}", "[1]"));
        assert_eq!((second.sequence(), second.key()), (19, None));
        assert_eq!(read([]).unwrap(), []);
    }

    #[test]
    fn what_is_no_event_is_corrupt() {
        let with = |name, value: &'static str| {
            let set = |field: (&'static str, &'static str)| {
                if field.0 == name { (name, value) } else { field }
            };
            entry("0-1", &FIELDS.map(set))
        };
        let mut strange = vec![
            with("id", "1"),
            with("at", "1.5"),
            with("metadata", "[]"),
            with("payload", "{"),
            entry("1-1", &FIELDS),
            entry("0-x", &FIELDS),
            list([bulk("0-1"), list([bulk("id")])]),
            list([bulk("0-1"), list([bulk("id"), Value::BulkString(vec![0xff])])]),
            list([bulk("0-1"), Value::Okay]),
            list([bulk("0-1")]),
            Value::Nil,
        ];
        let needed = [0, 1, 2, 4, 5];
        strange.extend(needed.map(|left_out| {
            entry("0-1", &[&FIELDS[..left_out], &FIELDS[left_out + 1..]].concat())
        }));
        for entry in strange {
            let error = read([entry.clone()]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{entry:?}");
        }
    }

    #[test]
    fn ids_are_sequences() {
        assert_eq!(entry_id(17), "0-17");
        assert_eq!(sequence(b"0-18446744073709551615"), Some(u64::MAX));
        assert_eq!(sequence(b"17"), None);
    }

    #[test]
    fn a_read_of_one_log_is_unwrapped() {
        let entries = list([entry("0-1", &FIELDS)]);
        let log = || bulk("rheo:{orders/0}");
        let answers =
            [list([list([log(), entries.clone()])]), Value::Map(vec![(log(), entries.clone())])];
        assert!(answers.into_iter().all(|answer| entries_of_read(answer).unwrap() == entries));
        assert_eq!(entries_of_read(Value::Nil), Some(list([])));
        assert_eq!(entries_of_read(Value::Okay), None);
    }
}

//! What goes into a document comes out of it, and nothing else does.

use mongodb::bson::{Bson, Decimal128, Document, RawArray, doc};
use proptest::prelude::*;
use rheo_core::{Effect, ErrorKind};
use serde_json::json;

use super::*;

/// JSON as it may be written: an object may have a key twice.
#[derive(Clone, Debug)]
enum Json {
    Leaf(Value),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn text(&self) -> String {
        match self {
            Self::Leaf(value) => value.to_string(),
            Self::List(items) => {
                format!("[{}]", items.iter().map(Self::text).collect::<Vec<_>>().join(","))
            }
            Self::Object(fields) => {
                let field = |(key, value): &(String, Self)| {
                    format!("{}:{}", Value::from(key.as_str()), value.text())
                };
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// Whether it has what the natural form has not.
    fn is_odd(&self) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::List(items) => items.iter().any(Self::is_odd),
            Self::Object(fields) => fields.iter().enumerate().any(|(at, (key, value))| {
                let again = fields[..at].iter().any(|(other, _)| key == other);
                again || value.is_odd() || !is_natural_key(key)
            }),
        }
    }
}

fn number() -> impl Strategy<Value = Value> {
    let edge = prop_oneof![
        Just(json!(u64::MAX)),
        Just(json!(i64::MAX)),
        Just(json!(i64::MAX.cast_unsigned() + 1)),
        Just(json!(i64::MIN)),
        Just(json!(i64::from(i32::MAX) + 1)),
        Just(json!(i32::MIN)),
        Just(json!(1e16)),
        Just(json!(-0.0)),
        Just(json!(f64::MAX)),
        Just(json!(5e-324)),
    ];
    let float = any::<f64>().prop_filter("finite", |float| float.is_finite());
    prop_oneof![
        edge,
        any::<i32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        float.prop_map(Value::from),
        any::<i32>().prop_map(|whole| f64::from(whole).into()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text.replace('\0', ""))
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-e]", 1 => "[a$.＄．＿]{0,3}", 1 => text()]
}

fn fields(value: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
    proptest::collection::vec((key(), value), 0..4).prop_map(Json::Object)
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        number(),
        text().prop_map(Value::String),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    leaf.prop_map(Json::Leaf).prop_recursive(4, 32, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::List);
        prop_oneof![list, fields(inner)]
    })
}

fn stream() -> StreamName {
    StreamName::new("orders").unwrap()
}

fn routed(metadata: &str, payload: &str) -> RoutedEvent {
    let body = EventBody::from_store(&EventParts {
        id: Uuid::from_u128(7),
        timestamp: Timestamp::from_micros(-1),
        event_type: "order.placed",
        key: Some(""),
        metadata,
        payload,
    });
    RoutedEvent { partition: 3, body: body.unwrap(), idempotent: true }
}

fn written(metadata: &str, payload: &str) -> RawDocumentBuf {
    let event = routed(metadata, payload);
    document(&stream(), ObjectId::from_bytes([1; 12]), 17, Timestamp::from_micros(5), &event)
}

fn read(document: &RawDocument) -> rheo_core::Result<Event> {
    event(document, &stream()).map_err(|failure| failure.into_error("read", Effect::NotApplied))
}

fn exact(document: &RawDocument, name: &str) -> Option<String> {
    let exact = document.get_document("exact").ok()?;
    exact.get_str(name).map(Into::into).ok()
}

/// Whether each object in it has each key once, and none that MongoDB takes for its own.
fn is_clean(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Array(items) => items.into_iter().all(|item| is_clean(item.unwrap())),
        RawBsonRef::Document(fields) => {
            let mut seen = std::collections::HashSet::new();
            fields.iter().map(Result::unwrap).all(|(key, value)| {
                let key = key.as_str();
                let plain = !key.is_empty() && !key.starts_with('$') && !key.contains('.');
                plain && seen.insert(key) && is_clean(value)
            })
        }
        _ => true,
    }
}

proptest! {
    #[test]
    fn events_come_back(metadata in fields(any_json()), payload in any_json()) {
        let (metadata_text, payload_text) = (metadata.text(), payload.text());
        let document = written(&metadata_text, &payload_text);
        let event = read(&document).unwrap();
        prop_assert_eq!(event.position(), Position::new(3, 17));
        prop_assert_eq!(event.body(), &routed(&metadata_text, &payload_text).body);
        prop_assert_eq!(exact(&document, "metadata"), metadata.is_odd().then_some(metadata_text));
        prop_assert_eq!(exact(&document, "payload"), payload.is_odd().then_some(payload_text));
        prop_assert_eq!(document.get("exact")?.is_some(), metadata.is_odd() || payload.is_odd());
        prop_assert!(is_clean(RawBsonRef::Document(&document)));
    }

    #[test]
    fn what_is_damaged_is_corrupt(
        payload in any_json(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = written(r#"{"a":[1,"x"]}"#, &payload.text()).into_bytes();
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()).max(5));
        }
        // The driver takes no document that does not begin and end as one.
        let length = i32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        *bytes.last_mut().unwrap() = 0;
        if let Err(error) = read(&RawDocumentBuf::from_bytes(bytes)?) {
            prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }
}

#[test]
fn documents_read_naturally() {
    let payload = r#"{"total":12.5,"lines":[{"n":1},null],"big":18446744073709551615,
        "far":-3000000000,"paid":true,"note":"x","sci":1e16,"none":{}}"#;
    let document = written(r#"{"correlation_id":"c-1"}"#, payload);
    let mut document = Document::try_from(document).unwrap();
    assert_eq!(document.keys().next().unwrap(), "_id");
    assert!(document.remove("_id").unwrap().as_object_id().is_some());
    let big: Decimal128 = "18446744073709551615".parse().unwrap();
    let expected = doc! {
        "stream": "orders",
        "log": ObjectId::from_bytes([1; 12]),
        "partition": 3,
        "sequence": 17_i64,
        "id": binary(Uuid::from_u128(7)),
        "time": DateTime::from_millis(-1),
        "timestamp": -1_i64,
        "latest": 5_i64,
        "type": "order.placed",
        "key": "",
        "metadata": { "correlation_id": "c-1" },
        "payload": {
            "total": 12.5,
            "lines": [{ "n": 1 }, Bson::Null],
            "big": big,
            "far": -3_000_000_000_i64,
            "paid": true,
            "note": "x",
            "sci": 1e16,
            "none": {},
        },
        "given": true,
    };
    assert_eq!(document, expected);
}

#[test]
fn odd_keys_look_alike() {
    let table = [
        (r#"{"a.b":1,"$c":2,"":3}"#, doc! { "a．b": 1, "＄c": 2, "＿": 3 }),
        (r#"{"$a.$b":1,"c$":2}"#, doc! { "＄a．$b": 1, "c$": 2 }),
        (r#"{"a":1,"b":2,"a":3}"#, doc! { "a": 3, "b": 2 }),
        (r#"[{"a.b":1,"a．b":2}]"#, doc! { "0": { "a．b": 2 } }),
    ];
    for (payload, expected) in table {
        let document = written("{}", payload);
        assert_eq!(exact(&document, "payload").as_deref(), Some(payload));
        let natural = match document.get("payload").unwrap().unwrap() {
            RawBsonRef::Array(items) => RawArray::as_bytes(items),
            other => other.as_document().unwrap().as_bytes(),
        };
        let natural = RawDocument::from_bytes(natural).unwrap();
        assert_eq!(Document::try_from(natural).unwrap(), expected, "{payload}");
    }
}

#[test]
fn what_is_no_event_is_corrupt() {
    let whole = Document::try_from(written("{}", "[1]")).unwrap();
    let is_corrupt = |document: &Document| {
        let read = read(&RawDocumentBuf::try_from(document).unwrap());
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt, "{document}");
    };
    for needed in ["partition", "sequence", "id", "timestamp", "type", "metadata", "payload"] {
        let mut document = whole.clone();
        document.remove(needed);
        is_corrupt(&document);
    }
    let infinite = (0..70).fold(Bson::Null, |inner, _| Bson::Array(vec![inner]));
    let strange: [(&str, Bson); 17] = [
        ("partition", (-1).into()),
        ("sequence", 0_i64.into()),
        ("sequence", 1.5.into()),
        ("id", "7".into()),
        ("id", Binary { subtype: BinarySubtype::Uuid, bytes: vec![7] }.into()),
        ("timestamp", DateTime::from_millis(1).into()),
        ("type", 1.into()),
        ("key", Bson::Null),
        ("metadata", "{}".into()),
        ("metadata", Bson::Array(vec![])),
        ("payload", f64::NAN.into()),
        ("payload", DateTime::from_millis(1).into()),
        ("payload", "1.5".parse::<Decimal128>().unwrap().into()),
        ("payload", "a\0b".into()),
        ("payload", infinite),
        ("exact", "1".into()),
        ("exact", doc! { "payload": "[" }.into()),
    ];
    for (name, value) in strange {
        let mut document = whole.clone();
        document.insert(name, value);
        is_corrupt(&document);
    }
}

fn long(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// An array full of empty ones: nothing else grows as much.
fn sparse(bytes: usize) -> String {
    format!("[{}]", vec!["[]"; (bytes - 2) / 3].join(","))
}

#[test]
fn the_largest_event_fits_whatever_is_in_it() {
    const MIB: usize = 1024 * 1024;
    let beside = 100;
    let contents = [
        // The natural form of the payload, of the metadata, of neither is too large.
        ("{}".into(), format!("[{},{}]", long(14 * MIB - beside), sparse(MIB - beside)), "payload"),
        (format!("[{},{}]", long(13 * MIB), sparse(MIB)), long(MIB - beside), "metadata"),
        (long(8 * MIB), long(7 * MIB - beside), ""),
        // What loses something takes twice the room.
        (format!(r#"{{"":{}}}"#, long(8 * MIB - beside)), long(7 * MIB - beside), "metadata"),
    ];
    for (metadata, payload, left_out) in contents {
        let metadata = format!(r#"{{"correlation_id":"c","schema":1,"z":{metadata}}}"#);
        let written = written(&metadata, &payload);
        assert!(written.as_bytes().len() < 16 * MIB);
        let names = ["metadata", "payload"].map(|name| exact(&written, name).map(|_| name));
        assert_eq!(names.into_iter().flatten().collect::<Vec<_>>().join(" "), left_out);
        let event = read(&written).unwrap();
        assert!(event.body().encoded_len() <= MOST_BYTES);
        assert!(event.body().metadata_text() == metadata);
        assert!(event.body().payload_text() == payload);
        let natural = written.get_document("metadata").unwrap();
        assert_eq!(natural.get_str("correlation_id").unwrap(), "c");
    }
}

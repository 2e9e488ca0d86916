//! JSON text in its natural form: as BSON that people can query.
//!
//! Integers are the least of Int32, Int64 and Decimal128 (above `i64::MAX`)
//! that holds them, floats are Double, and the rest is what it is called in
//! both. MongoDB compares numbers by value across these types, so the form of
//! a number hides nothing.
//!
//! A few keys cannot stand as they are: MongoDB takes a point and a leading
//! dollar sign for its own, and some tools refuse them or an empty key. They
//! get a look-alike: `.` becomes `．`, `$` at the beginning `＄`, and the empty
//! key `＿`. Of a key that is there twice in one object, the last one stands.
//! Either way something is lost, and [`Natural::loses`] tells it.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use mongodb::bson::spec::ElementType;
use mongodb::bson::{RawBsonRef, RawDocumentBuf};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The bits of the Decimal128 that is zero with the exponent zero: in those of
/// an integer, the integer comes in its place.
pub(super) const ZERO_DECIMAL: u128 = 0x3040 << 112;

const POINT: &str = "．";
const DOLLAR: char = '＄';
const EMPTY: &str = "＿";

/// Whether a key stands in the natural form as itself. One that looks like
/// another's look-alike does not, so that the two are never confused.
pub(crate) fn is_natural_key(key: &str) -> bool {
    !(key.is_empty()
        || key == EMPTY
        || key.starts_with(['$', DOLLAR])
        || key.contains('.')
        || key.contains(POINT))
}

/// How the key stands in the natural form: borrowed where it does as itself.
fn natural_key(key: &str) -> Cow<'_, str> {
    if is_natural_key(key) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(match key.strip_prefix('$') {
        None if key.is_empty() => EMPTY.into(),
        None => key.replace('.', POINT),
        Some(rest) => format!("{DOLLAR}{}", rest.replace('.', POINT)),
    })
}

/// A JSON document in its natural form.
pub(super) struct Natural {
    /// A document with one field, which holds it.
    wrapped: RawDocumentBuf,
    /// Whether the text has something that this form has not.
    pub(super) loses: bool,
}

impl Natural {
    /// The natural form of a JSON text; nothing where the text is none.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut writer = Writer::with_capacity(text.len() * 2);
        writer.write(text)?;
        let loses = writer.renames || writer.repeats;
        if writer.repeats {
            let value = serde_json::from_str(text).ok()?;
            writer = Writer::with_capacity(text.len() * 2);
            writer.write(&without_repeats(value).to_string())?;
        }
        let wrapped = RawDocumentBuf::from_bytes(writer.bytes).ok()?;
        Some(Self { wrapped, loses })
    }

    pub(super) fn value(&self) -> Option<RawBsonRef<'_>> {
        let (_, value) = self.wrapped.iter().next()?.ok()?;
        Some(value)
    }

    pub(super) fn len(&self) -> usize {
        self.wrapped.as_bytes().len()
    }
}

/// The value with keys as they stand in the natural form, each once.
fn without_repeats(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_repeats).collect(),
        Value::Object(fields) => {
            let renamed = |(key, value): (String, Value)| {
                (natural_key(&key).into_owned(), without_repeats(value))
            };
            Value::Object(fields.into_iter().map(renamed).collect())
        }
        leaf => leaf,
    }
}

/// Writes BSON while JSON is parsed, without anything in between.
struct Writer {
    bytes: Vec<u8>,
    /// Where the keys stand of the objects that are not complete yet.
    keys: Vec<(usize, usize)>,
    /// Whether a key got a look-alike.
    renames: bool,
    /// Whether a key is there twice in one object.
    repeats: bool,
}

impl Writer {
    fn with_capacity(capacity: usize) -> Self {
        let bytes = Vec::with_capacity(capacity);
        Self { bytes, keys: Vec::new(), renames: false, repeats: false }
    }

    /// A document with one field of an empty name; nothing where the text is no JSON.
    fn write(&mut self, text: &str) -> Option<()> {
        let document = self.open();
        let field = Field { of: self.bytes.len(), writer: self };
        field.writer.bytes.extend([0, 0]);
        let mut json = serde_json::Deserializer::from_str(text);
        field.deserialize(&mut json).and_then(|()| json.end()).ok()?;
        self.close(document);
        Some(())
    }

    /// Begins a document or an array, whose length is known in the end.
    fn open(&mut self) -> usize {
        self.bytes.extend([0; 4]);
        self.bytes.len() - 4
    }

    fn close(&mut self, start: usize) {
        self.bytes.push(0);
        let length = i32::try_from(self.bytes.len() - start).unwrap_or(i32::MAX);
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// Forgets the keys of an object that is complete, having looked whether
    /// one is there twice.
    fn forget_keys(&mut self, first: usize) {
        let key = |&(start, end): &(usize, usize)| &self.bytes[start..end];
        let keys = &mut self.keys[first..];
        if !keys.is_sorted_by(|a, b| key(a) < key(b)) {
            keys.sort_unstable_by(|a, b| key(a).cmp(key(b)));
            self.repeats |= keys.windows(2).any(|pair| key(&pair[0]) == key(&pair[1]));
        }
        self.keys.truncate(first);
    }
}

/// A field whose value is to come: its type stands before its name, and is
/// filled in when the value comes.
struct Field<'a> {
    writer: &'a mut Writer,
    of: usize,
}

impl Field<'_> {
    fn put(self, of: ElementType, value: &[u8]) {
        self.writer.bytes[self.of] = of as u8;
        self.writer.bytes.extend_from_slice(value);
    }
}

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Field<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.put(ElementType::Null, &[]);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.put(ElementType::Boolean, &[value.into()]);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        match i32::try_from(value) {
            Ok(short) => self.put(ElementType::Int32, &short.to_le_bytes()),
            Err(_) => self.put(ElementType::Int64, &value.to_le_bytes()),
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        if let Ok(value) = i64::try_from(value) {
            return self.visit_i64(value);
        }
        let decimal = ZERO_DECIMAL | u128::from(value);
        self.put(ElementType::Decimal128, &decimal.to_le_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.put(ElementType::Double, &value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        let length = i32::try_from(value.len() + 1).unwrap_or(i32::MAX);
        let bytes = &mut self.writer.bytes;
        bytes[self.of] = ElementType::String as u8;
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let writer = self.writer;
        writer.bytes[self.of] = ElementType::Array as u8;
        let array = writer.open();
        for index in 0.. {
            let of = writer.bytes.len();
            // A Vec takes whatever it is given.
            let _ = write!(writer.bytes, "\0{index}\0");
            let item = Field { writer: &mut *writer, of };
            if items.next_element_seed(item)?.is_none() {
                writer.bytes.truncate(of);
                break;
            }
        }
        writer.close(array);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let writer = self.writer;
        writer.bytes[self.of] = ElementType::EmbeddedDocument as u8;
        let (object, first) = (writer.open(), writer.keys.len());
        while let Some(of) = fields.next_key_seed(Key { writer: &mut *writer })? {
            fields.next_value_seed(Field { writer: &mut *writer, of })?;
        }
        writer.forget_keys(first);
        writer.close(object);
        Ok(())
    }
}

/// The key that is to come. It yields where the type of its field stands.
struct Key<'a> {
    writer: &'a mut Writer,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<usize, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<usize, E> {
        let writer = self.writer;
        let of = writer.bytes.len();
        let natural = natural_key(key);
        writer.renames |= matches!(natural, Cow::Owned(_));
        writer.bytes.push(0);
        writer.bytes.extend_from_slice(natural.as_bytes());
        writer.keys.push((of + 1, writer.bytes.len()));
        writer.bytes.push(0);
        Ok(of)
    }
}

//! The natural form back as JSON text.

use mongodb::bson::raw::RawElement;
use mongodb::bson::{RawArray, RawBsonRef, RawDocument};
use serde::Serialize;

use super::natural::ZERO_DECIMAL;

/// How deep arrays and objects are nested at most in what Rheo writes.
const MOST_DEPTH: usize = 64;

/// Why a value is none that Rheo wrote. It tells nothing of the value itself.
pub(super) type Strange = &'static str;

pub(super) const DAMAGED: Strange = "it is no BSON";

/// Appends the JSON text of a field's value.
pub(super) fn write(text: &mut Vec<u8>, field: &RawElement<'_>) -> Result<(), Strange> {
    value(text, field, 0)
}

fn value(text: &mut Vec<u8>, field: &RawElement<'_>, depth: usize) -> Result<(), Strange> {
    match field.value().map_err(|_| DAMAGED)? {
        RawBsonRef::Null => leaf(text, &()),
        RawBsonRef::Boolean(value) => leaf(text, &value),
        RawBsonRef::Int32(value) => leaf(text, &value),
        RawBsonRef::Int64(value) => leaf(text, &value),
        RawBsonRef::Decimal128(value) => leaf(text, &integer(value.bytes())?),
        RawBsonRef::Double(value) if value.is_finite() => leaf(text, &value),
        RawBsonRef::String(value) => leaf(text, value),
        RawBsonRef::Array(items) if depth < MOST_DEPTH => array(text, items, depth + 1),
        RawBsonRef::Document(fields) if depth < MOST_DEPTH => object(text, fields, depth + 1),
        RawBsonRef::Array(_) | RawBsonRef::Document(_) => Err("it is nested too deep"),
        _ => Err("it holds what is not in JSON"),
    }
}

fn array(text: &mut Vec<u8>, items: &RawArray, depth: usize) -> Result<(), Strange> {
    text.push(b'[');
    for (index, item) in items.iter_elements().enumerate() {
        separate(text, index);
        value(text, &item.map_err(|_| DAMAGED)?, depth)?;
    }
    text.push(b']');
    Ok(())
}

fn object(text: &mut Vec<u8>, fields: &RawDocument, depth: usize) -> Result<(), Strange> {
    text.push(b'{');
    for (index, field) in fields.iter_elements().enumerate() {
        separate(text, index);
        let field = field.map_err(|_| DAMAGED)?;
        leaf(text, field.key().as_str())?;
        text.push(b':');
        value(text, &field, depth)?;
    }
    text.push(b'}');
    Ok(())
}

fn separate(text: &mut Vec<u8>, index: usize) {
    if index > 0 {
        text.push(b',');
    }
}

fn leaf<T: Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) -> Result<(), Strange> {
    serde_json::to_writer(text, value).map_err(|_| "it holds what is not in JSON")
}

/// The integer in a Decimal128: one that no Int64 could hold.
fn integer(bytes: [u8; 16]) -> Result<u64, Strange> {
    let bits = u128::from_le_bytes(bytes);
    let integer = u64::try_from(bits ^ ZERO_DECIMAL).ok();
    let large = integer.filter(|&integer| i64::try_from(integer).is_err());
    large.ok_or("it holds a decimal that Rheo does not write")
}

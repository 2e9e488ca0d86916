//! Events as rows: how they are read, and how JSON is written where the
//! database keeps numbers its own way.

use std::borrow::Cow;

use rheo_core::{Event, EventBody, EventParts, Position, Result, StreamName, Timestamp};

use crate::Dialect;
use crate::db::Row;
use crate::error::Failure;

/// The event in a row, whose columns begin at `offset`.
///
/// # Errors
/// `Corrupt` where they hold something else.
pub(crate) fn event(row: &Row, offset: usize, stream: &StreamName) -> Result<Event, Failure> {
    let position = Position::new(row.u32(offset)?, row.u64(offset + 1)?);
    let event_type = row.text(offset + 4)?;
    let key = row.opt_text(offset + 5)?;
    let metadata = row.text(offset + 6)?;
    let payload = row.text(offset + 7)?;
    let body = EventBody::from_store(&EventParts {
        id: row.uuid(offset + 2)?,
        timestamp: Timestamp::from_micros(row.int(offset + 3)?),
        event_type: &event_type,
        key: key.as_deref(),
        metadata: &metadata,
        payload: &payload,
    })?;
    Ok(Event::new(stream.clone(), position, body))
}

/// JSON text as the database is to keep it.
pub(crate) fn document(dialect: Dialect, text: &str) -> Cow<'_, str> {
    match dialect {
        #[cfg(feature = "postgres")]
        Dialect::Postgres => jsonb_text(text),
        #[cfg(any(feature = "sqlite", feature = "mysql"))]
        _ => Cow::Borrowed(text),
    }
}

/// The longest number with a point that no shorter one could stand for: two
/// decimals of 15 digits are two floats.
#[cfg(feature = "postgres")]
const EXACT_DECIMAL_LENGTH: usize = 16;

/// JSON text for a `jsonb` column.
///
/// There a number is a decimal, which forgets whether it was written with an
/// exponent: `1e16` would come back as an integer. So a float is written out,
/// and always as the shortest decimal that it has: equal floats are equal
/// decimals then, and the database's comparison finds them.
#[cfg(feature = "postgres")]
pub(crate) fn jsonb_text(text: &str) -> Cow<'_, str> {
    let mut written = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(&byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => at += string_length(&text[at..]),
            b'0'..=b'9' | b'-' => {
                let number = number_at(&text[at..]);
                if let Some(plain) = plain_float(number) {
                    written.push_str(&text[copied..at]);
                    written.push_str(&plain);
                    copied = at + number.len();
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    written.push_str(&text[copied..]);
    Cow::Owned(written)
}

/// How long the string is that `text` begins with, its quotes included.
#[cfg(feature = "postgres")]
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(feature = "postgres")]
fn number_at(text: &str) -> &str {
    let in_number = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
    text.split_once(|c| !in_number(c)).map_or(text, |(number, _)| number)
}

/// The float written out, where a decimal would not be the same as it stands.
#[cfg(feature = "postgres")]
fn plain_float(number: &str) -> Option<String> {
    let changes = number.contains(['e', 'E'])
        || number == "-0"
        || number.contains('.') && number.len() > EXACT_DECIMAL_LENGTH;
    if !changes {
        return None;
    }
    let mut plain = number.parse::<f64>().ok()?.to_string();
    if !plain.contains('.') {
        plain.push_str(".0");
    }
    Some(plain)
}

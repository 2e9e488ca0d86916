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

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Number, Value, json};

    use super::*;

    /// A number token as a decimal holds it: whether it has a point, and its
    /// digits without the zeros that say nothing.
    fn decimal(number: &str) -> (bool, String) {
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let negative = whole.starts_with('-');
        let whole = whole.trim_start_matches(['-', '0']);
        let fraction = fraction.trim_end_matches('0');
        let is_zero = whole.is_empty() && fraction.is_empty();
        let sign = if negative && !is_zero { "-" } else { "" };
        (number.contains('.'), format!("{sign}{whole}.{fraction}"))
    }

    #[test]
    fn floats_are_written_out_and_nothing_else_changes() {
        let table = [
            ("1e16", "10000000000000000.0"),
            ("[1e+16,-1E3]", "[10000000000000000.0,-1000.0]"),
            (r#"{"1e3":"1e3\"1e3","x":2.5e-7}"#, r#"{"1e3":"1e3\"1e3","x":0.00000025}"#),
            ("0.1000000000000000055", "0.1"),
            ("-0", "-0.0"),
        ];
        for (text, expected) in table {
            assert_eq!(jsonb_text(text), expected);
        }
        for same in ["", "0", "-0.0", "18446744073709551615", r#"{"a":[1.50,"é\\"]}"#, "\"1e3"] {
            assert!(matches!(jsonb_text(same), Cow::Borrowed(_)), "{same}");
        }
    }

    /// Decimals near one another, spelled in many ways.
    fn spelled_float() -> impl Strategy<Value = String> {
        let short =
            (-20..20_i64, 0..4_usize).prop_map(|(n, zeros)| format!("{n}.{}5", "0".repeat(zeros)));
        let long =
            (0..40_u64, 14..20_usize).prop_map(|(last, digits)| format!("0.1{last:0digits$}"));
        let any = any::<f64>().prop_filter("finite", |float| float.is_finite());
        let any = any.prop_map(|float| json!(float).to_string());
        let near_two_pow_53 = (-4..4_i64).prop_map(|n| format!("{}.0", 9_007_199_254_740_992 + n));
        prop_oneof![short, long, any, near_two_pow_53]
    }

    fn number() -> impl Strategy<Value = Number> {
        let float = any::<f64>().prop_filter_map("finite", Number::from_f64);
        prop_oneof![any::<i64>().prop_map(Number::from), any::<u64>().prop_map(Number::from), float]
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            number().prop_map(Value::Number),
            any::<String>().prop_map(Value::String),
            "[-0-9eE.\"\\\\]{0,8}".prop_map(Value::String),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array);
            let fields = proptest::collection::vec(("[a-z0-9.\"]{0,4}", inner), 0..4);
            let object = fields.prop_map(|fields| Value::Object(fields.into_iter().collect()));
            prop_oneof![list, object]
        })
    }

    proptest! {
        #[test]
        fn documents_keep_their_meaning(value in json()) {
            let text = value.to_string();
            let written: Value = serde_json::from_str(&jsonb_text(&text)).unwrap();
            prop_assert_eq!(written, value);
        }

        /// As decimals they are as equal as they are as floats, and floats still.
        #[test]
        fn equal_floats_are_equal_decimals(a in spelled_float(), b in spelled_float()) {
            let (a_float, b_float): (f64, f64) = (a.parse().unwrap(), b.parse().unwrap());
            let (a, b) = (decimal(&jsonb_text(&a)), decimal(&jsonb_text(&b)));
            prop_assert!(a.0 && b.0);
            prop_assert_eq!(a.1 == b.1, a_float == b_float);
        }
    }
}

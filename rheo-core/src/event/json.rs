//! JSON text as Rheo keeps it: compact, and holding only what every store can hold.

use serde::Serialize;
use serde_json::Value;

/// The deepest that arrays and objects may be nested.
pub(crate) const MAX_DEPTH: usize = 64;

/// The longest that an f64 is printed without an exponent.
const MAX_DECIMAL_LENGTH: usize = 24;

/// What the scan of a text found.
#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// It is as Rheo writes it.
    Plain,
    /// It holds white space, an exponent, a very long number or an escaped
    /// surrogate, as raw JSON may: to be written anew from its value, if it has one.
    Unusual,
}

/// Encodes a value as compact JSON text.
///
/// # Errors
/// A sentence that says why no store could hold it.
pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
    let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    match scan(&text)? {
        Finding::Plain => Ok(text),
        Finding::Unusual => rewrite(&text),
    }
}

/// Checks a text that comes from a store.
///
/// # Errors
/// A sentence that says why Rheo cannot have written it.
pub(crate) fn check(text: &str) -> Result<(), String> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| error.to_string())?;
    if scan(text)? == Finding::Unusual {
        rewrite(text)?;
    }
    Ok(())
}

fn rewrite(text: &str) -> Result<String, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| error.to_string())
}

/// One pass over a text that is JSON already.
fn scan(text: &str) -> Result<Finding, String> {
    let bytes = text.as_bytes();
    let mut finding = Finding::Plain;
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = scan_string(bytes, at, &mut finding)?,
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(format!("it is nested deeper than {MAX_DEPTH}"));
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' | b'\t' | b'\n' | b'\r' => finding = Finding::Unusual,
            b'0'..=b'9' | b'-' => {
                let number = number_at(&text[at - 1..]);
                if !is_plain_number(number) {
                    finding = Finding::Unusual;
                }
                at += number.len() - 1;
            }
            _ => {}
        }
    }
    Ok(finding)
}

fn number_at(text: &str) -> &str {
    let in_number = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
    text.split_once(|c| !in_number(c)).map_or(text, |(number, _)| number)
}

fn is_plain_number(number: &str) -> bool {
    if number.contains(['e', 'E']) {
        return false;
    }
    if number.contains('.') {
        return number.len() <= MAX_DECIMAL_LENGTH;
    }
    number.len() <= 15 || number.parse::<u64>().is_ok() || number.parse::<i64>().is_ok()
}

/// From behind a string's opening quote to behind its closing one.
fn scan_string(bytes: &[u8], mut at: usize, finding: &mut Finding) -> Result<usize, String> {
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' if bytes[at..].starts_with(b"\\u0000") => {
                return Err("a string in it holds the character U+0000".into());
            }
            b'\\' => {
                if matches!(bytes.get(at + 1..at + 3), Some(b"ud" | b"uD")) {
                    *finding = Finding::Unusual;
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn what_every_store_holds_is_encoded_compactly() {
        assert_eq!(
            encode(&json!({"a": [1, 2.5, "x\\u0000"]})).unwrap(),
            r#"{"a":[1,2.5,"x\\u0000"]}"#
        );
        for number in ["18446744073709551615", "-9223372036854775808", "1e+16", "0.1", "5e-324"] {
            let value: Value = serde_json::from_str(number).unwrap();
            let text = encode(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }

    #[test]
    fn nul_and_deep_nesting_are_refused() {
        assert!(encode(&"a\0b").unwrap_err().contains("U+0000"));
        assert!(encode(&json!({"a\0": 1})).is_err());
        assert!(encode(&nested(MAX_DEPTH)).is_ok());
        assert!(encode(&nested(MAX_DEPTH + 1)).unwrap_err().contains("64"));
    }

    #[test]
    fn text_from_a_store_is_checked() {
        assert!(check(r#"{ "a": 1 }"#).is_ok());
        for wrong in ["", "{", "1e400", "\"\\u0000\""] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn raw_json_is_written_anew() {
        let raw = RawValue::from_string(r#"{ "a" : 18446744073709551616 }"#.into()).unwrap();
        let written: Value = serde_json::from_str(&encode(&raw).unwrap()).unwrap();
        assert_eq!(written, json!({"a": 18_446_744_073_709_551_616.0}));
        let raw = RawValue::from_string(r#""\ud83e\udd80""#.into()).unwrap();
        assert_eq!(encode(&raw).unwrap(), "\"🦀\"");
        for no_value in ["1e400", r#""\ud800""#, r#"{"\uDC00":1}"#] {
            let raw = RawValue::from_string(no_value.into()).unwrap();
            assert!(encode(&raw).is_err(), "{no_value}");
            assert!(check(no_value).is_err(), "{no_value}");
        }
    }
}

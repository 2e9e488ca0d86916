//! The values of the options in a URL.

use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// Something in the URL, in an option or in the store's setup is wrong: an
/// error of the kind `Config`.
#[must_use]
pub fn config(context: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, "connect", context)
}

/// A whole number.
///
/// # Errors
/// `Config` where the value is something else.
pub fn number(key: &str, value: &str) -> Result<u32> {
    value.parse().map_err(|_| config(format!("{key}={value}: a number is wanted")))
}

/// A time in milliseconds.
///
/// # Errors
/// `Config` where the value is no number.
pub fn millis(key: &str, value: &str) -> Result<Duration> {
    Ok(Duration::from_millis(number(key, value)?.into()))
}

/// `on` or `off`, or `true` or `false`.
///
/// # Errors
/// `Config` where the value is something else.
pub fn switch(key: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(config(format!("{key}={value}: on or off is wanted"))),
    }
}

/// The text that is written with `%` and hexadecimal digits in a URL, or none
/// where it is not written so, or is not UTF-8.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push(u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_or_refused_by_name() {
        assert_eq!(number("most", "8").unwrap(), 8);
        assert_eq!(millis("poll_ms", "50").unwrap(), Duration::from_millis(50));
        assert!(switch("wake", "on").unwrap() && !switch("wake", "false").unwrap());
        let told = |error: Error| {
            assert_eq!((error.kind(), error.operation()), (ErrorKind::Config, "connect"));
            error.context().to_string()
        };
        assert_eq!(told(number("most", "-1").unwrap_err()), "most=-1: a number is wanted");
        let late = millis("poll_ms", "soon").unwrap_err();
        assert_eq!(told(late), "poll_ms=soon: a number is wanted");
        let doubtful = switch("wake", "maybe").unwrap_err();
        assert_eq!(told(doubtful), "wake=maybe: on or off is wanted");
    }

    #[test]
    fn texts_are_decoded_or_refused() {
        assert_eq!(decoded("a%3Ab%c3%a9+").unwrap(), "a:bé+");
        for strange in ["%", "%4", "%+4", "%zz", "%ff"] {
            assert_eq!(decoded(strange), None, "{strange}");
        }
    }
}

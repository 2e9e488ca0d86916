//! When two values are equal, and which of them comes first.
//!
//! Equality is by value and deep. Only two numbers, or two strings, have an order.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// The least power of two that is no `i128`.
const TWO_POW_127: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) enum Comparand<'a> {
    /// A string.
    Text(&'a str),
    /// A number.
    Number(Exact),
    /// Null, a boolean, an array or an object.
    Other(&'a Value),
}

impl<'a> From<&'a Value> for Comparand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::Number(number.into()),
            other => Self::Other(other),
        }
    }
}

impl PartialEq for Comparand<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => a == b,
            (Self::Other(a), Self::Other(b)) => same(a, b),
            _ => false,
        }
    }
}

impl PartialOrd for Comparand<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    Comparand::from(a) == Comparand::from(b)
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => same_fields(a, b),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

fn same_fields(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let in_b =
        |(name, value): (&String, &Value)| b.get(name).is_some_and(|other| equal(value, other));
    a.len() == b.len() && a.iter().all(in_b)
}

/// A number by its value: one value has one form, however it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Exact {
    /// An integer that an `i128` holds, be it written as a float.
    Integer(i128),
    /// A fraction, or an integer beyond. Not a number, and so equal to
    /// nothing, where not even an `f64` holds it.
    Float(f64),
}

impl From<&Number> for Exact {
    fn from(number: &Number) -> Self {
        if let Some(integer) = number.as_i64() {
            Self::Integer(integer.into())
        } else if let Some(integer) = number.as_u64() {
            Self::Integer(integer.into())
        } else {
            number.as_f64().unwrap_or(f64::NAN).into()
        }
    }
}

impl From<f64> for Exact {
    fn from(float: f64) -> Self {
        if float.fract() == 0.0 && float.abs() < TWO_POW_127 {
            Self::Integer(float as i128)
        } else {
            Self::Float(float)
        }
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Integer(a), Self::Float(b)) => order(*a, *b),
            (Self::Float(a), Self::Integer(b)) => order(*b, *a).map(Ordering::reverse),
        }
    }
}

/// The two are never equal: the float is a fraction, which lies above its
/// floor, or is beyond every integer here, and then the cast stops at the end.
fn order(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let below = integer <= float.floor() as i128;
    Some(if below { Ordering::Less } else { Ordering::Greater })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn compare(a: &Value, b: &Value) -> Option<Ordering> {
        Comparand::from(a).partial_cmp(&Comparand::from(b))
    }

    #[test]
    fn equality_is_by_value_and_deep() {
        let two_pow_64 = json!(18_446_744_073_709_551_616.0);
        let table = [
            (json!(1), json!(1.0), true),
            (json!(0), json!(-0.0), true),
            (json!(1), json!("1"), false),
            (json!(1), json!(true), false),
            (json!(0), json!(false), false),
            (json!(u64::MAX), two_pow_64.clone(), false),
            (json!(i64::MAX), json!(9_223_372_036_854_775_808.0), false),
            (json!(i64::MIN), json!(-9_223_372_036_854_775_808.0), true),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0), false),
            (two_pow_64.clone(), two_pow_64, true),
            (json!("a"), json!("a"), true),
            (json!("a"), json!("A"), false),
            (json!("é"), json!("e\u{301}"), false),
            (json!(null), json!(null), true),
            (json!(null), json!(false), false),
            (json!([1, "a"]), json!([1.0, "a"]), true),
            (json!([1, 2]), json!([2, 1]), false),
            (json!([1]), json!(1), false),
            (json!([1]), json!([1, 1]), false),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1}), true),
            (json!({"a": 1}), json!({"a": 1, "b": null}), false),
            (json!({"a": null}), json!({"b": null}), false),
            (json!({}), json!([]), false),
        ];
        for (a, b, expected) in table {
            assert_eq!(equal(&a, &b), expected, "{a} and {b}");
            assert_eq!(equal(&b, &a), expected, "{b} and {a}");
        }
    }

    #[test]
    fn only_two_numbers_or_two_strings_have_an_order() {
        let table = [
            (json!(1), json!(1.5), Some(Ordering::Less)),
            (json!(-1), json!(-1.5), Some(Ordering::Greater)),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0), Some(Ordering::Less)),
            (json!(u64::MAX), json!(1e300), Some(Ordering::Less)),
            (json!(i64::MIN), json!(-1e300), Some(Ordering::Greater)),
            (json!(0), json!(5e-324), Some(Ordering::Less)),
            (json!("B"), json!("a"), Some(Ordering::Less)),
            (json!("a"), json!("a "), Some(Ordering::Less)),
            (json!("\u{ffff}"), json!("\u{10000}"), Some(Ordering::Less)),
            (json!(1), json!("2"), None),
            (json!(null), json!(null), None),
            (json!(false), json!(true), None),
            (json!([1]), json!([2]), None),
            (json!({}), json!({}), None),
        ];
        for (a, b, expected) in table {
            assert_eq!(compare(&a, &b), expected, "{a} and {b}");
            assert_eq!(compare(&b, &a), expected.map(Ordering::reverse), "{b} and {a}");
        }
    }

    /// Numbers of every kind, many of them close to one another.
    fn number() -> impl Strategy<Value = Value> {
        let edge = prop_oneof![
            Just(0.0),
            Just(9_007_199_254_740_992.0),
            Just(9_223_372_036_854_775_808.0),
            Just(18_446_744_073_709_551_616.0),
            Just(TWO_POW_127),
            (-9i32..9).prop_map(f64::from),
        ];
        let near = (edge, 0..5usize, any::<bool>()).prop_map(|(edge, step, negative)| {
            let float = [edge, edge.next_up(), edge.next_down(), edge + 0.5, edge * 2.0][step];
            json!(if negative { -float } else { float })
        });
        prop_oneof![
            any::<i64>().prop_map(|integer| json!(integer)),
            any::<u64>().prop_map(|integer| json!(integer)),
            (-9i64..9).prop_map(|integer| json!(integer)),
            (0..9u64).prop_map(|less| json!(u64::MAX - less)),
            ((1u64 << 53) - 4..(1 << 53) + 4).prop_map(|integer| json!(integer)),
            ((1u64 << 63) - 4..(1 << 63) + 4).prop_map(|integer| json!(integer)),
            any::<i64>().prop_map(|integer| json!(integer as f64)),
            any::<f64>()
                .prop_filter("finite", |float| float.is_finite())
                .prop_map(|float| json!(float)),
            near,
        ]
    }

    /// A number and others, of which many equal it or lie next to it.
    fn neighbours() -> impl Strategy<Value = [Value; 3]> {
        let step = |from: &Value, other: Value, step| {
            let float = from.as_f64().unwrap();
            match step {
                0 => json!(float),
                1 => json!(float.next_up()),
                2 => json!(float.next_down()),
                3 => json!(float as i64),
                4 => json!(float as u64),
                _ => other,
            }
        };
        (number(), number(), number(), 0..8, 0..8).prop_map(move |(a, b, c, to_b, to_c)| {
            let b = step(&a, b, to_b);
            let c = step(&b, c, to_c);
            [a, b, c]
        })
    }

    fn integer(value: &Value) -> Option<i128> {
        value.as_i64().map(i128::from).or(value.as_u64().map(i128::from))
    }

    /// An integer against a float taken apart into `mantissa × 2^exponent`.
    fn exactly(integer: i128, float: f64) -> Ordering {
        let bits = float.to_bits();
        let (fraction, biased) = ((bits & ((1 << 52) - 1)) as i128, (bits >> 52 & 0x7ff) as i32);
        let (mantissa, exponent) =
            if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        let mantissa = if float.is_sign_negative() { -mantissa } else { mantissa };
        match exponent {
            ..-62 => (integer << 1).cmp(&mantissa.signum()),
            -62..0 => (integer << -exponent).cmp(&mantissa),
            0..=73 => integer.cmp(&(mantissa << exponent)),
            74.. => 0.cmp(&mantissa),
        }
    }

    proptest! {
        #[test]
        fn numbers_compare_as_exact_arithmetic_does([a, b, _] in neighbours()) {
            let expected = match (integer(&a), integer(&b)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (Some(a), None) => exactly(a, b.as_f64().unwrap()),
                (None, Some(b)) => exactly(b, a.as_f64().unwrap()).reverse(),
                (None, None) => a.as_f64().partial_cmp(&b.as_f64()).unwrap(),
            };
            prop_assert_eq!(compare(&a, &b), Some(expected));
            prop_assert_eq!(compare(&b, &a), Some(expected.reverse()));
            prop_assert_eq!(equal(&a, &b), expected.is_eq());
        }

        #[test]
        fn numbers_have_one_order([a, b, c] in neighbours()) {
            let mut sorted = [&a, &b, &c];
            sorted.sort_by(|a, b| compare(a, b).unwrap());
            prop_assert!(compare(sorted[0], sorted[2]).unwrap().is_le());
            prop_assert!(compare(sorted[0], sorted[1]).unwrap().is_le());
            prop_assert!(compare(sorted[1], sorted[2]).unwrap().is_le());
        }
    }
}

//! What a condition on metadata or payload says about the natural form of JSON,
//! in terms that MongoDB can check. Whatever meets the condition meets these.
//!
//! MongoDB compares as the matcher does: numbers by value across their types,
//! strings by their bytes, and only within a kind. Beyond that it also finds
//! arrays of which a member meets the condition, and for null what is missing.
//! Objects it compares field by field in their order, which means nothing in
//! JSON: they are not compared there.

use mongodb::bson::{Bson, Document, doc};
use rheo_core::Condition;
use serde_json::{Number, Value};

use crate::codec::{LINEAGE_BYTES, LINEAGE_KEYS};

/// The longest list that MongoDB is asked to check.
const LONGEST_LIST: usize = 256;

/// What a field in the natural form is asked; nothing, where no event at all
/// can meet the condition.
pub(super) fn test(condition: &Condition) -> Option<Document> {
    let (operator, value) = match condition {
        Condition::Exists => return Some(exists()),
        Condition::In(values) => return Some(one_of(values)),
        Condition::Equals(value) => return Some(one_of(std::slice::from_ref(value))),
        Condition::Less(value) => ("$lt", value),
        Condition::LessOrEqual(value) => ("$lte", value),
        Condition::Greater(value) => ("$gt", value),
        Condition::GreaterOrEqual(value) => ("$gte", value),
    };
    let ordered = value.is_number() || value.is_string();
    ordered.then(|| natural(value).map_or_else(exists, |value| doc! { operator: value }))
}

/// Whether an index finds all that meets the condition, on metadata: a short
/// string under a lineage key stands there however large the metadata are.
pub(super) fn is_indexed(path: &[String], condition: &Condition) -> bool {
    let values = match condition {
        Condition::Equals(value) => std::slice::from_ref(value),
        Condition::In(values) => values,
        _ => return false,
    };
    let is_short = |text: &str| text.len() <= LINEAGE_BYTES;
    matches!(path, [key] if LINEAGE_KEYS.contains(&key.as_str()))
        && values.iter().all(|value| value.as_str().is_some_and(is_short))
}

fn exists() -> Document {
    doc! { "$exists": true }
}

fn one_of(values: &[Value]) -> Document {
    let natural = || values.iter().map(natural).collect::<Option<Vec<_>>>();
    let values = if values.len() <= LONGEST_LIST { natural() } else { None };
    match values.as_deref() {
        Some([value]) => doc! { "$eq": value },
        Some(values) => doc! { "$in": values },
        None => exists(),
    }
}

/// A value as it stands in the natural form, where it can be compared there.
fn natural(value: &Value) -> Option<Bson> {
    match value {
        Value::Null => Some(Bson::Null),
        Value::Bool(value) => Some(Bson::Boolean(*value)),
        Value::Number(number) => natural_number(number),
        Value::String(text) => Some(text.as_str().into()),
        Value::Array(items) => items.iter().map(natural).collect::<Option<_>>().map(Bson::Array),
        Value::Object(_) => None,
    }
}

fn natural_number(number: &Number) -> Option<Bson> {
    if let Some(integer) = number.as_i64() {
        Some(integer.into())
    } else if let Some(integer) = number.as_u64() {
        integer.to_string().parse().map(Bson::Decimal128).ok()
    } else {
        number.as_f64().map(Bson::Double)
    }
}

#[cfg(test)]
mod tests {
    use Condition::{Equals, Exists, Greater, In, Less};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_compares_alike_is_asked() {
        let table = [
            (Exists, doc! { "$exists": true }),
            (Equals(json!("a")), doc! { "$eq": "a" }),
            (Equals(json!(null)), doc! { "$eq": null }),
            (Equals(json!([1, [2.5, true]])), doc! { "$eq": [1_i64, [2.5, true]] }),
            (In(vec![json!(1), json!("1")]), doc! { "$in": [1_i64, "1"] }),
            (Less(json!(1)), doc! { "$lt": 1_i64 }),
            (Greater(json!("a")), doc! { "$gt": "a" }),
        ];
        for (condition, expected) in table {
            assert_eq!(test(&condition), Some(expected), "{condition:?}");
        }
        let largest = test(&Equals(json!(u64::MAX))).unwrap();
        assert_eq!(largest.get("$eq").unwrap().to_string(), u64::MAX.to_string());
    }

    #[test]
    fn what_compares_otherwise_is_left_to_the_filters() {
        let long = In(vec![json!(1); LONGEST_LIST + 1]);
        for condition in [Equals(json!({})), Equals(json!([{"a": 1}])), long] {
            assert_eq!(test(&condition), Some(exists()), "{condition:?}");
        }
        for never in [Less(json!(null)), Greater(json!([1])), Less(json!({})), Greater(json!(true))]
        {
            assert_eq!(test(&never), None, "{never:?}");
        }
    }

    #[test]
    fn an_index_finds_short_strings_of_the_lineage() {
        let producer = ["producer".to_owned()];
        let (short, long) = (json!("shop"), json!("x".repeat(LINEAGE_BYTES + 1)));
        assert!(is_indexed(&producer, &Equals(short.clone())));
        assert!(is_indexed(&producer, &In(vec![short.clone(), json!("")])));
        assert!(!is_indexed(&producer, &In(vec![short.clone(), json!(1)])));
        assert!(!is_indexed(&producer, &Equals(long)));
        assert!(!is_indexed(&producer, &Greater(short.clone())));
        assert!(!is_indexed(&["other".to_owned()], &Equals(short)));
    }
}

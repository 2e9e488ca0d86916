//! What a condition on metadata or payload says about the JSON itself, in terms
//! that a database can check. Whatever meets the condition meets these.

use rheo_core::Condition;
use serde_json::Value;

/// The values to compare with, where the condition is that one of them is equal.
fn equals_one_of(condition: &Condition) -> Option<&[Value]> {
    match condition {
        Condition::Equals(value) => Some(std::slice::from_ref(value)),
        Condition::In(values) => Some(values),
        _ => None,
    }
}

/// The integers below it, and none of them twice, are floats too.
#[cfg(feature = "postgres")]
const TWO_POW_53: f64 = 9_007_199_254_740_992.0;

/// Documents of which one is contained in whatever meets the condition, in
/// PostgreSQL's sense; none where an index of contents could not find them.
#[cfg(feature = "postgres")]
pub(crate) fn contained(path: &[String], condition: &Condition) -> Option<Vec<String>> {
    let values = equals_one_of(condition)?;
    if !values.iter().all(|value| has_leaf(value) && has_only_safe_numbers(value)) {
        return None;
    }
    let within = |value: &Value| {
        let wrap =
            |value, key: &String| Value::Object([(key.clone(), value)].into_iter().collect());
        path.iter().rev().fold(value.clone(), wrap).to_string()
    };
    Some(values.iter().map(within).collect())
}

/// A path of PostgreSQL that leads somewhere in whatever meets the condition.
#[cfg(feature = "postgres")]
pub(crate) fn json_path(path: &[String], condition: &Condition) -> String {
    let keys: String = path.iter().map(|key| format!(".{}", Value::from(key.as_str()))).collect();
    let (operator, value) = match condition {
        Condition::Less(value) => ("<", value),
        Condition::LessOrEqual(value) => ("<=", value),
        Condition::Greater(value) => (">", value),
        Condition::GreaterOrEqual(value) => (">=", value),
        Condition::Equals(_) | Condition::In(_) | Condition::Exists => return format!("${keys}"),
    };
    let ordered = value.is_string() || value.is_number() && has_only_safe_numbers(value);
    if ordered { format!("${keys} ? (@ {operator} {value})") } else { format!("${keys}") }
}

/// Whether anything in it can be looked up: empty arrays and objects cannot.
#[cfg(feature = "postgres")]
fn has_leaf(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_leaf),
        Value::Object(fields) => fields.values().any(has_leaf),
        _ => true,
    }
}

/// Whether its numbers compare with others as decimals just as they do by
/// value. Large floats do not: written out, they end in zeros not their own.
#[cfg(feature = "postgres")]
fn has_only_safe_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|float| float.abs() < TWO_POW_53),
        Value::Array(items) => items.iter().all(has_only_safe_numbers),
        Value::Object(fields) => fields.values().all(has_only_safe_numbers),
        _ => true,
    }
}

/// Pieces of text, of which one of each list is in the text of whatever meets
/// the condition, unless there is a backslash in it.
///
/// The log holds JSON without any space, so a key, its colon and what follows
/// are neighbours; and what is written in more than one way, numbers apart, is
/// written with a backslash.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) fn pieces(path: &[String], condition: &Condition) -> Vec<Vec<String>> {
    let label = |key: &String| format!("{}:", Value::from(key.as_str()));
    let Some((last, above)) = path.split_last() else {
        let values = equals_one_of(condition).unwrap_or_default();
        return vec![values.iter().map(beginning).collect()];
    };
    let mut pieces: Vec<_> = above.iter().map(|key| vec![format!("{}{{", label(key))]).collect();
    pieces.push(match equals_one_of(condition) {
        Some(values) => values.iter().map(|value| label(last) + &beginning(value)).collect(),
        None => vec![label(last)],
    });
    pieces
}

/// How its text begins, in every way to write it without a backslash.
#[cfg(any(feature = "sqlite", feature = "mysql"))]
fn beginning(value: &Value) -> String {
    match value {
        Value::Number(_) => String::new(),
        Value::Array(items) if !items.is_empty() => "[".into(),
        Value::Object(fields) if !fields.is_empty() => "{".into(),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use Condition::{Equals, Exists, In};
    use serde_json::json;

    use super::*;

    fn path(keys: &[&str]) -> Vec<String> {
        keys.iter().map(|&key| key.into()).collect()
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_index_looks_for_documents() {
        let a_b = path(&["a", "b.c"]);
        let found = |condition| contained(&a_b, &condition);
        assert_eq!(found(Equals(json!("x"))), Some(vec![r#"{"a":{"b.c":"x"}}"#.into()]));
        let two = vec![r#"{"a":{"b.c":1.0}}"#.into(), r#"{"a":{"b.c":[null]}}"#.into()];
        assert_eq!(found(In(vec![json!(1.0), json!([null])])), Some(two));
        for not_found in [json!({}), json!([[]]), json!(9_007_199_254_740_992_u64), json!([1e300])]
        {
            assert_eq!(found(In(vec![json!(1), not_found])), None);
        }
        assert_eq!(found(Condition::Greater(json!(1))), None);
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn a_path_leads_to_what_compares() {
        let a_b = path(&["a", "b\"c"]);
        let leads = |condition| json_path(&a_b, &condition);
        assert_eq!(leads(Exists), r#"$."a"."b\"c""#);
        assert_eq!(leads(Condition::Greater(json!(1.5))), r#"$."a"."b\"c" ? (@ > 1.5)"#);
        assert_eq!(leads(Condition::Greater(json!("x"))), r#"$."a"."b\"c" ? (@ > "x")"#);
        assert_eq!(leads(Condition::Greater(json!(1e300))), leads(Exists));
        assert_eq!(leads(Condition::Greater(json!([1]))), leads(Exists));
    }

    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    #[test]
    fn pieces_are_in_the_text() {
        let a_b = path(&["a", "b"]);
        let table = [
            (Equals(json!("x")), vec![vec![r#""a":{"#], vec![r#""b":"x""#]]),
            (Equals(json!(1)), vec![vec![r#""a":{"#], vec![r#""b":"#]]),
            (
                In(vec![json!(true), json!({"c": 1})]),
                vec![vec![r#""a":{"#], vec![r#""b":true"#, r#""b":{"#]],
            ),
            (Exists, vec![vec![r#""a":{"#], vec![r#""b":"#]]),
        ];
        for (condition, expected) in table {
            assert_eq!(pieces(&a_b, &condition), expected, "{condition:?}");
        }
        assert_eq!(pieces(&[], &Equals(json!("x"))), [[r#""x""#]]);
        assert_eq!(pieces(&[], &Exists), [[""; 0]]);
    }
}

//! [`Filter`]: one condition on one field of an event, and the matcher that
//! defines what it means.

use std::cell::OnceCell;

use serde_json::Value;
use uuid::Uuid;

use super::compare::{Comparand, Exact};
use super::{Condition, Field};
use crate::event::json::{self, MAX_DEPTH};
use crate::{Error, Event, Result, Timestamp};

/// One condition on one field of an event.
///
/// ```
/// use rheo_core::{Condition, Field, Filter, Query};
///
/// let expensive = Filter::new(Field::payload(["order", "total"]), Condition::Greater(100.into()));
/// let query = Query::new().event_type("order.placed").filter(expensive);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    field: Field,
    condition: Condition,
    /// On the timestamp: the condition on its microseconds, read once.
    on_micros: Option<Condition>,
}

impl Filter {
    /// A condition on a field.
    ///
    /// Ids and timestamps are taken in every way to write them, and compared
    /// by what they mean. A value that fits its field in no way (an id that is
    /// no UUID, a timestamp that is no RFC 3339 text) makes the query `Invalid`.
    #[must_use]
    pub fn new(field: Field, condition: Condition) -> Self {
        let (condition, on_micros) = match field {
            Field::Id => (condition.map(in_lower_case), None),
            Field::Timestamp => (condition.map(in_utc), Some(condition.map(in_micros))),
            _ => (condition, None),
        };
        Self { field, condition, on_micros }
    }

    /// The field.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The condition. Ids in it are lower-case hyphenated text, timestamps
    /// RFC 3339 text in UTC.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Whether the condition holds for `event`.
    ///
    /// This is the definition (Q3): what a backend leaves to its store must
    /// come to the same.
    #[must_use]
    pub fn matches(&self, event: &Event) -> bool {
        self.holds(&Documents::of(event))
    }

    /// Whether all of `filters` hold for `event`. Metadata and payload are
    /// parsed once at most, and only where everything else holds.
    #[must_use]
    pub fn matches_all(filters: &[Self], event: &Event) -> bool {
        let documents = Documents::of(event);
        let all = |parsing: bool| {
            filters
                .iter()
                .filter(|filter| filter.field.path().is_some() == parsing)
                .all(|filter| filter.holds(&documents))
        };
        all(false) && all(true)
    }

    fn holds(&self, documents: &Documents<'_>) -> bool {
        let event = documents.event;
        let text = |text| self.condition.holds(Comparand::Text(text));
        let number = |condition: &Condition, number: i128| {
            condition.holds(Comparand::Number(Exact::Integer(number)))
        };
        let part = |document: &Value, path: &[String]| {
            part(document, path).is_some_and(|value| self.condition.holds(value.into()))
        };
        match &self.field {
            Field::Id => {
                let id = event.id().hyphenated();
                text(id.encode_lower(&mut Uuid::encode_buffer()))
            }
            Field::Type => text(event.event_type()),
            Field::Key => event.key().is_some_and(text),
            Field::Partition => number(&self.condition, event.partition().into()),
            Field::Sequence => number(&self.condition, event.sequence().into()),
            Field::Timestamp => {
                let condition = self.on_micros.as_ref().unwrap_or(&self.condition);
                number(condition, event.timestamp().as_micros().into())
            }
            Field::Metadata(path) => part(documents.metadata(), path),
            Field::Payload(path) => part(documents.payload(), path),
        }
    }

    /// Whether the values are of a kind that the field can hold.
    ///
    /// # Errors
    /// `Invalid`, with the rule that is broken.
    pub(super) fn validate(&self) -> Result<()> {
        let invalid = |why: &str| Err(Error::invalid("query", format!("a filter on the {why}")));
        let values = self.condition.values();
        match &self.field {
            Field::Id if !values.iter().all(|value| uuid(value).is_some()) => {
                invalid("id compares with UUID text")
            }
            Field::Timestamp if !values.iter().all(|value| instant(value).is_some()) => {
                invalid("timestamp compares with RFC 3339 text such as 2026-03-15T12:00:00Z")
            }
            Field::Partition if !values.iter().all(Value::is_number) => {
                invalid("partition compares with numbers")
            }
            Field::Sequence if !values.iter().all(Value::is_number) => {
                invalid("sequence compares with numbers")
            }
            field => {
                check_path(field.path().unwrap_or_default())?;
                values.iter().try_for_each(check_value)
            }
        }
    }
}

/// An event whose metadata and payload are parsed when they are first needed.
struct Documents<'a> {
    event: &'a Event,
    metadata: OnceCell<Value>,
    payload: OnceCell<Value>,
}

impl<'a> Documents<'a> {
    fn of(event: &'a Event) -> Self {
        Self { event, metadata: OnceCell::new(), payload: OnceCell::new() }
    }

    fn metadata(&self) -> &Value {
        self.metadata.get_or_init(|| self.event.metadata().into())
    }

    fn payload(&self) -> &Value {
        self.payload.get_or_init(|| self.event.payload())
    }
}

fn part<'a>(document: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(document, |value, key| value.as_object()?.get(key))
}

fn uuid(value: &Value) -> Option<Uuid> {
    Uuid::parse_str(value.as_str()?).ok()
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn in_lower_case(value: &Value) -> Value {
    uuid(value).map_or_else(|| value.clone(), |id| id.hyphenated().to_string().into())
}

fn in_utc(value: &Value) -> Value {
    instant(value).map_or_else(|| value.clone(), |instant| instant.to_string().into())
}

/// What is no instant becomes null, which no number equals.
fn in_micros(value: &Value) -> Value {
    instant(value).map(Timestamp::as_micros).into()
}

fn check_path(path: &[String]) -> Result<()> {
    if path.len() > MAX_DEPTH {
        let context = format!("the path of a filter has more than {MAX_DEPTH} keys");
        return Err(Error::invalid("query", context));
    }
    if path.iter().any(|key| key.contains('\0')) {
        let context = "the path of a filter holds the character U+0000";
        return Err(Error::invalid("query", context));
    }
    Ok(())
}

/// No event holds what an event cannot hold.
fn check_value(value: &Value) -> Result<()> {
    let invalid = |why| Error::invalid("query", format!("the value of a filter: {why}"));
    json::encode(value).map(drop).map_err(invalid)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Condition::{Equals, Exists, Greater, GreaterOrEqual, In, Less, LessOrEqual};
    use super::*;
    use crate::{ErrorKind, EventBody, EventParts, Position, StreamName};

    const ID: &str = "018f4d3a-9a7b-7c3e-8a51-0123456789ab";
    const NOON: &str = "2026-03-15T12:00:00.000001Z";

    fn event(key: Option<&str>, metadata: &str, payload: &str) -> Event {
        let body = EventBody::assemble(&EventParts {
            id: ID.parse().unwrap(),
            timestamp: NOON.parse().unwrap(),
            event_type: "order.placed",
            key,
            metadata,
            payload,
        });
        Event::new(StreamName::new("orders").unwrap(), Position::new(3, 17), body)
    }

    fn matches(filter: &Filter) -> bool {
        let payload = r#"{
            "n": 2, "s": "b", "null": null, "list": [1, {"a": 1}], "deep": {"a": {"b": 2.5}},
            "a.b": "dot", "": "empty", "$x": "dollar"
        }"#;
        let event = event(Some("k"), r#"{"producer": "shop", "a": {"b": 1}}"#, payload);
        filter.matches(&event)
    }

    #[test]
    fn fields_outside_the_documents() {
        let check = |field: Field, table: &[(Condition, bool)]| {
            for (condition, expected) in table {
                let filter = Filter::new(field.clone(), condition.clone());
                assert_eq!(matches(&filter), *expected, "{filter:?}");
            }
        };
        let id = [
            (Equals(json!(ID)), true),
            (Equals(json!(ID.to_uppercase())), true),
            (In(vec![json!(ID.replace('-', ""))]), true),
            (Equals(json!(Uuid::nil().to_string())), false),
            (Greater(json!("018F4D3A-9A7B-7C3E-8A51-0123456789AA")), true),
        ];
        check(Field::Id, &id);
        let event_type = [
            (Equals(json!("order.placed")), true),
            (Equals(json!("Order.placed")), false),
            (In(vec![json!("x"), json!("order.placed")]), true),
            (In(vec![]), false),
        ];
        check(Field::Type, &event_type);
        let key =
            [(Equals(json!("k")), true), (GreaterOrEqual(json!("k ")), false), (Exists, true)];
        check(Field::Key, &key);
        let partition = [(Equals(json!(3.0)), true), (Equals(json!("3")), false)];
        check(Field::Partition, &partition);
        let sequence = [
            (Greater(json!(16.5)), true),
            (Less(json!(17)), false),
            (LessOrEqual(json!(17)), true),
        ];
        check(Field::Sequence, &sequence);
        let timestamp = [
            (Equals(json!(NOON)), true),
            (Equals(json!("2026-03-15T13:00:00.000001+01:00")), true),
            (In(vec![json!("2026-03-15T12:00:00Z"), json!(NOON)]), true),
            (Greater(json!("2026-03-15T12:00:00Z")), true),
            (Less(json!("2026-03-15T12:00:00.5Z")), true),
            (GreaterOrEqual(json!("2026-03-15T12:00:00.000002Z")), false),
            (Exists, true),
            (Equals(json!("noon")), false),
        ];
        check(Field::Timestamp, &timestamp);
    }

    #[test]
    fn parts_of_the_documents() {
        let table: [(&[&str], Condition, bool); 25] = [
            (&["n"], Equals(json!(2.0)), true),
            (&["n"], Less(json!("3")), false),
            (&["n"], Less(json!(2.5)), true),
            (&["s"], Greater(json!("a")), true),
            (&["s"], Greater(json!(1)), false),
            (&["null"], Equals(json!(null)), true),
            (&["null"], Exists, true),
            (&["null"], LessOrEqual(json!(null)), false),
            (&["missing"], Equals(json!(null)), false),
            (&["missing"], Exists, false),
            (&["missing"], Less(json!(1)), false),
            (&["list"], Equals(json!([1.0, {"a": 1}])), true),
            (&["list"], Equals(json!(1)), false),
            (&["list"], In(vec![json!(1), json!([1])]), false),
            (&["list", "0"], Exists, false),
            (&["list", "a"], Exists, false),
            (&["deep", "a", "b"], Equals(json!(2.5)), true),
            (&["deep"], Equals(json!({"a": {"b": 2.5}})), true),
            (&["deep"], GreaterOrEqual(json!({"a": {"b": 2.5}})), false),
            (&["n", "x"], Exists, false),
            (&["a", "b"], Exists, false),
            (&["a.b"], Equals(json!("dot")), true),
            (&[""], Equals(json!("empty")), true),
            (&["$x"], Equals(json!("dollar")), true),
            (&[], Exists, true),
        ];
        for (path, condition, expected) in table {
            let filter = Filter::new(Field::payload(path.to_vec()), condition);
            assert_eq!(matches(&filter), expected, "{filter:?}");
        }
        let within = Filter::new(Field::metadata(["a", "b"]), Equals(json!(1)));
        let whole = json!({"a": {"b": 1}, "producer": "shop"});
        let whole = Filter::new(Field::Metadata(vec![]), Equals(whole));
        assert!(matches(&within) && matches(&whole));
    }

    #[test]
    fn an_absent_key_meets_no_condition() {
        let (without, empty) = (event(None, "{}", "1"), event(Some(""), "{}", "1"));
        for condition in [Exists, Equals(json!("")), LessOrEqual(json!(""))] {
            let filter = Filter::new(Field::Key, condition);
            assert!(!filter.matches(&without) && filter.matches(&empty), "{filter:?}");
        }
        assert!(!Filter::new(Field::Key, Equals(json!(null))).matches(&without));
    }

    #[test]
    fn all_filters_must_hold() {
        let event = event(None, "{}", r#"{"n": 1}"#);
        let right = Filter::new(Field::payload(["n"]), Equals(json!(1)));
        let wrong = Filter::new(Field::Sequence, Equals(json!(1)));
        assert!(Filter::matches_all(&[], &event));
        assert!(Filter::matches_all(&[right.clone(), right.clone()], &event));
        assert!(!Filter::matches_all(&[right.clone(), wrong.clone()], &event));
        assert!(!Filter::matches_all(&[wrong, right], &event));
    }

    #[test]
    fn values_are_told_in_one_form() {
        let told = |field, value: &str| {
            Filter::new(field, Equals(json!(value))).condition().values()[0].clone()
        };
        assert_eq!(told(Field::Id, &ID.to_uppercase()), json!(ID));
        assert_eq!(told(Field::Timestamp, "2026-03-15T13:00:00.000001+01:00"), json!(NOON));
        assert_eq!(
            told(Field::Key, "2026-03-15T13:00:00+01:00"),
            json!("2026-03-15T13:00:00+01:00")
        );
    }

    #[test]
    fn what_no_event_can_meet_by_kind_is_invalid() {
        let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let refused = [
            (Field::Id, Equals(json!("7")), "UUID"),
            (Field::Id, In(vec![json!(ID), json!(7)]), "UUID"),
            (Field::Timestamp, Less(json!("2026-03-15 noon")), "RFC 3339"),
            (Field::Timestamp, Less(json!(0)), "RFC 3339"),
            (Field::Partition, Equals(json!("0")), "partition compares with numbers"),
            (Field::Sequence, Greater(json!(null)), "sequence compares with numbers"),
            (Field::Key, Equals(json!("a\0b")), "U+0000"),
            (Field::payload(["a"]), In(vec![json!({"\0": 1})]), "U+0000"),
            (Field::metadata(["a\0"]), Exists, "U+0000"),
            (Field::payload(["a"]), Equals(nested(65)), "64"),
            (Field::payload(vec!["a"; 65]), Exists, "64"),
        ];
        for (field, condition, reason) in refused {
            let error = Filter::new(field, condition).validate().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.context().contains(reason), "{error}");
        }
        let accepted = [
            (Field::Id, Exists),
            (Field::Timestamp, In(vec![])),
            (Field::Sequence, Less(json!(1.5))),
            (Field::payload(["a"]), Equals(nested(64))),
            (Field::payload(vec!["a"; 64]), Exists),
        ];
        for (field, condition) in accepted {
            Filter::new(field, condition).validate().unwrap();
        }
    }
}

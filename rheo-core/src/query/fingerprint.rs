//! What a cursor remembers of its stream and its query: a hash of each.
//!
//! Both are the same in every process and with every compiler. To change what
//! is hashed is to change the cursor's format.

use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use super::compare::Exact;
use super::{Condition, Field, Filter, Order, Query};
use crate::backend::{Partitions, StreamRef};

/// The fingerprint of a stream: its name and how many partitions it has.
pub(super) fn of_stream(stream: &StreamRef) -> u64 {
    let mut canonical = Canonical::default();
    canonical.text(stream.name.as_str());
    canonical.number(stream.partitions.into());
    xxh3_64(&canonical.0)
}

/// The fingerprint of a query, without its limit: pages may differ in size.
pub(super) fn of_query(query: &Query) -> u64 {
    let mut canonical = Canonical::default();
    match &query.partitions {
        Partitions::All => canonical.tag(0),
        Partitions::Only(partitions) => {
            canonical.tag(1);
            canonical.list(partitions, |canonical, &partition| canonical.number(partition.into()));
        }
    }
    canonical.number(query.after);
    canonical.number(query.until);
    canonical.tag(match query.order {
        Order::Ascending => 0,
        Order::Descending => 1,
    });
    canonical.list(&query.filters, Canonical::filter);
    xxh3_64(&canonical.0)
}

/// Bytes that are equal exactly where what was written is equal: tags and
/// lengths go before everything of more than one kind or size.
#[derive(Default)]
struct Canonical(Vec<u8>);

impl Canonical {
    fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|item| write(self, item));
    }

    fn filter(&mut self, filter: &Filter) {
        self.tag(match filter.field() {
            Field::Id => 0,
            Field::Type => 1,
            Field::Key => 2,
            Field::Partition => 3,
            Field::Sequence => 4,
            Field::Timestamp => 5,
            Field::Metadata(_) => 6,
            Field::Payload(_) => 7,
        });
        let path = filter.field().path().unwrap_or_default();
        self.list(path, |canonical, key| canonical.text(key));
        self.tag(match filter.condition() {
            Condition::Equals(_) => 0,
            Condition::In(_) => 1,
            Condition::Less(_) => 2,
            Condition::LessOrEqual(_) => 3,
            Condition::Greater(_) => 4,
            Condition::GreaterOrEqual(_) => 5,
            Condition::Exists => 6,
        });
        self.list(filter.condition().values(), Self::value);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.tag(0),
            Value::Bool(false) => self.tag(1),
            Value::Bool(true) => self.tag(2),
            Value::Number(number) => self.exact(number.into()),
            Value::String(text) => {
                self.tag(5);
                self.text(text);
            }
            Value::Array(items) => {
                self.tag(6);
                self.list(items, Self::value);
            }
            Value::Object(fields) => {
                self.tag(7);
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|&(name, _)| name);
                self.list(&fields, |canonical, (name, value)| {
                    canonical.text(name);
                    canonical.value(value);
                });
            }
        }
    }

    fn exact(&mut self, number: Exact) {
        match number {
            Exact::Integer(integer) => {
                self.tag(3);
                self.0.extend(integer.to_le_bytes());
            }
            Exact::Float(float) => {
                self.tag(4);
                self.0.extend(float.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::StreamName;

    /// Golden values: should one of these change, every cursor kept somewhere would be lost.
    #[test]
    fn fingerprints_never_change() {
        let query = Query::new()
            .event_types(["a", "b"])
            .partitions([2, 0])
            .since("2026-03-15T12:00:00Z".parse().unwrap())
            .payload("p", json!({"b": [1, 1.5, u64::MAX, true, null], "a": "x"}))
            .filter(Filter::new(Field::metadata(["m", "n"]), Condition::Exists))
            .descending();
        let stream = StreamRef { name: StreamName::new("orders").unwrap(), partitions: 4 };
        let found = [of_stream(&stream), of_query(&Query::new()), of_query(&query)];
        let golden =
            [18_324_557_408_272_772_993, 1_391_884_419_880_715_562, 2_755_235_767_198_269_525];
        assert_eq!(found, golden);
    }

    #[test]
    fn equal_values_have_equal_fingerprints() {
        let of = |value| of_query(&Query::new().payload("p", value));
        assert_eq!(of(json!({"a": 1, "b": -0.0})), of(json!({"b": 0, "a": 1.0})));
    }

    #[test]
    fn different_queries_have_different_fingerprints() {
        let filter = |field, condition| Query::new().filter(Filter::new(field, condition));
        let queries = [
            Query::new(),
            Query::new().descending(),
            Query::new().after_sequence(1),
            Query::new().until_sequence(1),
            Query::new().partitions([]),
            Query::new().partition(1),
            Query::new().key("k"),
            Query::new().event_type("k"),
            Query::new().event_types(["k"]),
            Query::new().event_types(["k", ""]),
            Query::new().event_types(["", "k"]),
            Query::new().metadata("a", "b"),
            Query::new().payload("a", "b"),
            Query::new().payload("ab", ""),
            Query::new().payload("a", 1),
            Query::new().payload("a", "1"),
            Query::new().payload("a", 1.5),
            Query::new().payload("a", json!([])),
            Query::new().payload("a", json!({})),
            Query::new().payload("a", json!([[], []])),
            Query::new().payload("a", json!([[[]]])),
            Query::new().payload("a", Value::Null),
            Query::new().payload("a", true),
            Query::new().payload("a", false),
            filter(Field::payload(["a", "b"]), Condition::Exists),
            filter(Field::payload(["a.b"]), Condition::Exists),
            filter(Field::payload(["a"]), Condition::Less(1.into())),
            filter(Field::payload(["a"]), Condition::Greater(1.into())),
        ];
        let mut fingerprints: Vec<_> = queries.iter().map(of_query).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(fingerprints.len(), queries.len());
    }
}

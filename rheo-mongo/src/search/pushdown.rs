//! [`Asked`]: what of a search's filters MongoDB is asked to check.
//!
//! It is asked for all that matches, and perhaps for more: the filters
//! themselves decide. So a condition may stand here only where whatever matches
//! meets it.

use mongodb::bson::{Bson, Document, doc};
use rheo_core::adapter::Bounds;
use rheo_core::{Condition, Field, Filter, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::codec;
use crate::search::content;

/// How long all conditions together may be: the question has to fit into one
/// document.
const MOST_BYTES: usize = 1024 * 1024;

/// What MongoDB is asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) partitions: Bounds,
    pub(super) sequences: Bounds,
    /// The instant before which nothing matches.
    pub(super) since: Option<Timestamp>,
    /// Whether nothing matches at all.
    pub(super) nothing: bool,
    /// Whether MongoDB finds no more than what matches.
    pub(super) exact: bool,
    /// Conditions on events, which all have to hold.
    pub(super) conditions: Vec<Document>,
    /// How long they are together.
    pub(super) bytes: usize,
}

impl Asked {
    pub(super) fn of(filters: &[Filter]) -> Self {
        let mut asked = Self {
            partitions: Bounds::default(),
            sequences: Bounds::default(),
            since: None,
            nothing: false,
            exact: true,
            conditions: Vec::new(),
            bytes: 0,
        };
        filters.iter().for_each(|filter| asked.add(filter));
        asked
    }

    fn add(&mut self, filter: &Filter) {
        let condition = filter.condition();
        self.nothing |= matches!(condition, Condition::In(values) if values.is_empty());
        match filter.field() {
            Field::Id => self.compare("id", condition, id),
            Field::Type => self.compare("type", condition, text),
            Field::Key => self.compare("key", condition, text),
            Field::Timestamp => {
                self.since = self.since.max(earliest(condition));
                self.compare("timestamp", condition, micros);
            }
            Field::Partition => self.partitions = self.partitions.and(self.bounds(condition)),
            Field::Sequence => self.sequences = self.sequences.and(self.bounds(condition)),
            Field::Metadata(path) => self.look_into("metadata", path, condition),
            Field::Payload(path) => self.look_into("payload", path, condition),
        }
    }

    fn bounds(&mut self, condition: &Condition) -> Bounds {
        self.exact &= !matches!(condition, Condition::In(_));
        Bounds::of(condition)
    }

    /// A condition on a field of its own. A value that is none for the field
    /// equals nothing there, and is neither less nor greater.
    fn compare(&mut self, field: &str, condition: &Condition, value: fn(&Value) -> Option<Bson>) {
        let (operator, operand) = match condition {
            Condition::Exists => ("$exists", Some(true.into())),
            Condition::In(values) => {
                let values: Vec<_> = values.iter().filter_map(value).collect();
                ("$in", (!values.is_empty()).then(|| values.into()))
            }
            Condition::Equals(operand) => ("$eq", value(operand)),
            Condition::Less(operand) => ("$lt", value(operand)),
            Condition::LessOrEqual(operand) => ("$lte", value(operand)),
            Condition::Greater(operand) => ("$gt", value(operand)),
            Condition::GreaterOrEqual(operand) => ("$gte", value(operand)),
        };
        match operand {
            Some(operand) => self.ask(doc! { field: { operator: operand } }),
            None => self.nothing = true,
        }
    }

    fn look_into(&mut self, document: &str, path: &[String], condition: &Condition) {
        self.exact = false;
        let Some(test) = content::test(condition) else {
            self.nothing = true;
            return;
        };
        if path.iter().all(|key| codec::is_natural_key(key)) {
            let field = path.iter().fold(document.to_owned(), |path, key| path + "." + key);
            let test = doc! { field: test };
            let by_index = document == "metadata" && content::is_indexed(path, condition);
            let either = |test| doc! { "$or": [test, left_out(document)] };
            self.ask(if by_index { test } else { either(test) });
        }
    }

    /// Adds a condition, unless the question gets too long.
    fn ask(&mut self, condition: Document) {
        let bytes = condition.to_vec().map_or(MOST_BYTES, |bytes| bytes.len()) + self.bytes;
        if bytes < MOST_BYTES {
            self.bytes = bytes;
            self.conditions.push(condition);
        } else {
            self.exact = false;
        }
    }
}

/// The events of which this is too large for its natural form, and perhaps
/// others: for all of them the filters read the exact text.
fn left_out(document: &str) -> Document {
    let mut left_out = codec::left_out(document);
    if document == "payload" {
        // What stands there in a natural form with an exact text is no null.
        left_out.insert(document, Bson::Null);
    }
    left_out
}

fn id(value: &Value) -> Option<Bson> {
    let id = Uuid::parse_str(value.as_str()?).ok()?;
    Some(codec::binary(id).into())
}

fn text(value: &Value) -> Option<Bson> {
    value.as_str().map(Bson::from)
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

fn micros(value: &Value) -> Option<Bson> {
    Some(instant(value)?.as_micros().into())
}

/// The earliest instant that meets the condition.
fn earliest(condition: &Condition) -> Option<Timestamp> {
    match condition {
        Condition::Equals(value) | Condition::Greater(value) | Condition::GreaterOrEqual(value) => {
            instant(value)
        }
        Condition::In(values) => values.iter().filter_map(instant).min(),
        _ => None,
    }
}

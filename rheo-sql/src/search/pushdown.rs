//! [`Asked`]: what of a search's filters the database is asked to check.
//!
//! It is asked for all that matches, and perhaps for more: the filters
//! themselves decide. So a condition may stand here only where whatever matches
//! meets it. Values are arguments, and lists are filled up to a power of two,
//! so that there are few statements to prepare.

use std::fmt::Write;

use rheo_core::adapter::Bounds;
use rheo_core::{Condition, Field, Filter, Timestamp};
use serde_json::Value;
use uuid::Uuid;

use crate::Dialect;
use crate::db::Arg;
use crate::search::content;

/// The longest list that the database is asked to check.
const LONGEST_LIST: usize = 64;

/// What the database is asked.
#[derive(Debug)]
pub(crate) struct Asked {
    dialect: Dialect,
    pub(crate) partitions: Bounds,
    pub(crate) sequences: Bounds,
    /// The instant before which nothing matches.
    pub(crate) since: Option<Timestamp>,
    /// Whether nothing matches at all.
    pub(crate) nothing: bool,
    /// Whether the database finds no more than what matches.
    pub(crate) exact: bool,
    /// Conditions on the event `e`, each with AND before it.
    pub(crate) conditions: String,
    /// Further ones, that an index of contents can serve.
    #[cfg(feature = "postgres")]
    pub(crate) by_index: String,
    /// The same, written so that it cannot.
    pub(crate) by_reading: String,
    /// The arguments of the conditions, of which the first is `$2`.
    pub(crate) args: Vec<Arg>,
}

impl Asked {
    pub(crate) fn of(filters: &[Filter], dialect: Dialect) -> Self {
        let mut asked = Self {
            dialect,
            partitions: Bounds::default(),
            sequences: Bounds::default(),
            since: None,
            nothing: false,
            exact: true,
            conditions: String::new(),
            #[cfg(feature = "postgres")]
            by_index: String::new(),
            by_reading: String::new(),
            args: Vec::new(),
        };
        let (contents, columns): (Vec<_>, Vec<_>) = filters
            .iter()
            .partition(|filter| matches!(filter.field(), Field::Metadata(_) | Field::Payload(_)));
        // What is cheap to check comes first.
        columns.into_iter().chain(contents).for_each(|filter| asked.add(filter));
        asked
    }

    fn add(&mut self, filter: &Filter) {
        let condition = filter.condition();
        self.nothing |= matches!(condition, Condition::In(values) if values.is_empty());
        match filter.field() {
            Field::Id => self.compare("e.id", condition, id),
            Field::Type => self.compare("e.type", condition, text),
            Field::Key => self.compare(r#"e."key""#, condition, text),
            Field::Timestamp => {
                self.since = self.since.max(earliest(condition));
                self.compare("e.timestamp", condition, |value| {
                    Some(instant(value)?.as_micros().into())
                });
            }
            Field::Partition => self.partitions = self.partitions.and(self.bounds(condition)),
            Field::Sequence => self.sequences = self.sequences.and(self.bounds(condition)),
            Field::Metadata(path) => self.look_into("e.metadata", path, condition),
            Field::Payload(path) => self.look_into("e.payload", path, condition),
        }
    }

    fn bounds(&mut self, condition: &Condition) -> Bounds {
        self.exact &= !matches!(condition, Condition::In(_));
        Bounds::of(condition)
    }

    /// A condition on a column. A value that is none for the column equals
    /// nothing there, and is neither less nor greater.
    fn compare(&mut self, column: &str, condition: &Condition, arg: fn(&Value) -> Option<Arg>) {
        let (operator, value) = match condition {
            Condition::Exists => {
                let _ = write!(self.conditions, " AND {column} IS NOT NULL");
                return;
            }
            Condition::In(values) => {
                self.compare_with_list(column, values.iter().filter_map(arg).collect());
                return;
            }
            Condition::Equals(value) => ("=", value),
            Condition::Less(value) => ("<", value),
            Condition::LessOrEqual(value) => ("<=", value),
            Condition::Greater(value) => (">", value),
            Condition::GreaterOrEqual(value) => (">=", value),
        };
        match arg(value) {
            Some(value) => {
                let value = self.bind(value);
                let condition = format!("{column} {operator} {value}");
                let condition = match self.dialect {
                    // Else it walks the primary key rather than an index that narrows more.
                    #[cfg(feature = "sqlite")]
                    Dialect::Sqlite if operator == "=" => format!("unlikely({condition})"),
                    _ => condition,
                };
                let _ = write!(self.conditions, " AND {condition}");
            }
            None => self.nothing = true,
        }
    }

    fn compare_with_list(&mut self, column: &str, values: Vec<Arg>) {
        self.nothing |= values.is_empty();
        self.exact &= values.len() <= LONGEST_LIST;
        if let Some(list) = self.bind_list(values) {
            let _ = write!(self.conditions, " AND {column} IN ({})", list.join(", "));
        }
    }

    fn look_into(&mut self, column: &str, path: &[String], condition: &Condition) {
        self.exact = false;
        match self.dialect {
            #[cfg(feature = "postgres")]
            Dialect::Postgres => self.look_into_jsonb(column, path, condition),
            #[cfg(any(feature = "sqlite", feature = "mysql"))]
            _ => self.look_into_text(column, path, condition),
        }
    }

    #[cfg(feature = "postgres")]
    fn look_into_jsonb(&mut self, column: &str, path: &[String], condition: &Condition) {
        let contained = content::contained(path, condition).unwrap_or_default();
        let contained = contained.into_iter().map(Arg::Text).collect();
        if let Some(documents) = self.bind_list(contained) {
            let any = |contains: &dyn Fn(&String) -> String| {
                documents.iter().map(contains).collect::<Vec<_>>().join(" OR ")
            };
            let by_index = any(&|document| format!("{column} @> {document}::jsonb"));
            let by_reading =
                any(&|document| format!("jsonb_contains({column}, {document}::jsonb)"));
            let _ = write!(self.by_index, " AND ({by_index})");
            let _ = write!(self.by_reading, " AND ({by_reading})");
        } else {
            let path = self.bind(content::json_path(path, condition).into());
            let _ = write!(self.conditions, " AND jsonb_path_exists({column}, {path}::jsonpath)");
        }
    }

    #[cfg(any(feature = "sqlite", feature = "mysql"))]
    fn look_into_text(&mut self, column: &str, path: &[String], condition: &Condition) {
        for pieces in content::pieces(path, condition) {
            if pieces.iter().any(String::is_empty) {
                continue;
            }
            let pieces = pieces.into_iter().map(Arg::Text).collect();
            let Some(pieces) = self.bind_list(pieces) else { continue };
            let backslash = self.bind("\\".into());
            let has = |piece: &String| format!("INSTR({column}, {piece}) > 0");
            let any = pieces.iter().chain([&backslash]).map(has).collect::<Vec<_>>().join(" OR ");
            let _ = write!(self.conditions, " AND ({any})");
        }
    }

    /// Adds an argument, and returns how the statement names it.
    fn bind(&mut self, arg: Arg) -> String {
        self.args.push(arg);
        format!("${}", self.args.len() + 1)
    }

    /// Adds the arguments of a list, unless there are none or too many. The
    /// last is repeated until their number is a power of two.
    fn bind_list(&mut self, mut values: Vec<Arg>) -> Option<Vec<String>> {
        let last = values.last()?.clone();
        if values.len() > LONGEST_LIST {
            return None;
        }
        values.resize(values.len().next_power_of_two(), last);
        Some(values.into_iter().map(|value| self.bind(value)).collect())
    }
}

fn id(value: &Value) -> Option<Arg> {
    Uuid::parse_str(value.as_str()?).ok().map(Arg::Uuid)
}

fn text(value: &Value) -> Option<Arg> {
    value.as_str().map(Arg::from)
}

fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
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

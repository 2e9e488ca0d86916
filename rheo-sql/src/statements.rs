//! [`Statements`]: the SQL, written once and adapted to each dialect.
//!
//! The texts lie in `common/*.sql`; a statement that a dialect says otherwise
//! stands under the same name in that dialect's folder. A text names its
//! statements by lines `-- name: …`. It is standard SQL with PostgreSQL's `$1`
//! for arguments, `"quoted"` names where a dialect reserves the word, and these
//! marks:
//!
//! - `{p}`: what stands before every table's name, the schema included;
//! - `{n}`: the same without the schema, for names of indexes;
//! - `{for update}`: the row lock, where the dialect has rows to lock;
//! - `{skip locked}`: the same, leaving out rows that are locked already;
//! - `{now $1}`: the argument, or the store's time in microseconds where it is null;
//! - `{then}`: a join that goes from the rows before it to the table after it;
//! - `{uuid x}`: the 16 bytes of a UUID whose digits are in `x`, or its array;
//! - `{json $1}`: the argument as a document;
//! - `{event}`: the columns of an event, of the table `e`, as the codec reads them;
//! - `{list $1: a int, b text}`: the rows of a JSON array of objects, as table `x`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::Dialect;
use crate::config::Options;

/// What the names of Rheo's tables begin with.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// PostgreSQL's schema, where it is not the connection's own.
    pub(crate) schema: Option<String>,
    pub(crate) prefix: String,
}

impl Names {
    fn table_prefix(&self) -> String {
        match &self.schema {
            Some(schema) => format!("\"{schema}\".{}", self.prefix),
            None => self.prefix.clone(),
        }
    }
}

/// One statement, ready for its dialect.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) text: Arc<str>,
    /// Where arguments have no numbers: which one each mark stands for.
    pub(crate) order: Option<Arc<[usize]>>,
    /// Whether the connection keeps it prepared.
    pub(crate) kept: bool,
}

/// All statements of one dialect, by name.
#[derive(Debug)]
pub(crate) struct Statements {
    dialect: Dialect,
    names: Names,
    kept: bool,
    by_name: HashMap<&'static str, Statement>,
}

const COMMON: &[&str] = &[
    include_str!("common/append.sql"),
    include_str!("common/group.sql"),
    include_str!("common/inspect.sql"),
    include_str!("common/migrate.sql"),
    include_str!("common/read.sql"),
    include_str!("common/state.sql"),
    include_str!("common/stream.sql"),
];

impl Statements {
    /// The statements of a dialect, on the tables that the options name.
    pub(crate) fn new(dialect: Dialect, options: &Options) -> Self {
        let (names, kept) = (options.names.clone(), !options.transaction_pooling);
        let mut all = Self { dialect, names, kept, by_name: HashMap::new() };
        for file in COMMON.iter().chain(dialect.statements()) {
            for (name, text) in named(file) {
                let statement = all.adapt(text);
                all.by_name.insert(name, statement);
            }
        }
        all
    }

    /// The statement of this name, which is one of those in the files.
    pub(crate) fn get(&self, name: &'static str) -> Statement {
        self.by_name[name].clone()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Makes a statement of a text with marks.
    pub(crate) fn adapt(&self, text: &str) -> Statement {
        let text = self.fill_marks(text);
        if self.dialect.numbers_arguments() {
            return Statement { text: text.into(), order: None, kept: self.kept };
        }
        let (text, order) = without_numbers(&text.replace('"', "`"));
        Statement { text: text.into(), order: Some(order.into()), kept: self.kept }
    }

    fn fill_marks(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len() * 2);
        let mut rest = text;
        while let Some((before, mark)) = rest.split_once('{') {
            let (mark, after) = mark.split_once('}').unwrap_or((mark, ""));
            filled.push_str(before);
            filled.push_str(&self.meaning(mark));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    fn meaning(&self, mark: &str) -> String {
        match mark.split_once(' ') {
            None if mark == "n" => self.names.prefix.clone(),
            None if mark == "then" => self.dialect.join_in_order().into(),
            None if mark == "event" => self.dialect.event_columns(),
            None => self.names.table_prefix(),
            Some(("list", list)) => {
                let (argument, columns) = list.split_once(": ").unwrap_or((list, ""));
                let columns: Vec<_> =
                    columns.split(", ").filter_map(|column| column.split_once(' ')).collect();
                self.dialect.list(argument, &columns)
            }
            Some(("now", argument)) => self.dialect.now(argument),
            Some(("json", argument)) => self.dialect.document(argument),
            Some(("uuid", digits)) => self.dialect.uuid(digits),
            Some(("for", _)) => self.dialect.for_update().into(),
            Some(_) => self.dialect.skip_locked().into(),
        }
    }
}

/// The statements of a file, each with its name.
pub(crate) fn named(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("-- name: ")
        .skip(1)
        .filter_map(|part| part.split_once('\n'))
        .map(|(name, text)| (name.trim(), text.trim().trim_end_matches(';')))
}

/// Replaces `$1`, `$2`, … with question marks, and returns which came in turn.
fn without_numbers(text: &str) -> (String, Vec<usize>) {
    let mut order = Vec::new();
    let mut parts = text.split('$');
    let mut plain = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part[..digits].parse::<usize>() {
            Ok(number) => {
                order.push(number - 1);
                plain.push('?');
            }
            // The dollar of a JSON path.
            Err(_) => plain.push('$'),
        }
        plain.push_str(&part[digits..]);
    }
    (plain, order)
}

#[cfg(all(test, feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::Options;

    #[test]
    fn no_statement_hides_another() {
        let names = |files: &[&'static str]| -> Vec<_> {
            files.iter().flat_map(|file| named(file)).map(|(name, _)| name).collect()
        };
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql] {
            for names in [names(COMMON), names(dialect.statements())] {
                assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
            }
        }
    }

    #[test]
    fn no_mark_is_left() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql] {
            let statements = Statements::new(dialect, &Options::default());
            for (name, statement) in &statements.by_name {
                assert!(!statement.text.contains(['{', '}']), "{name}: {}", statement.text);
            }
        }
    }

    #[test]
    fn arguments_without_numbers_are_named_in_turn() {
        let statements = Statements::new(Dialect::MySql, &Options::default());
        let statement =
            statements.adapt(r#"SELECT "key", '$.a' FROM {p}t WHERE a = $2 AND b = $1"#);
        let text = "SELECT `key`, '$.a' FROM rheo_t WHERE a = ? AND b = ?";
        assert_eq!(&*statement.text, text);
        assert_eq!(statement.order.as_deref(), Some(&[1, 0][..]));
    }
}

//! [`Index`]: which events of a partition have a type, key or lineage value.
//!
//! It is kept by the hash of field and value, and so names candidates: two
//! values may share a hash, and the reference matcher has the last word.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

use rheo_core::{Condition, EventBody, Field, Filter};

/// The metadata fields that are indexed, where they are strings.
const LINEAGE: [&str; 5] =
    ["correlation_id", "causation_id", "producer", "schema", "schema_version"];

/// The most terms that one event has.
const MAX_TERMS: usize = 2 + LINEAGE.len();

/// The hash of an indexed field and a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Term(u64);

/// The terms of one event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    terms: [Term; MAX_TERMS],
    len: usize,
}

impl Terms {
    fn push(&mut self, term: Term) {
        self.terms[self.len] = term;
        self.len += 1;
    }

    fn as_slice(&self) -> &[Term] {
        &self.terms[..self.len]
    }
}

#[derive(Hash)]
enum Indexed<'a> {
    Type,
    Key,
    Metadata(&'a str),
}

/// Makes the terms of one stream; with a seed of its own, so that nobody can
/// choose values that collide.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(RandomState);

impl Vocabulary {
    fn term(&self, field: &Indexed<'_>, value: &str) -> Term {
        Term(self.0.hash_one((field, value)))
    }

    /// The terms by which an event is found.
    pub(crate) fn of_event(&self, body: &EventBody) -> Terms {
        let mut terms = Terms::default();
        terms.push(self.term(&Indexed::Type, body.event_type()));
        if let Some(key) = body.key() {
            terms.push(self.term(&Indexed::Key, key));
        }
        if body.metadata_text() == "{}" {
            return terms;
        }
        let metadata = body.metadata();
        for name in LINEAGE {
            if let Some(value) = metadata.get(name).and_then(|value| value.as_str()) {
                terms.push(self.term(&Indexed::Metadata(name), value));
            }
        }
        terms
    }

    /// The terms one of which every event has that matches the filter; none
    /// where the index cannot tell.
    pub(crate) fn of_filter(&self, filter: &Filter) -> Option<Vec<Term>> {
        let field = match filter.field() {
            Field::Type => Indexed::Type,
            Field::Key => Indexed::Key,
            Field::Metadata(path) => match path.as_slice() {
                [name] if LINEAGE.contains(&name.as_str()) => Indexed::Metadata(name),
                _ => return None,
            },
            _ => return None,
        };
        let values = match filter.condition() {
            Condition::Equals(value) => std::slice::from_ref(value),
            Condition::In(values) => values,
            _ => return None,
        };
        let term = |text| self.term(&field, text);
        values.iter().map(|value| value.as_str().map(term)).collect()
    }
}

/// Ascending sequences. Most keys of a large key space occur once, and need
/// no list.
#[derive(Debug)]
enum Postings {
    One(u64),
    Many(Vec<u64>),
}

impl Postings {
    fn push(&mut self, sequence: u64) {
        match self {
            Self::One(first) => *self = Self::Many(vec![*first, sequence]),
            Self::Many(sequences) => sequences.push(sequence),
        }
    }

    fn as_slice(&self) -> &[u64] {
        match self {
            Self::One(sequence) => std::slice::from_ref(sequence),
            Self::Many(sequences) => sequences,
        }
    }
}

/// The sequences for each term.
#[derive(Debug, Default)]
pub(crate) struct Index(HashMap<Term, Postings>);

impl Index {
    /// Notes an event; sequences come in ascending order.
    pub(crate) fn add(&mut self, terms: &Terms, sequence: u64) {
        for &term in terms.as_slice() {
            match self.0.entry(term) {
                Entry::Occupied(mut postings) => postings.get_mut().push(sequence),
                Entry::Vacant(place) => {
                    place.insert(Postings::One(sequence));
                }
            }
        }
    }

    /// The sequences from `first` to `last` that have the term.
    pub(crate) fn find(&self, term: Term, first: u64, last: u64) -> &[u64] {
        let sequences = self.0.get(&term).map_or(&[][..], Postings::as_slice);
        let begin = sequences.partition_point(|&sequence| sequence < first);
        let end = sequences.partition_point(|&sequence| sequence <= last);
        sequences.get(begin..end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partition::tests::body;

    fn filter(field: Field, value: &str) -> Filter {
        Filter::new(field, Condition::Equals(value.into()))
    }

    #[test]
    fn events_are_found_by_type_key_and_lineage() {
        let vocabulary = Vocabulary::default();
        let mut index = Index::default();
        let bodies = [
            body("a", Some("k"), r#"{"producer":"p"}"#),
            body("b", None, r#"{"producer":7,"other":"p"}"#),
            body("a", Some("a"), "{}"),
        ];
        for (sequence, body) in (1..).zip(&bodies) {
            index.add(&vocabulary.of_event(body), sequence);
        }
        let find = |filter: Filter| {
            let terms = vocabulary.of_filter(&filter).unwrap();
            index.find(terms[0], 1, u64::MAX).to_vec()
        };
        assert_eq!(find(filter(Field::Type, "a")), [1, 3]);
        assert_eq!(find(filter(Field::Key, "a")), [3]);
        assert_eq!(find(filter(Field::metadata(["producer"]), "p")), [1]);
        assert_eq!(find(filter(Field::Type, "k")), [0; 0]);
        let terms = vocabulary.of_filter(&filter(Field::Type, "a")).unwrap();
        assert_eq!(index.find(terms[0], 2, 3), [3]);
        assert_eq!(index.find(terms[0], 2, 2), [0; 0]);
        assert_eq!(index.find(terms[0], 3, 1), [0; 0]);
    }

    #[test]
    fn what_is_no_string_is_left_to_the_matcher() {
        let vocabulary = Vocabulary::default();
        let of = |field, condition| vocabulary.of_filter(&Filter::new(field, condition));
        assert!(of(Field::metadata(["producer"]), Condition::Equals(7.into())).is_none());
        assert!(of(Field::Type, Condition::In(vec!["a".into(), 7.into()])).is_none());
        assert!(of(Field::Type, Condition::Exists).is_none());
        assert!(of(Field::metadata(["other"]), Condition::Equals("a".into())).is_none());
        assert!(of(Field::metadata(["schema", "x"]), Condition::Equals("a".into())).is_none());
        assert_eq!(of(Field::Key, Condition::In(vec!["a".into(), "b".into()])).unwrap().len(), 2);
    }
}

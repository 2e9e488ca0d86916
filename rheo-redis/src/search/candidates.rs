//! Searching by an index of the stream.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use redis::{Cmd, FromRedisValue, Value, cmd};
use rheo_core::backend::Range;
use rheo_core::{Condition, Field, Filter, Order, Position, Result};

use super::{Finder, OPERATION, compare};
use crate::call::About;
use crate::error::corrupt;

/// The metadata fields of the lineage.
const LINEAGE: [&str; 5] =
    ["correlation_id", "causation_id", "producer", "schema", "schema_version"];
/// The index pays where there are this many times as many events as candidates.
const PAYS: u64 = 4;
/// How many lists of candidates are worth going through.
const MOST_LISTS: usize = 4096;
/// How many candidates are held at a time; how many of each list, at least.
const MOST_AHEAD: usize = 32_768;
const LEAST_AHEAD: usize = 16;

/// What the index has of one value in one partition.
#[derive(Debug)]
pub(super) struct List {
    key: String,
    /// What is still to be asked for.
    rest: Range,
    /// What was answered and not yet looked at, in the order of the search.
    ahead: Vec<Position>,
}

impl Finder<'_> {
    /// The lists in which whatever matches is found, if the stream has an
    /// index that tells, and it pays to ask it.
    pub(super) async fn candidates(
        &self,
        ranges: &[Range],
        indexes: &str,
    ) -> Result<Option<Vec<List>>> {
        let lists_of = |filter| Some(self.lists(ranges, terms(filter, indexes)?));
        let mut choices: Vec<Vec<List>> =
            self.request.filters.iter().filter_map(lists_of).collect();
        choices.retain(|lists| lists.len() <= MOST_LISTS);
        let counts = self.count(&choices).await?;
        let events: u64 = ranges.iter().map(|range| range.last - range.first + 1).sum();
        let best = counts.into_iter().zip(choices).min_by_key(|(count, _)| *count);
        Ok(best.filter(|(count, _)| count.saturating_mul(PAYS) <= events).map(|(_, lists)| lists))
    }

    fn lists(&self, ranges: &[Range], (field, values): (&str, BTreeSet<&str>)) -> Vec<List> {
        let (keys, stream) = (&self.store.keys, &self.request.stream.name);
        let list = |range: &Range, value: &str| List {
            key: keys.index(stream, range.partition, field, value),
            rest: *range,
            ahead: Vec::new(),
        };
        let of_range = |range| values.iter().map(move |value| list(range, value));
        ranges.iter().flat_map(of_range).collect()
    }

    /// How many candidates each choice has.
    async fn count(&self, choices: &[Vec<List>]) -> Result<Vec<u64>> {
        let count = |list: &List| {
            let mut count = cmd("ZCOUNT");
            count.arg(&list.key).arg(list.rest.first).arg(list.rest.last);
            count
        };
        let counts = choices.iter().flatten().map(count).collect();
        let mut answers = self.ask_index::<u64>(counts).await?.into_iter();
        Ok(choices.iter().map(|lists| answers.by_ref().take(lists.len()).sum()).collect())
    }

    /// Looks at the candidates, until enough of them match.
    pub(super) async fn look_at_candidates(&mut self, mut lists: Vec<List>) -> Result<()> {
        while !lists.is_empty() {
            self.fill(&mut lists).await?;
            let mut next = take_complete(self.request.order, &mut lists);
            while !next.is_empty() && !self.has_enough() {
                let later = next.split_off(self.page.min(next.len()));
                self.look_into(&next).await?;
                next = later;
            }
            if self.has_enough() {
                break;
            }
        }
        Ok(())
    }

    /// Sees to it that the next of each list is known.
    async fn fill(&self, lists: &mut [List]) -> Result<()> {
        let each = (MOST_AHEAD / lists.len()).max(LEAST_AHEAD);
        let mut lists: Vec<&mut List> =
            lists.iter_mut().filter(|list| list.ahead.is_empty()).collect();
        let order = self.request.order;
        let asks = lists.iter().map(|list| list.ask(order, each)).collect();
        let answers = self.ask_index::<Vec<u64>>(asks).await?;
        for (list, sequences) in lists.iter_mut().zip(answers) {
            list.take_in(order, &sequences, each);
        }
        Ok(())
    }

    async fn ask_index<T: FromRedisValue>(&self, commands: Vec<Cmd>) -> Result<Vec<T>> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let about = About::from(&self.request.stream);
        let answers = self.store.read(OPERATION, &about, &commands).await?;
        let answer = |value: Value| {
            T::from_redis_value(value)
                .map_err(|_| corrupt(OPERATION, "an index holds something else than sequences"))
        };
        answers.into_iter().map(answer).collect()
    }
}

impl List {
    fn ask(&self, order: Order, count: usize) -> Cmd {
        let Range { first, last, .. } = self.rest;
        let mut ask = cmd("ZRANGE");
        ask.arg(&self.key);
        match order {
            Order::Ascending => ask.arg(first).arg(last).arg("BYSCORE"),
            Order::Descending => ask.arg(last).arg(first).arg("BYSCORE").arg("REV"),
        };
        ask.arg("LIMIT").arg(0).arg(count);
        ask
    }

    /// Takes in what was answered, where `count` were asked for.
    fn take_in(&mut self, order: Order, sequences: &[u64], count: usize) {
        let partition = self.rest.partition;
        self.ahead.extend(sequences.iter().map(|&sequence| Position::new(partition, sequence)));
        match (sequences.last(), order) {
            (Some(last), Order::Ascending) if sequences.len() == count => {
                self.rest.first = last + 1;
            }
            (Some(last), Order::Descending) if sequences.len() == count => {
                self.rest.last = last - 1;
            }
            _ => self.rest.last = 0,
        }
    }

    fn has_more(&self) -> bool {
        self.rest.first <= self.rest.last
    }
}

/// Takes out, in order, what comes before all that is not known yet, and drops
/// the lists that have no more.
fn take_complete(order: Order, lists: &mut Vec<List>) -> Vec<Range> {
    let ends = lists.iter().filter(|list| list.has_more()).filter_map(|list| list.ahead.last());
    let end = ends.copied().min_by(|one, other| compare(order, *one, *other));
    let is_later = |position: Position| {
        end.is_some_and(|end| compare(order, position, end) == Ordering::Greater)
    };
    let mut taken: Vec<Position> = Vec::new();
    for list in &mut *lists {
        let later = list.ahead.partition_point(|&position| !is_later(position));
        taken.extend(list.ahead.drain(..later));
    }
    lists.retain(|list| list.has_more() || !list.ahead.is_empty());
    taken.sort_by(|one, other| compare(order, *one, *other));
    let range =
        |Position { partition, sequence }| Range { partition, first: sequence, last: sequence };
    taken.into_iter().map(range).collect()
}

/// The indexed field that a filter is about, and the values of which each event
/// that meets it has one.
fn terms<'a>(filter: &'a Filter, indexes: &str) -> Option<(&'a str, BTreeSet<&'a str>)> {
    let (index, field) = match filter.field() {
        Field::Type => ("type", "type"),
        Field::Key => ("key", "key"),
        Field::Metadata(path) => match path.as_slice() {
            [name] if LINEAGE.contains(&name.as_str()) => ("lineage", name.as_str()),
            _ => return None,
        },
        _ => return None,
    };
    if !indexes.split(',').any(|name| name == index) {
        return None;
    }
    let values = match filter.condition() {
        Condition::Equals(value) => std::slice::from_ref(value),
        Condition::In(values) => values,
        _ => return None,
    };
    // What is no string is in no index.
    let values: Option<_> = values.iter().map(|value| value.as_str()).collect();
    Some((field, values?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(field: Field, values: &[serde_json::Value]) -> Filter {
        Filter::new(field, Condition::In(values.to_vec()))
    }

    #[test]
    fn an_index_tells_where_strings_are() {
        let all = "type,key,lineage";
        let producer = || Field::metadata(["producer"]);
        let found = filter(producer(), &["b".into(), "a".into(), "b".into()]);
        assert_eq!(terms(&found, all), Some(("producer", BTreeSet::from(["a", "b"]))));
        assert_eq!(terms(&found, "type,key"), None);
        assert_eq!(terms(&found, ""), None);
        let kind = Filter::new(Field::Type, Condition::Equals("a".into()));
        assert_eq!(terms(&kind, "type"), Some(("type", BTreeSet::from(["a"]))));
        for other in [
            filter(producer(), &["a".into(), 7.into()]),
            filter(Field::metadata(["producer", "x"]), &["a".into()]),
            filter(Field::metadata(["other"]), &["a".into()]),
            filter(Field::Id, &[]),
            Filter::new(Field::Key, Condition::Exists),
        ] {
            assert_eq!(terms(&other, all), None, "{other:?}");
        }
    }

    #[test]
    fn candidates_are_taken_in_order_as_far_as_all_are_known() {
        for order in [Order::Ascending, Order::Descending] {
            let list = |partition, sequences: &[u64], count| {
                let rest = Range { partition, first: 1, last: 100 };
                let mut list = List { key: String::new(), rest, ahead: Vec::new() };
                let mut sequences = sequences.to_vec();
                if order == Order::Descending {
                    sequences.reverse();
                }
                list.take_in(order, &sequences, count);
                list
            };
            let mut lists = vec![list(0, &[10, 20], 2), list(1, &[10, 30], 9), list(2, &[], 9)];
            let taken = |lists: &mut Vec<List>| {
                let taken = take_complete(order, lists);
                taken.iter().map(|range| (range.first, range.partition)).collect::<Vec<_>>()
            };
            let (first, later) = match order {
                Order::Ascending => (vec![(10, 0), (10, 1), (20, 0)], vec![(30, 1)]),
                Order::Descending => (vec![(30, 1), (20, 0), (10, 1), (10, 0)], vec![]),
            };
            assert_eq!(taken(&mut lists), first);
            assert_eq!(lists.len(), 1 + later.len());
            lists[0].take_in(order, &[], 2);
            assert_eq!(taken(&mut lists), later);
            assert!(lists.is_empty());
        }
    }
}

//! Queries: what to look for in a stream, and how the answer is told.

mod compare;
mod condition;
mod cursor;
mod filter;
mod fingerprint;

use serde_json::Value;
use uuid::Uuid;

pub use condition::{Condition, Field};
pub use cursor::{Cursor, Page};
pub use filter::Filter;

use crate::backend::{Partitions, Range};
use crate::handle::check_limit;
use crate::{Error, Result, Timestamp};

/// How many events a query returns at most, unless set.
const DEFAULT_LIMIT: usize = 100;

/// In which order events are returned: by sequence, and those of one sequence
/// by partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// The lowest sequence first.
    #[default]
    Ascending,
    /// The highest sequence first.
    Descending,
}

/// What to look for in a stream.
///
/// A new query finds every event; each condition narrows it, and an event is
/// found where all of them hold. [`Condition`] says when values are equal, and
/// which is less. Order and limit are replaced where they are set again.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> rheo_core::Result<()> {
/// # let rheo = rheo_core::Rheo::builder(rheo_ets::Memory::new()).build().await?;
/// use rheo_core::{Condition, Field, Filter, NewEvent, Query};
/// use serde_json::json;
///
/// rheo.create_stream("orders", 1).await?;
/// for total in [25, 250, 2500] {
///     rheo.append("orders", NewEvent::new("order.placed", json!({"total": total}))).await?;
/// }
///
/// let large = Filter::new(Field::payload(["total"]), Condition::GreaterOrEqual(250.into()));
/// let query = Query::new().event_type("order.placed").filter(large).descending().limit(10);
/// let found = rheo.query("orders", &query).await?;
/// assert_eq!(found.iter().map(|event| event.sequence()).collect::<Vec<_>>(), [3, 2]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Query {
    filters: Vec<Filter>,
    partitions: Partitions,
    /// Exclusive.
    after: u64,
    /// Inclusive.
    until: u64,
    order: Order,
    limit: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            filters: Vec::new(),
            partitions: Partitions::All,
            after: 0,
            until: u64::MAX,
            order: Order::Ascending,
            limit: DEFAULT_LIMIT,
        }
    }
}

impl Query {
    /// Every event, ascending, 100 of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the event with this id (in each partition that has one).
    pub fn id(self, id: Uuid) -> Self {
        self.equals(Field::Id, id.to_string())
    }

    /// Only events of this type.
    pub fn event_type(self, event_type: impl Into<String>) -> Self {
        self.equals(Field::Type, event_type.into())
    }

    /// Only events of these types; none, where there are none.
    pub fn event_types(self, event_types: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let event_types = event_types.into_iter().map(|event_type| event_type.into().into());
        self.filter(Filter::new(Field::Type, Condition::In(event_types.collect())))
    }

    /// Only events with this key.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.equals(Field::Key, key.into())
    }

    /// Only events of this partition.
    pub fn partition(self, partition: u32) -> Self {
        self.partitions([partition])
    }

    /// Only events of these partitions; none, where there are none.
    pub fn partitions(mut self, partitions: impl IntoIterator<Item = u32>) -> Self {
        let mut chosen: Vec<u32> = partitions.into_iter().collect();
        chosen.sort_unstable();
        chosen.dedup();
        if let Partitions::Only(before) = &self.partitions {
            chosen.retain(|partition| before.contains(partition));
        }
        self.partitions = Partitions::Only(chosen);
        self
    }

    /// Only events above this sequence.
    pub fn after_sequence(mut self, sequence: u64) -> Self {
        self.after = self.after.max(sequence);
        self
    }

    /// Only events up to this sequence, itself included.
    pub fn until_sequence(mut self, sequence: u64) -> Self {
        self.until = self.until.min(sequence);
        self
    }

    /// Only events appended at this instant or later.
    pub fn since(self, instant: Timestamp) -> Self {
        let condition = Condition::GreaterOrEqual(instant.to_string().into());
        self.filter(Filter::new(Field::Timestamp, condition))
    }

    /// Only events appended earlier than this instant.
    pub fn before(self, instant: Timestamp) -> Self {
        let condition = Condition::Less(instant.to_string().into());
        self.filter(Filter::new(Field::Timestamp, condition))
    }

    /// Only events whose lineage names this correlation.
    pub fn correlation_id(self, id: impl Into<String>) -> Self {
        self.metadata("correlation_id", id.into())
    }

    /// Only events whose lineage names this direct cause.
    pub fn causation_id(self, id: impl Into<String>) -> Self {
        self.metadata("causation_id", id.into())
    }

    /// Only events whose lineage names this producer.
    pub fn producer(self, producer: impl Into<String>) -> Self {
        self.metadata("producer", producer.into())
    }

    /// Only events whose lineage names this schema.
    pub fn schema(self, schema: impl Into<String>) -> Self {
        self.metadata("schema", schema.into())
    }

    /// Only events whose lineage names this version of the schema.
    pub fn schema_version(self, version: impl Into<String>) -> Self {
        self.metadata("schema_version", version.into())
    }

    /// Only events whose metadata has this value in this field. The field is
    /// one key at the top, whatever characters it holds.
    pub fn metadata(self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.equals(Field::Metadata(vec![field.into()]), value)
    }

    /// Only events whose payload has this value in this field. The field is
    /// one key at the top, whatever characters it holds.
    pub fn payload(self, field: impl Into<String>, value: impl Into<Value>) -> Self {
        self.equals(Field::Payload(vec![field.into()]), value)
    }

    /// Only events for which this filter holds.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filters.push(filter);
        self
    }

    /// The lowest sequence first, which is the default.
    pub fn ascending(mut self) -> Self {
        self.order = Order::Ascending;
        self
    }

    /// The highest sequence first.
    pub fn descending(mut self) -> Self {
        self.order = Order::Descending;
        self
    }

    /// How many events are returned at most: 1 to 10 000, by default 100.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    fn equals(self, field: Field, value: impl Into<Value>) -> Self {
        self.filter(Filter::new(field, Condition::Equals(value.into())))
    }

    /// Whether the query makes sense for a stream of `partitions` partitions.
    ///
    /// # Errors
    /// `Invalid`, with the rule that it breaks.
    pub(crate) fn validate(&self, partitions: u32) -> Result<()> {
        check_limit("query", self.limit)?;
        if let Partitions::Only(chosen) = &self.partitions
            && let Some(beyond) = chosen.iter().find(|&&partition| partition >= partitions)
        {
            let context =
                format!("partition {beyond} is out of range: the stream has {partitions}");
            return Err(Error::invalid("query", context));
        }
        self.filters.iter().try_for_each(Filter::validate)
    }

    /// Where to look in a stream of `partitions` partitions: a range for each
    /// partition asked for, ascending; none where the bounds leave nothing.
    pub(crate) fn ranges(&self, partitions: u32) -> Vec<Range> {
        if self.after >= self.until {
            return Vec::new();
        }
        let range = |partition| Range { partition, first: self.after + 1, last: self.until };
        self.partitions.numbers(partitions).map(range).collect()
    }

    /// What must hold for an event in these ranges.
    pub(crate) fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The order asked for.
    pub(crate) fn order(&self) -> Order {
        self.order
    }

    /// How many events are returned at most.
    pub(crate) fn page_size(&self) -> usize {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn bounds(query: &Query) -> Vec<(u32, u64, u64)> {
        let ranges = query.ranges(4);
        ranges.iter().map(|range| (range.partition, range.first, range.last)).collect()
    }

    #[test]
    fn ranges_follow_partitions_and_sequences() {
        let bounded = Query::new().after_sequence(10).until_sequence(15);
        let all: Vec<_> = (0..4).map(|partition| (partition, 1, u64::MAX)).collect();
        assert_eq!(bounds(&Query::new()), all);
        let some = bounded.clone().partitions([3, 1, 3]);
        assert_eq!(bounds(&some), [(1, 11, 15), (3, 11, 15)]);
        assert_eq!(bounds(&bounded.clone().after_sequence(14).partition(0)), [(0, 15, 15)]);
        let nothing = [
            bounded.clone().after_sequence(15),
            bounded.clone().partitions([]),
            bounded.partition(1).partition(2),
            Query::new().after_sequence(u64::MAX),
            Query::new().until_sequence(0),
        ];
        for query in nothing {
            assert_eq!(bounds(&query), [], "{query:?}");
            query.validate(4).unwrap();
        }
    }

    #[test]
    fn conditions_add_up_and_limits_do_not() {
        let query = Query::new().event_type("a").key("k").after_sequence(7).after_sequence(5);
        assert_eq!(query.filters().len(), 2);
        assert_eq!(bounds(&query.partition(2)), [(2, 8, u64::MAX)]);
        let query = Query::new().descending().limit(5).ascending().limit(7);
        assert_eq!((query.order(), query.page_size()), (Order::Ascending, 7));
    }

    #[test]
    fn what_breaks_a_rule_is_invalid() {
        let table = [
            (Query::new().limit(0), "the limit is 1 to 10000, not 0"),
            (Query::new().limit(10_001), "the limit is 1 to 10000, not 10001"),
            (Query::new().partitions([0, 4]), "partition 4 is out of range: the stream has 4"),
            (Query::new().producer("a\0"), "U+0000"),
        ];
        for (query, reason) in table {
            let error = query.validate(4).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(reason), "{error}");
        }
        for query in [Query::new(), Query::new().limit(10_000).partition(3), Query::new().limit(1)]
        {
            query.validate(4).unwrap();
        }
    }
}

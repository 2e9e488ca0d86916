//! The search, which goes by indexes and windows, against a walk over all events.

use rheo_core::{Condition, Event, Field, Filter, Lineage, NewEvent, Query, Result, Rheo};
use rheo_ets::Memory;

const PARTITIONS: u32 = 3;
const EVENTS: u32 = 6000;

/// Small numbers in no particular order, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// A stream whose last partition has most of the events.
async fn filled() -> Result<(Rheo, Vec<Event>)> {
    let rheo = Rheo::builder(Memory::new()).build().await?;
    rheo.create_stream("s", PARTITIONS).await?;
    let mut numbers = Numbers(7);
    let mut batch = Vec::new();
    for number in 0..EVENTS {
        let partition = numbers.below(20).min(2) as u32;
        let mut event =
            NewEvent::new(format!("type-{}", numbers.below(4)), number).partition(partition);
        if numbers.below(2) == 0 {
            event = event.key(format!("key-{}", numbers.below(500)));
        }
        event = match numbers.below(3) {
            0 => event.lineage(&Lineage::default().producer(format!("p-{}", numbers.below(3)))),
            1 => event.metadata("producer", 1),
            _ => event,
        };
        batch.push(event);
    }
    let stored = rheo.append_batch("s", batch).await?;
    Ok((rheo, stored))
}

fn is_in<const N: usize>(field: Field, values: [&str; N]) -> Filter {
    Filter::new(field, Condition::In(values.map(Into::into).into()))
}

fn producer(condition: Condition) -> Filter {
    Filter::new(Field::metadata(["producer"]), condition)
}

#[tokio::test]
async fn a_search_finds_what_a_walk_finds() -> Result<()> {
    let (rheo, stored) = filled().await?;
    let filters = [
        vec![],
        vec![is_in(Field::Type, ["type-1"])],
        vec![is_in(Field::Type, ["type-1", "type-3", "type-1"])],
        vec![is_in(Field::Key, ["key-7"])],
        vec![is_in(Field::Key, ["key-7", "key-8", "nowhere"]), is_in(Field::Type, ["type-0"])],
        vec![producer(Condition::Equals("p-1".into()))],
        vec![producer(Condition::Equals(1.0.into()))],
        vec![producer(Condition::In(vec![1.into(), "p-2".into()]))],
        vec![producer(Condition::Exists), is_in(Field::Key, ["key-9", "key-10"])],
        vec![Filter::new(Field::payload([""; 0]), Condition::Greater(5900.into()))],
        vec![is_in(Field::Type, [])],
    ];
    for filters in filters {
        let matching = |event: &&Event| Filter::matches_all(&filters, event);
        let mut expected: Vec<_> = stored.iter().filter(matching).map(Event::position).collect();
        expected.sort();
        let query = filters.iter().cloned().fold(Query::new(), Query::filter);
        for limit in [1, 7, 1000, 10_000] {
            let found = positions(&rheo, &query.clone().limit(limit)).await?;
            assert_eq!(found, expected[..limit.min(expected.len())], "{filters:?}");
        }
        expected.reverse();
        for limit in [1, 7, 1000, 10_000] {
            let found = positions(&rheo, &query.clone().limit(limit).descending()).await?;
            assert_eq!(found, expected[..limit.min(expected.len())], "{filters:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn bounds_are_kept() -> Result<()> {
    let (rheo, _) = filled().await?;
    let query = Query::new().partitions([0, 2]).after_sequence(10).until_sequence(12);
    let sequences = [(0, 11), (2, 11), (0, 12), (2, 12)];
    let found = positions(&rheo, &query).await?;
    let found: Vec<_> = found.iter().map(|at| (at.partition, at.sequence)).collect();
    assert_eq!(found, sequences);
    Ok(())
}

async fn positions(rheo: &Rheo, query: &Query) -> Result<Vec<rheo_core::Position>> {
    Ok(rheo.query("s", query).await?.iter().map(Event::position).collect())
}

#[tokio::test]
async fn a_time_filter_holds_though_time_goes_back() -> Result<()> {
    let store = Memory::new();
    let mut stored = Vec::new();
    for ahead in [30, 10, 20, 40, 5] {
        let clock = rheo_core::ManualClock::new(rheo_core::Timestamp::from_micros(ahead));
        let rheo = Rheo::builder(store.clone()).clock(clock).build().await?;
        if stored.is_empty() {
            rheo.create_stream("s", 1).await?;
        }
        stored.push(rheo.append("s", NewEvent::new("t", 0)).await?);
    }
    let rheo = Rheo::builder(store).build().await?;
    for (since, expected) in
        [(0, vec![1, 2, 3, 4, 5]), (20, vec![1, 3, 4]), (31, vec![4]), (41, vec![])]
    {
        let query = Query::new().since(rheo_core::Timestamp::from_micros(since));
        let found = positions(&rheo, &query).await?;
        assert_eq!(found.iter().map(|at| at.sequence).collect::<Vec<_>>(), expected);
    }
    Ok(())
}

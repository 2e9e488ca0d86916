//! The results: as JSON, as a table for each store, and in Markdown.

use clap::ValueEnum;
use serde::Serialize;

use super::events::{PAYLOAD_BYTES, SEED};
use super::measuring::{Spread, Turns};
use crate::output::Table;

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    /// How much the store grows by an event
    Bytes,
    /// Appending, one event for each call and a hundred
    Append,
    /// Fetching and settling
    Consume,
    /// From append to a consumer's handler
    Latency,
    /// Several groups on one stream
    Groups,
    /// Several workers on one group
    Workers,
    /// A claim at the end of a short log and of a long one
    Length,
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    seed: u64,
    payload_bytes: usize,
    runs: u32,
    pub(crate) stores: Vec<StoreReport>,
    pub(crate) not_measured: Vec<NotMeasured>,
}

/// What was measured on one store.
#[derive(Debug, Serialize)]
pub(crate) struct StoreReport {
    pub(crate) store: String,
    pub(crate) product: String,
    pub(crate) version: String,
    pub(crate) events: u64,
    pub(crate) rows: Vec<Row>,
    /// What could not be measured, and why.
    pub(crate) notes: Vec<String>,
}

/// A store on which nothing was measured.
#[derive(Debug, Serialize)]
pub(crate) struct NotMeasured {
    pub(crate) store: &'static str,
    pub(crate) why: String,
}

/// One thing that was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    subject: Subject,
    measure: String,
    unit: &'static str,
    rheo: Spread,
    raw: Option<Spread>,
    /// Rheo's number, as a part of the bare driver's in the same run.
    ratio: Option<Spread>,
}

impl Row {
    pub(crate) fn new(
        subject: Subject,
        measure: impl Into<String>,
        unit: &'static str,
        rheo: Spread,
    ) -> Self {
        Self { subject, measure: measure.into(), unit, rheo, raw: None, ratio: None }
    }

    /// Events a second, of Rheo and of a bare driver that took turns with it.
    pub(crate) fn of_rates(subject: Subject, measure: impl Into<String>, turns: Turns) -> Self {
        let ratios = turns.ours.iter().zip(&turns.raw).map(|(ours, raw)| ours / raw).collect();
        let none = Spread { median: 0.0, least: 0.0, greatest: 0.0 };
        let rheo = Spread::of(turns.ours).unwrap_or(none);
        let row = Self::new(subject, measure, "events/s", rheo);
        Self { raw: Spread::of(turns.raw), ratio: Spread::of(ratios), ..row }
    }

    /// Beside what the bare driver came to.
    pub(crate) fn beside(self, raw: Spread, ratio: Spread) -> Self {
        Self { raw: Some(raw), ratio: Some(ratio), ..self }
    }
}

impl Report {
    pub(crate) fn new(runs: u32) -> Self {
        Self {
            seed: SEED,
            payload_bytes: PAYLOAD_BYTES,
            runs,
            stores: Vec::new(),
            not_measured: Vec::new(),
        }
    }

    /// One table of all stores, for a document.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "| store | measured | unit | Rheo | bare driver | ratio |\n\
             |---|---|---|---:|---:|---:|\n",
        );
        for store in &self.stores {
            for row in &store.rows {
                text += &format!(
                    "| {} | {} | {} | {} | {} | {} |\n",
                    store.store,
                    row.measure,
                    row.unit,
                    with_spread(row.rheo, number),
                    row.raw.map_or_else(String::new, |raw| number(raw.median)),
                    row.ratio.map_or_else(String::new, |ratio| with_spread(ratio, decimal)),
                );
            }
        }
        text.push('\n');
        for store in &self.stores {
            text += &format!("- {}\n", store.title());
            text.extend(store.notes.iter().map(|note| format!("  - {note}\n")));
        }
        text.extend(self.not_measured.iter().map(|it| format!("- {}: {}\n", it.store, it.why)));
        text
    }
}

impl StoreReport {
    /// The store, and how it was measured.
    pub(crate) fn title(&self) -> String {
        let Self { store, product, version, events, .. } = self;
        format!("{store}: {product} {version}, logs of {} events", number(*events as f64))
    }

    /// A table for people.
    pub(crate) fn table(&self) -> Table {
        let heads =
            ["MEASURED", "UNIT", "RHEO", "LEAST", "GREATEST", "BARE", "RATIO", "LEAST", "GREATEST"];
        let mut table = Table::new(heads);
        for row in &self.rows {
            let Spread { median, least, greatest } = row.rheo;
            let [rheo, least, greatest] = [median, least, greatest].map(number);
            let raw = row.raw.map_or_else(|| "-".into(), |raw| number(raw.median));
            let ratio = match row.ratio {
                Some(Spread { median, least, greatest }) => [median, least, greatest].map(decimal),
                None => ["-", "-", "-"].map(String::from),
            };
            let cells = [row.measure.clone(), row.unit.into(), rheo, least, greatest, raw];
            table.row(cells.into_iter().chain(ratio));
        }
        table
    }
}

/// The median, beside the least and the greatest where there are several.
fn with_spread(spread: Spread, shown: impl Fn(f64) -> String) -> String {
    let Spread { median, least, greatest } = spread;
    match least.total_cmp(&greatest) {
        std::cmp::Ordering::Equal => shown(median),
        _ => format!("{} ({} to {})", shown(median), shown(least), shown(greatest)),
    }
}

fn decimal(number: f64) -> String {
    format!("{number:.2}")
}

/// A number without decimals, its digits by threes.
fn number(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stand_by_threes() {
        assert_eq!(number(7.4), "7");
        assert_eq!(number(999.6), "1 000");
        assert_eq!(number(1_234_567.0), "1 234 567");
    }

    #[test]
    fn a_ratio_is_of_numbers_of_one_run() {
        let turns = Turns { raw: vec![10.0, 20.0], ours: vec![5.0, 20.0] };
        let row = Row::of_rates(Subject::Append, "append", turns);
        let ratio = row.ratio.unwrap();
        assert_eq!((ratio.least, ratio.median, ratio.greatest), (0.5, 0.75, 1.0));
        assert_eq!(with_spread(ratio, decimal), "0.75 (0.50 to 1.00)");
    }
}

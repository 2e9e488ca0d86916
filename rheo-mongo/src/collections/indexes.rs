//! The indexes: whatever Rheo asks for is found by one.

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;

use super::Collections;
use crate::codec::LINEAGE_KEYS;

impl Collections {
    /// The name of each collection, with its indexes.
    pub(super) fn with_indexes(&self) -> [(&str, Vec<IndexModel>); 8] {
        let first = ["stream", "group", "partition", "first"];
        [
            (self.schema.name(), Vec::new()),
            (self.streams.name(), Vec::new()),
            (self.partitions.name(), vec![unique("by_partition", &["stream", "partition"])]),
            (self.events.name(), of_events()),
            (self.groups.name(), vec![unique("by_group", &["stream", "group", "partition"])]),
            (
                self.runs.name(),
                vec![
                    unique("by_first", &first),
                    index("by_due", &["stream", "group", "partition", "due"]),
                ],
            ),
            (self.attempts.name(), vec![unique("by_first", &first)]),
            (
                self.dead_letters.name(),
                vec![
                    unique("by_sequence", &["stream", "group", "partition", "sequence"]),
                    index("by_age", &["stream", "group", "at", "sequence", "partition"]),
                ],
            ),
        ]
    }
}

fn of_events() -> Vec<IndexModel> {
    let given = unique("by_given_id", &["stream", "partition", "id"]);
    let mut indexes = vec![
        unique("by_sequence", &["stream", "partition", "sequence"]),
        index("by_type", &["stream", "type", "partition", "sequence"]),
        only(by_content("by_key", "key"), doc! { "key": { "$exists": true } }),
        index("by_time", &["stream", "time"]),
        only(given, doc! { "given": true }),
    ];
    indexes.extend(LINEAGE_KEYS.map(|key| {
        let field = format!("metadata.{key}");
        let is_there = doc! { &field: { "$exists": true } };
        only(by_content(&format!("by_{key}"), &field), is_there)
    }));
    indexes
}

/// Finds events by what they hold, in the order in which they are told.
fn by_content(name: &str, field: &str) -> IndexModel {
    index(name, &["stream", field, "partition", "sequence"])
}

/// Finds documents by these fields, in this order.
fn index(name: &str, fields: &[&str]) -> IndexModel {
    let keys: Document = fields.iter().map(|&field| (field.into(), 1.into())).collect();
    let options = IndexOptions::builder().name(name.to_string()).build();
    IndexModel::builder().keys(keys).options(options).build()
}

/// Keeps these fields from being the same in two documents.
fn unique(name: &str, fields: &[&str]) -> IndexModel {
    let mut index = index(name, fields);
    index.options.get_or_insert_default().unique = Some(true);
    index
}

/// Knows these documents alone, and costs the others nothing.
fn only(mut index: IndexModel, documents: Document) -> IndexModel {
    index.options.get_or_insert_default().partial_filter_expression = Some(documents);
    index
}

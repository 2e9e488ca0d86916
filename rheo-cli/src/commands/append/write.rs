//! [`Writer`]: appends, again where that is harmless, and tells what is new.

use std::collections::HashSet;
use std::time::Duration;

use rheo::{ErrorKind, Event, Rheo};

use super::fields::Draft;

/// How long to wait before the next try, while the store is out of reach. Each
/// try lasts up to the operation timeout besides.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Appends to one stream.
pub(super) struct Writer<'a> {
    pub(super) rheo: &'a Rheo,
    pub(super) stream: &'a str,
}

/// What an append came to.
pub(super) struct Written {
    /// The events as stored, in the order given.
    pub(super) events: Vec<Event>,
    /// How many were not there before. Those of somebody else who appends the
    /// same at the same time are among them.
    pub(super) appended: u64,
}

impl Writer<'_> {
    /// Appends in one batch. Where all events have ids, a store that is out of
    /// reach is tried again.
    pub(super) async fn write(&self, drafts: Vec<Draft>) -> rheo::Result<Written> {
        if drafts.is_empty() {
            return Ok(Written { events: Vec::new(), appended: 0 });
        }
        let pauses = if all_identified(&drafts) { &PAUSES[..] } else { &[] };
        let some_known = drafts.iter().any(|draft| draft.identified);
        let batch: Vec<_> = drafts.into_iter().map(|draft| draft.event).collect();
        let before = match some_known {
            true => patiently(pauses, async || self.rheo.last_sequences(self.stream).await).await?,
            false => Vec::new(),
        };
        let append = async || self.rheo.append_batch(self.stream, batch.clone()).await;
        let events = patiently(pauses, append).await?;
        let appended = count_new(&events, &before);
        Ok(Written { events, appended })
    }
}

pub(super) fn all_identified(drafts: &[Draft]) -> bool {
    drafts.iter().all(|draft| draft.identified)
}

/// Counts the places that are behind the last ones of before: an id that comes
/// twice has one place.
fn count_new(events: &[Event], before: &[u64]) -> u64 {
    let last = |partition: u32| before.get(partition as usize).copied().unwrap_or_default();
    let places = events.iter().map(|event| (event.partition(), event.sequence()));
    let new: HashSet<_> = places.filter(|&(place, sequence)| sequence > last(place)).collect();
    new.len() as u64
}

async fn patiently<T>(
    pauses: &[Duration],
    call: impl AsyncFn() -> rheo::Result<T>,
) -> rheo::Result<T> {
    for pause in pauses {
        match call().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tokio::time::sleep(*pause).await;
            }
            answer => return answer,
        }
    }
    call().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rheo::{Effect, Error};

    use super::*;

    /// Tries a call that fails so often, and counts how often it is made.
    async fn calls(pauses: usize, failures: usize, kind: ErrorKind) -> (bool, usize) {
        let made = Cell::new(0);
        let call = async || {
            made.set(made.get() + 1);
            let error = Error::new(kind, "append", "").with_effect(Effect::Unknown);
            if made.get() > failures { Ok(()) } else { Err(error) }
        };
        let answer = patiently(&vec![Duration::ZERO; pauses], call).await;
        (answer.is_ok(), made.get())
    }

    #[tokio::test]
    async fn only_a_store_out_of_reach_is_tried_again_and_not_for_ever() {
        assert_eq!(calls(3, 2, ErrorKind::Unavailable).await, (true, 3));
        assert_eq!(calls(3, 9, ErrorKind::Unavailable).await, (false, 4));
        assert_eq!(calls(0, 9, ErrorKind::Unavailable).await, (false, 1));
        assert_eq!(calls(3, 9, ErrorKind::Invalid).await, (false, 1));
    }
}

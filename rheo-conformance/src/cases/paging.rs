//! Going through an answer in parts: laws Q4 and Q5.

use std::collections::HashSet;

use futures::future::try_join_all;
use futures::stream::StreamExt;
use rheo_core::{Confirm, Cursor, ErrorKind, Event, NewEvent, Page, Position, Query, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::{append_to, failure};

case_table! {
    "page.pages_make_up_the_answer" [Q4] needs [Partitions] => pages_make_up_the_answer;
    "page.a_page_says_whether_there_may_be_more" [Q4] => a_page_says_whether_there_may_be_more;
    "page.a_last_page_goes_on_with_what_comes_later" [Q4] needs [Partitions]
        => a_last_page_goes_on_with_what_comes_later;
    "page.nothing_is_skipped_while_others_append" [Q4] needs [Partitions]
        => nothing_is_skipped_while_others_append;
    "page.a_cursor_is_a_word_for_any_client" [Q4] needs [Partitions]
        => a_cursor_is_a_word_for_any_client;
    "page.a_cursor_survives_a_crash" [Q4] needs [Durable] runs alone
        => a_cursor_survives_a_crash;
    "page.a_cursor_of_another_query_is_invalid" [Q4] => a_cursor_of_another_query_is_invalid;
    "page.a_cursor_of_another_stream_is_invalid" [Q4] => a_cursor_of_another_stream_is_invalid;
    "page.a_mangled_cursor_is_invalid" [Q4] => a_mangled_cursor_is_invalid;
    "page.descending_is_invalid" [Q4 Q5] => descending_is_invalid;
    "page.a_stream_yields_the_whole_answer" [Q5] needs [Partitions]
        => a_stream_yields_the_whole_answer;
    "page.a_stream_is_lazy" [Q5] => a_stream_is_lazy;
    "page.a_stream_ends_with_its_first_error" [Q5] => a_stream_ends_with_its_first_error;
}

async fn page(rheo: &Rheo, query: &Query, cursor: Option<&Cursor>) -> Page {
    rheo.query_page("s", query, cursor).await.expect("it finds")
}

/// All pages from the beginning, put together.
async fn walked(rheo: &Rheo, query: &Query) -> Vec<Event> {
    let mut events = Vec::new();
    let mut cursor = None;
    loop {
        let page = page(rheo, query, cursor.as_ref()).await;
        events.extend(page.events);
        cursor = Some(page.cursor);
        if !page.more {
            return events;
        }
    }
}

fn positions(events: &[Event]) -> Vec<Position> {
    events.iter().map(Event::position).collect()
}

/// A stream `s` of three partitions that are filled unevenly with 60 events of
/// types `a` and `b`.
async fn uneven(trial: &Trial) -> Rheo {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 3).await.expect("the stream is new");
    let mut rng = trial.rng();
    let event = |n: u32| {
        let partition = [0, 0, 0, 0, 2, 1][rng.usize(..6)];
        NewEvent::new(["a", "b"][rng.usize(..2)], json!({ "n": n })).partition(partition)
    };
    rheo.append_batch("s", (0..60).map(event).collect()).await.expect("they are appended");
    rheo
}

/// Pages of any size, one after the other, are the answer of the whole query.
async fn pages_make_up_the_answer(trial: Trial) {
    let rheo = uneven(&trial).await;
    let queries = [
        Query::new(),
        Query::new().event_type("a"),
        Query::new().partitions([0, 2]).event_type("b"),
        Query::new().after_sequence(3).until_sequence(12),
        Query::new().event_type("none"),
    ];
    for query in queries {
        let whole = rheo.query("s", &query).await.expect("it finds");
        for limit in [1, 2, 7, 60, 100] {
            let walked = walked(&rheo, &query.clone().limit(limit)).await;
            assert_eq!(walked, whole, "in pages of {limit}: {query:?}");
        }
    }
}

/// A page is as long as the limit while there are events; one that is not full
/// is the last.
async fn a_page_says_whether_there_may_be_more(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 5).await;
    let query = Query::new().limit(2);
    let first = page(&rheo, &query, None).await;
    assert_eq!((first.events.len(), first.more), (2, true));
    let second = page(&rheo, &query, Some(&first.cursor)).await;
    assert_eq!((second.events.len(), second.more), (2, true));
    let last = page(&rheo, &query, Some(&second.cursor)).await;
    assert_eq!((last.events.len(), last.more), (1, false));
}

/// The cursor of the last page yields what is appended later, and only that,
/// also in a partition that was empty.
async fn a_last_page_goes_on_with_what_comes_later(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 2).await.expect("the stream is new");
    let query = Query::new().limit(10);
    let empty = page(&rheo, &query, None).await;
    assert!(empty.events.is_empty() && !empty.more);
    let early = append_to(&rheo, 0, 5).await;
    let first = page(&rheo, &query, Some(&empty.cursor)).await;
    assert_eq!(first.events, early);
    let late = append_to(&rheo, 1, 2).await;
    let second = page(&rheo, &query, Some(&first.cursor)).await;
    assert_eq!(second.events, late);
    let third = page(&rheo, &query, Some(&second.cursor)).await;
    assert!(third.events.is_empty() && !third.more);
}

/// A walk while others append skips and repeats nothing that was there at its
/// start, and shows each partition in order without a hole.
async fn nothing_is_skipped_while_others_append(trial: Trial) {
    let (rheo, other) = (uneven(&trial).await, trial.rheo().await);
    let query = Query::new().limit(5);
    let before = rheo.query("s", &query.clone().limit(100)).await.expect("it finds");
    let appender = |partition| {
        let other = other.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                append_to(&other, partition, 1).await;
                tokio::task::yield_now().await;
            }
        })
    };
    let appenders: Vec<_> = (0..3).map(appender).collect();
    let mut walked = walked(&rheo, &query).await;
    try_join_all(appenders).await.expect("no panic");
    let seen: HashSet<Position> = positions(&walked).into_iter().collect();
    assert_eq!(seen.len(), walked.len(), "some were repeated");
    assert!(before.iter().all(|event| seen.contains(&event.position())), "some were skipped");
    walked.sort_by_key(|event| (event.partition(), event.sequence()));
    for pair in walked.windows(2).filter(|pair| pair[0].partition() == pair[1].partition()) {
        assert_eq!(pair[1].sequence(), pair[0].sequence() + 1);
    }
}

/// A cursor is one printable word; any client goes on from it, with any limit.
async fn a_cursor_is_a_word_for_any_client(trial: Trial) {
    let rheo = uneven(&trial).await;
    let query = Query::new().event_type("a");
    let whole = rheo.query("s", &query).await.expect("it finds");
    let first = page(&rheo, &query.clone().limit(3), None).await;
    let word = first.cursor.to_string();
    assert!(!word.is_empty() && word.chars().all(|c| c.is_ascii_graphic()), "{word:?}");
    let cursor: Cursor = word.parse().expect("it is a cursor");
    assert_eq!(cursor, first.cursor);
    let rest = page(&trial.rheo().await, &query, Some(&cursor)).await;
    assert_eq!(positions(&rest.events), positions(&whole[3..]));
}

/// A walk goes on after a crash where it had stopped.
async fn a_cursor_survives_a_crash(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let stored = append_to(&rheo, 0, 5).await;
    let query = Query::new().limit(2);
    let first = page(&rheo, &query, None).await;
    trial.crash().await;
    let rest = page(&trial.rheo().await, &query.limit(10), Some(&first.cursor)).await;
    assert_eq!(rest.events, stored[2..]);
}

/// A cursor goes with its own query, whose limit alone may change.
async fn a_cursor_of_another_query_is_invalid(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 5).await;
    let query = Query::new().event_type("numbered").limit(2);
    let cursor = page(&rheo, &query, None).await.cursor;
    let others = [
        Query::new(),
        Query::new().event_type("Numbered"),
        query.clone().key("numbered"),
        query.clone().after_sequence(1),
        query.clone().until_sequence(9),
        query.clone().partition(0),
        Query::new().key("numbered"),
    ];
    for other in others {
        let told = failure(rheo.query_page("s", &other, Some(&cursor)).await);
        assert_eq!(told, ErrorKind::Invalid, "{other:?}");
    }
    assert_eq!(page(&rheo, &query.limit(9), Some(&cursor)).await.events.len(), 3);
}

/// A cursor goes with its own stream, even where another looks the same.
async fn a_cursor_of_another_stream_is_invalid(trial: Trial) {
    let rheo = trial.rheo().await;
    for stream in ["s", "S"] {
        rheo.create_stream(stream, 1).await.expect("the stream is new");
    }
    let query = Query::new();
    let cursor = page(&rheo, &query, None).await.cursor;
    let told = failure(rheo.query_page("S", &query, Some(&cursor)).await);
    assert_eq!(told, ErrorKind::Invalid);
}

/// Text that is no cursor, or was changed in one place, is invalid.
async fn a_mangled_cursor_is_invalid(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 3).await;
    let word = page(&rheo, &Query::new().limit(2), None).await.cursor.to_string();
    for at in 0..word.len() {
        let other = if word[at..].starts_with('A') { 'B' } else { 'A' };
        let changed = format!("{}{other}{}", &word[..at], &word[at + 1..]);
        assert_eq!(failure(changed.parse::<Cursor>()), ErrorKind::Invalid, "{changed}");
        assert_eq!(failure(word[..at].parse::<Cursor>()), ErrorKind::Invalid);
    }
    for text in ["", "cursor", " ", "0-0", &format!("{word}{word}")] {
        assert_eq!(failure(text.parse::<Cursor>()), ErrorKind::Invalid, "{text:?}");
    }
}

/// Pages, and so streams, are for ascending order only.
async fn descending_is_invalid(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    let query = Query::new().descending();
    assert_eq!(failure(rheo.query_page("s", &query, None).await), ErrorKind::Invalid);
    let first = rheo.query_stream("s", query).next().await.expect("it tells");
    assert_eq!(failure(first), ErrorKind::Invalid);
}

/// A stream yields all that match, in order, whatever the size of its pages.
async fn a_stream_yields_the_whole_answer(trial: Trial) {
    let rheo = uneven(&trial).await;
    let query = Query::new().event_type("a");
    let whole = rheo.query("s", &query).await.expect("it finds");
    for limit in [1, 7, 100] {
        let stream = rheo.query_stream("s", query.clone().limit(limit));
        let events: Vec<Event> = stream.map(|event| event.expect("it finds")).collect().await;
        assert_eq!(events, whole, "in pages of {limit}");
    }
}

/// A stream asks for a page when it is needed: what is appended meanwhile is
/// still found, and an unread stream costs nothing.
async fn a_stream_is_lazy(trial: Trial) {
    let rheo = trial.rheo().await;
    drop(rheo.query_stream("missing", Query::new()));
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 4).await;
    let mut stream = rheo.query_stream("s", Query::new().limit(2));
    for sequence in 1..=3 {
        let event = stream.next().await.expect("there is one").expect("it finds");
        assert_eq!(event.sequence(), sequence);
    }
    append_to(&rheo, 0, 2).await;
    let rest: Vec<u64> = stream.map(|event| event.expect("it finds").sequence()).collect().await;
    assert_eq!(rest, [4, 5, 6]);
}

/// A stream whose log is deleted under it yields the error, and then ends.
async fn a_stream_ends_with_its_first_error(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    append_to(&rheo, 0, 4).await;
    let mut stream = rheo.query_stream("s", Query::new().limit(2));
    for _ in 0..2 {
        stream.next().await.expect("there is one").expect("it finds");
    }
    rheo.delete_stream("s", Confirm::Yes).await.expect("it is deleted");
    let error = stream.next().await.expect("it tells");
    assert_eq!(failure(error), ErrorKind::StreamNotFound);
    assert!(stream.next().await.is_none());
}

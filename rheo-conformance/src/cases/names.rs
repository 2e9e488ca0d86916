//! Names and what they tell apart: law S12.

use rheo_core::{Confirm, ErrorKind, FetchOptions, GroupOptions, NewEvent, Rheo};
use serde_json::json;

use crate::Trial;
use crate::case::case_table;
use crate::trial::failure;

case_table! {
    "names.streams_are_compared_byte_for_byte" [S12] => streams_are_compared_byte_for_byte;
    "names.groups_are_compared_byte_for_byte" [S12] => groups_are_compared_byte_for_byte;
    "names.stream_and_group_never_run_together" [S12] => stream_and_group_never_run_together;
    "names.every_other_character_means_itself" [S12] => every_other_character_means_itself;
    "names.of_1_to_255_bytes_are_valid" [S12] => of_1_to_255_bytes_are_valid;
    "names.with_control_characters_are_invalid" [S12] => with_control_characters_are_invalid;
    "names.of_consumers_are_kept_as_given" [S12] => of_consumers_are_kept_as_given;
}

/// Names that a store's collation may fold: case, accents, trailing and
/// leading space, composed and decomposed letters, wide letters, sharp s.
const ALIKE: [&str; 14] =
    ["A", "a", "a ", " a", "é", "e", "e\u{301}", "ａ", "ß", "ss", "İ", "i", "ı", "a\u{200b}"];

/// Characters that mean something to some store, shell or URL.
const SPECIAL: [&str; 24] = [
    "a:b", "{a}", "{", "}", "a{b}c", "%", "_", "'", "\"", "\\", "/", "..", "*", "?", "[a]", "$a",
    "a.b", "#", ";", "--", "🦀", "a|b", "NULL", "0",
];

async fn sorted(rheo: &Rheo) -> Vec<String> {
    let streams = rheo.list_streams().await.expect("it lists");
    streams.iter().map(|stream| stream.name.to_string()).collect()
}

fn in_byte_order(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|&name| name.into()).collect();
    names.sort_unstable();
    names
}

/// Creates a stream of each name with one event that tells it, and finds each
/// event under its own name only.
async fn each_is_a_stream(rheo: &Rheo, names: &[&str]) {
    for &name in names {
        rheo.create_stream(name, 1).await.expect(name);
        rheo.append(name, NewEvent::new("t", json!(name))).await.expect(name);
    }
    for &name in names {
        let events = rheo.read(name, 0, 0, 10).await.expect(name);
        let told: Vec<_> = events.iter().map(rheo_core::Event::payload).collect();
        assert_eq!(told, [json!(name)]);
        assert_eq!(events[0].stream().as_str(), name);
    }
    assert_eq!(sorted(rheo).await, in_byte_order(names));
}

/// Streams whose names look alike are different streams.
async fn streams_are_compared_byte_for_byte(trial: Trial) {
    let rheo = trial.rheo().await;
    each_is_a_stream(&rheo, &ALIKE).await;
    rheo.delete_stream("a", Confirm::Yes).await.expect("it is deleted");
    let rest: Vec<_> = ALIKE.into_iter().filter(|&name| name != "a").collect();
    assert_eq!(sorted(&rheo).await, in_byte_order(&rest));
}

/// Groups whose names look alike have progress of their own.
async fn groups_are_compared_byte_for_byte(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    rheo.append("s", NewEvent::new("t", 1)).await.expect("it is appended");
    for name in ALIKE {
        rheo.create_group("s", name, GroupOptions::default()).await.expect(name);
        let deliveries = rheo.fetch("s", name, 1, FetchOptions::default()).await.expect(name);
        assert_eq!(deliveries.len(), 1, "{name:?}");
        assert_eq!(deliveries[0].lease.group().as_str(), name);
        rheo.ack(&deliveries[0]).await.expect(name);
    }
    let groups = rheo.list_groups("s").await.expect("it lists");
    let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
    assert_eq!(groups, in_byte_order(&ALIKE));
}

/// A stream and a group whose names, put together, read alike are not confused.
async fn stream_and_group_never_run_together(trial: Trial) {
    let rheo = trial.rheo().await;
    let pairs = [("a:b", "c"), ("a", "b:c"), ("a/b", "c"), ("a", "b/c"), ("{a}", "b"), ("a", "}b")];
    for stream in ["a:b", "a", "a/b", "{a}"] {
        rheo.create_stream(stream, 1).await.expect(stream);
        rheo.append(stream, NewEvent::new("t", json!(stream))).await.expect(stream);
    }
    for (stream, group) in pairs {
        rheo.create_group(stream, group, GroupOptions::default()).await.expect(group);
    }
    for (stream, group) in pairs {
        let options = FetchOptions::default();
        let deliveries = rheo.fetch(stream, group, 10, options).await.expect(group);
        assert_eq!(deliveries.len(), 1, "{stream:?} {group:?}");
        assert_eq!(deliveries[0].event.payload(), json!(stream));
        rheo.ack(&deliveries[0]).await.expect(group);
        assert_eq!(rheo.lag(stream, group).await.expect(group).total(), 0);
    }
}

/// A character that means something to a store means nothing in a name.
async fn every_other_character_means_itself(trial: Trial) {
    each_is_a_stream(&trial.rheo().await, &SPECIAL).await;
}

/// Names have 1 to 255 bytes, counted in UTF-8.
async fn of_1_to_255_bytes_are_valid(trial: Trial) {
    let rheo = trial.rheo().await;
    let (plain, wide) = ("x".repeat(255), format!("{}x", "é".repeat(127)));
    each_is_a_stream(&rheo, &["x", &plain, &wide]).await;
    for group in [&plain, &wide] {
        rheo.create_group(&plain, group, GroupOptions::default()).await.expect("it is new");
        let options = FetchOptions::default().consumer(group);
        let deliveries = rheo.fetch(&plain, group, 1, options).await.expect("it fetches");
        rheo.ack(&deliveries[0]).await.expect("the lease is current");
    }
    for name in ["", &"x".repeat(256), &"é".repeat(128)] {
        is_invalid(&rheo, &plain, name).await;
    }
}

/// Control characters are invalid in names of every sort, and create nothing.
async fn with_control_characters_are_invalid(trial: Trial) {
    let rheo = trial.rheo().await;
    rheo.create_stream("s", 1).await.expect("the stream is new");
    rheo.create_group("s", "g", GroupOptions::default()).await.expect("the group is new");
    for name in ["\0", "a\0b", "a\nb", "\t", "a\r", "\u{1b}", "\u{7f}", "\u{85}", "\u{9f}"] {
        is_invalid(&rheo, "s", name).await;
    }
    assert_eq!(sorted(&rheo).await, ["s"]);
    assert_eq!(rheo.list_groups("s").await.expect("it lists").len(), 1);
}

async fn is_invalid(rheo: &Rheo, stream: &str, name: &str) {
    let consumer = FetchOptions::default().consumer(name);
    let told = [
        failure(rheo.create_stream(name, 1).await),
        failure(rheo.append(name, NewEvent::new("t", 1)).await),
        failure(rheo.create_group(stream, name, GroupOptions::default()).await),
        failure(rheo.fetch(stream, name, 1, FetchOptions::default()).await),
        failure(rheo.fetch(stream, "g", 1, consumer).await),
    ];
    assert_eq!(told, [ErrorKind::Invalid; 5], "{name:?}");
}

/// A lease tells its consumer byte for byte as it called itself.
async fn of_consumers_are_kept_as_given(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let names = || ALIKE.into_iter().chain(SPECIAL);
    let events = names().map(|name| NewEvent::new("t", json!(name))).collect();
    rheo.append_batch("s", events).await.expect("they are appended");
    for name in names() {
        let options = FetchOptions::default().consumer(name);
        let deliveries = rheo.fetch("s", "g", 1, options).await.expect(name);
        assert_eq!(deliveries[0].lease.consumer().as_str(), name);
        rheo.ack(&deliveries[0]).await.expect(name);
    }
}

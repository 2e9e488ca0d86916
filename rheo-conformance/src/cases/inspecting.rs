//! Looking at streams, groups and dead letters: law I1.

use std::time::Duration;

use rheo_core::{
    ErrorKind, FetchOptions, GroupInfo, GroupOptions, PartitionProgress, Position, Replay,
    ReplayOptions, Rheo,
};

use crate::Trial;
use crate::case::case_table;
use crate::trial::{ack_all, append_to, dead, drain, failure, fetch, info, sequences};

case_table! {
    "inspect.streams_are_listed_sorted" [I1] => streams_are_listed_sorted;
    "inspect.partitions_are_listed" [I1] needs [Partitions] => partitions_are_listed;
    "inspect.groups_are_listed_sorted" [I1] => groups_are_listed_sorted;
    "inspect.every_count_is_told" [I1] => every_count_is_told;
    "inspect.partitions_are_told_apart" [I1] needs [Partitions] => partitions_are_told_apart;
    "inspect.lag_is_the_sum_over_partitions" [I1] needs [Partitions]
        => lag_is_the_sum_over_partitions;
    "inspect.a_drained_stream_has_no_lag" [I1] needs [Partitions] => a_drained_stream_has_no_lag;
    "inspect.counts_return_to_0_when_leases_end" [I1] => counts_return_to_0_when_leases_end;
    "inspect.leased_returns_to_0_when_leases_expire" [I1] => leased_returns_to_0_on_expiry;
    "inspect.looking_settles_nothing" [I1 C6] => looking_settles_nothing;
    "inspect.dead_letters_tell_what_happened" [I1] => dead_letters_tell_what_happened;
    "inspect.dead_letters_come_oldest_first" [I1] => dead_letters_come_oldest_first;
    "inspect.dead_letters_come_in_pages" [I1] needs [Partitions] => dead_letters_come_in_pages;
    "inspect.an_unknown_dead_letter_is_no_cursor" [I1] => an_unknown_dead_letter_is_no_cursor;
    "inspect.a_replayed_dead_letter_is_no_cursor" [I1 R4] needs [Replay]
        => a_replayed_dead_letter_is_no_cursor;
    "inspect.dead_letter_limits_are_1_to_10000" [I1] => dead_letter_limits_are_1_to_10000;
}

async fn lag(rheo: &Rheo) -> u64 {
    rheo.lag("s", "g").await.expect("it tells").total()
}

fn counts(info: &GroupInfo) -> [u64; 4] {
    [info.lag(), info.leased(), info.waiting(), info.dead_letters()]
}

/// Streams are listed by name, byte for byte, to every client.
async fn streams_are_listed_sorted(trial: Trial) {
    let (rheo, other) = (trial.rheo().await, trial.rheo().await);
    assert_eq!(rheo.list_streams().await.expect("it lists"), []);
    for name in ["b", "a", "B", "é", "a b", "ab", "10", "9"] {
        rheo.create_stream(name, 1).await.expect("the stream is new");
    }
    let listed = other.list_streams().await.expect("it lists");
    let names: Vec<_> = listed.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["10", "9", "B", "a", "a b", "ab", "b", "é"]);
}

/// The list tells how many partitions each stream has.
async fn partitions_are_listed(trial: Trial) {
    let rheo = trial.rheo().await;
    for (name, partitions) in [("b", 7), ("a", 1), ("c", 1024)] {
        rheo.create_stream(name, partitions).await.expect("the stream is new");
    }
    let listed = rheo.list_streams().await.expect("it lists");
    let told: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.partitions)).collect();
    assert_eq!(told, [("a", 1), ("b", 7), ("c", 1024)]);
}

/// The groups of a stream, and no other's, are listed by name, byte for byte.
async fn groups_are_listed_sorted(trial: Trial) {
    let rheo = trial.rheo().await;
    for stream in ["s", "other"] {
        rheo.create_stream(stream, 1).await.expect("the stream is new");
    }
    assert_eq!(rheo.list_groups("s").await.expect("it lists"), []);
    for name in ["b", "a", "B", "é", "ab", "10", "9"] {
        rheo.create_group("s", name, GroupOptions::default()).await.expect("the group is new");
    }
    rheo.create_group("other", "c", GroupOptions::default()).await.expect("the group is new");
    let listed = trial.rheo().await.list_groups("s").await.expect("it lists");
    let names: Vec<_> = listed.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["10", "9", "B", "a", "ab", "b", "é"]);
}

/// Leased, waiting and dead events are counted, each as what it is.
async fn every_count_is_told(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(3)).await;
    append_to(&rheo, 0, 8).await;
    let deliveries = fetch(&rheo, 6).await;
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.ack(&deliveries[1]).await.expect("the lease is current");
    rheo.retry(&deliveries[2], "later", Duration::from_secs(60)).await.expect("it is current");
    rheo.reject(&deliveries[3], "no").await.expect("the lease is current");
    let info = info(&rheo).await;
    assert_eq!((info.name.as_str(), info.max_attempts, info.ordered), ("g", 3, false));
    let expected = PartitionProgress {
        high_watermark: 8,
        frontier: 2,
        leased: 2,
        waiting: 1,
        dead_letters: 1,
    };
    assert_eq!(info.partitions, [expected]);
    let told = rheo.lag("s", "g").await.expect("it tells");
    assert_eq!(told.partitions, [expected]);
    assert_eq!(told.total(), 6);
}

/// Each partition has counts of its own, and an empty one has none.
async fn partitions_are_told_apart(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    append_to(&rheo, 0, 2).await;
    append_to(&rheo, 2, 4).await;
    let options = FetchOptions::default().partitions([2]);
    let deliveries = rheo.fetch("s", "g", 3, options).await.expect("it fetches");
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.reject(&deliveries[2], "no").await.expect("the lease is current");
    let first = PartitionProgress { high_watermark: 2, ..PartitionProgress::default() };
    let last = PartitionProgress {
        high_watermark: 4,
        frontier: 1,
        leased: 1,
        waiting: 0,
        dead_letters: 1,
    };
    let expected = [first, PartitionProgress::default(), last];
    assert_eq!(info(&rheo).await.partitions, expected);
}

/// Lag is the distance from frontier to high watermark, summed over partitions.
async fn lag_is_the_sum_over_partitions(trial: Trial) {
    let rheo = trial.with_group(4, GroupOptions::default()).await;
    for (partition, count) in [(0, 5), (1, 3), (3, 1)] {
        append_to(&rheo, partition, count).await;
    }
    assert_eq!(lag(&rheo).await, 9);
    let options = FetchOptions::default().partitions([0]);
    let deliveries = rheo.fetch("s", "g", 10, options).await.expect("it fetches");
    ack_all(&rheo, &deliveries[1..]).await;
    assert_eq!(lag(&rheo).await, 9, "the first is a hole");
    ack_all(&rheo, &deliveries[..1]).await;
    let told = rheo.lag("s", "g").await.expect("it tells");
    let each: Vec<u64> = told.partitions.iter().map(PartitionProgress::lag).collect();
    assert_eq!((each, told.total()), (vec![0, 3, 0, 1], 4));
}

/// A stream that is drained has lag 0, however much it has held, also for a
/// group whose events ended as dead letters.
async fn a_drained_stream_has_no_lag(trial: Trial) {
    let rheo = trial.with_group(2, GroupOptions::default().max_attempts(1)).await;
    for round in 1..=3 {
        append_to(&rheo, 0, 300).await;
        append_to(&rheo, 1, 30).await;
        assert_eq!(lag(&rheo).await, 330);
        let deliveries = fetch(&rheo, 10).await;
        for delivery in deliveries {
            rheo.reject(&delivery, "no").await.expect("the lease is current");
        }
        drain(&rheo).await;
        assert_eq!(counts(&info(&rheo).await), [0, 0, 0, 10 * round]);
    }
}

/// When all leases have ended, in whatever way, none is counted.
async fn counts_return_to_0_when_leases_end(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(2)).await;
    append_to(&rheo, 0, 4).await;
    let deliveries = fetch(&rheo, 4).await;
    assert_eq!(counts(&info(&rheo).await), [4, 4, 0, 0]);
    rheo.ack(&deliveries[0]).await.expect("the lease is current");
    rheo.retry(&deliveries[1], "again", Duration::ZERO).await.expect("the lease is current");
    rheo.reject(&deliveries[2], "no").await.expect("the lease is current");
    rheo.release(&deliveries[3]).await.expect("the lease is current");
    let info_now = info(&rheo).await;
    assert_eq!((info_now.leased(), info_now.lag(), info_now.dead_letters()), (0, 3, 1));
    assert_eq!(sequences(&drain(&rheo).await), [2, 4]);
    assert_eq!(counts(&info(&rheo).await), [0, 0, 0, 1]);
}

/// When consumers vanish and their leases expire, none is counted as leased.
async fn leased_returns_to_0_on_expiry(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    for consumer in ["one", "two", "three"] {
        let options = FetchOptions::default().consumer(consumer).lease(Duration::from_secs(5));
        rheo.fetch("s", "g", 1, options).await.expect("it fetches");
    }
    assert_eq!(counts(&info(&rheo).await), [5, 3, 0, 0]);
    trial.clock().advance(Duration::from_micros(4_999_999));
    assert_eq!(info(&rheo).await.leased(), 3);
    trial.clock().advance(Duration::from_micros(1));
    assert_eq!(counts(&info(&rheo).await), [5, 0, 3, 0]);
    assert_eq!(drain(&rheo).await.len(), 5);
    assert_eq!(counts(&info(&rheo).await), [0, 0, 0, 0]);
}

/// However often one looks, no lease ends and nothing dies: the fetch that
/// finds a used-up lease does that.
async fn looking_settles_nothing(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default().max_attempts(1)).await;
    append_to(&rheo, 0, 2).await;
    let deliveries = fetch(&rheo, 2).await;
    trial.advance_secs(60);
    for rheo in [&rheo, &trial.rheo().await] {
        assert_eq!(lag(rheo).await, 2);
        assert_eq!(info(rheo).await.dead_letters(), 0);
        assert_eq!(dead(rheo).await, []);
        rheo.read("s", 0, 0, 10).await.expect("it reads");
    }
    rheo.ack(&deliveries[0]).await.expect("the lease is current, though expired");
    assert_eq!(fetch(&rheo, 2).await.len(), 0);
    assert_eq!(counts(&info(&rheo).await), [0, 0, 0, 1]);
}

/// A dead letter tells its event, at which attempt it died, why and when.
async fn dead_letters_tell_what_happened(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    let appended = append_to(&rheo, 0, 2).await;
    let delivery = fetch(&rheo, 1).await.remove(0);
    rheo.retry(&delivery, "again", Duration::ZERO).await.expect("the lease is current");
    let delivery = fetch(&rheo, 1).await.remove(0);
    trial.clock().advance(Duration::from_micros(1_000_001));
    rheo.reject(&delivery, "brökén 🦀").await.expect("the lease is current");
    let letters = trial.rheo().await.dead_letters("s", "g", 10, None).await.expect("it lists");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].event, appended[0]);
    assert_eq!(letters[0].position(), Position::new(0, 1));
    assert_eq!((letters[0].attempt, letters[0].reason.as_str()), (2, "brökén 🦀"));
    assert_eq!(letters[0].dead_at, trial.clock().now());
}

/// Dead letters are listed by when they died, not by their sequence.
async fn dead_letters_come_oldest_first(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 5).await;
    let deliveries = fetch(&rheo, 5).await;
    for at in [3, 0, 4, 1] {
        rheo.reject(&deliveries[at], format!("no {at}")).await.expect("the lease is current");
        trial.clock().advance(Duration::from_micros(1));
    }
    let told: Vec<_> = dead(&rheo).await.into_iter().map(|(sequence, ..)| sequence).collect();
    assert_eq!(told, [4, 1, 5, 2]);
}

/// Pages of dead letters go on after the last one's position, over all
/// partitions, and skip and repeat none.
async fn dead_letters_come_in_pages(trial: Trial) {
    let rheo = trial.with_group(3, GroupOptions::default()).await;
    for partition in 0..3 {
        append_to(&rheo, partition, 5).await;
    }
    let mut deliveries = fetch(&rheo, 15).await;
    trial.rng().shuffle(&mut deliveries);
    let mut died = Vec::new();
    for delivery in &deliveries {
        rheo.reject(delivery, "no").await.expect("the lease is current");
        trial.clock().advance(Duration::from_micros(1));
        died.push(delivery.event.position());
    }
    for limit in [1, 4, 15, 16] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = rheo.dead_letters("s", "g", limit, after).await.expect("it lists");
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.position());
            listed.extend(page.iter().map(|letter| letter.position()));
        }
        assert_eq!(listed, died, "in pages of {limit}");
    }
}

/// A position that is not in the list is told as such.
async fn an_unknown_dead_letter_is_no_cursor(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 3).await;
    let deliveries = fetch(&rheo, 3).await;
    rheo.reject(&deliveries[1], "no").await.expect("the lease is current");
    let known = rheo.dead_letters("s", "g", 10, Some(Position::new(0, 2))).await;
    assert_eq!(known.expect("it lists"), []);
    let unknown = [(0, 1), (0, 3), (0, 4), (0, 0), (0, u64::MAX), (1, 2), (u32::MAX, 2)];
    for (partition, sequence) in unknown {
        let after = Some(Position::new(partition, sequence));
        let told = failure(rheo.dead_letters("s", "g", 10, after).await);
        assert_eq!(told, ErrorKind::CursorNotFound, "{partition}-{sequence}");
    }
}

/// A dead letter that was replayed is no longer in the list, and no cursor.
async fn a_replayed_dead_letter_is_no_cursor(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    append_to(&rheo, 0, 2).await;
    for delivery in fetch(&rheo, 2).await {
        rheo.reject(&delivery, "no").await.expect("the lease is current");
    }
    let first = Position::new(0, 1);
    let replay = Replay::Positions(vec![first]);
    rheo.replay("s", "g", replay, ReplayOptions::default()).await.expect("it replays");
    assert_eq!(dead(&rheo).await, [(2, 1, "no".into())]);
    let told = failure(rheo.dead_letters("s", "g", 10, Some(first)).await);
    assert_eq!(told, ErrorKind::CursorNotFound);
}

/// The limit of the dead-letter list is 1 to 10 000.
async fn dead_letter_limits_are_1_to_10000(trial: Trial) {
    let rheo = trial.with_group(1, GroupOptions::default()).await;
    for limit in [0, 10_001, usize::MAX] {
        let told = failure(rheo.dead_letters("s", "g", limit, None).await);
        assert_eq!(told, ErrorKind::Invalid);
    }
    assert_eq!(rheo.dead_letters("s", "g", 10_000, None).await.expect("it lists"), []);
}

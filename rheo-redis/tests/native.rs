//! The server's own consumer group shows how a Rheo group stands, whatever was
//! done before: its pending list holds the open events with their attempts, and
//! it has read up to the cursor. What is done to it by hand is set right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, FromRedisValue, Value, cmd};
use rheo_conformance::servers::{self, Redis as Server};
use rheo_core::{
    Confirm, Delivery, FetchOptions, GroupOptions, ManualClock, NewEvent, Outcome, Position,
    Replay, ReplayOptions, Rheo, Start, Timestamp,
};
use rheo_redis::{Options, Redis};

const PROGRAMS: u64 = 24;
const STEPS: u64 = 80;

const STREAM: &str = "GROUP";
/// A name that means something to the server, and to those who write keys.
const GROUP: &str = "$ {>}:%/COUNT 1";
const LOG: &str = "rheo:{GROUP/0}";
const HASH: &str = "rheo:{GROUP/0}:group:$ %7b>%7d%3a%25%2fCOUNT 1";

/// Numbers that look random, and are the same each time.
struct Dice(u64);

impl Dice {
    /// One of the numbers below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }

    /// A number from 1 to `most`.
    fn count(&mut self, most: u64) -> u64 {
        1 + self.roll(most)
    }
}

/// A stream of one partition with a group, and the server as an administrator sees it.
struct World {
    rheo: Rheo,
    clock: ManualClock,
    admin: MultiplexedConnection,
    dice: Dice,
    /// How many events there are.
    last: u64,
    deliveries: Vec<Delivery>,
}

impl World {
    async fn new(server: &Server, number: u64) -> Self {
        let client = Client::open(server.url()).unwrap();
        let admin = client.get_multiplexed_async_connection().await.unwrap();
        let redis = Redis::connect_with(server.url(), Options::default()).await.unwrap();
        // Half of the programs run before 1970.
        let start = if number.is_multiple_of(2) { 1_700_000_000_000_000 } else { -5_000_000 };
        let clock = ManualClock::new(Timestamp::from_micros(start));
        let rheo = Rheo::builder(redis).clock(clock.clone()).build().await.unwrap();
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number << 32));
        let options = GroupOptions::default()
            .max_attempts(3)
            .ordered(dice.roll(4) == 0)
            .start(Start::AfterSequence(dice.roll(4)));
        rheo.create_stream(STREAM, 1).await.unwrap();
        rheo.create_group(STREAM, GROUP, options).await.unwrap();
        Self { rheo, clock, admin, dice, last: 0, deliveries: Vec::new() }
    }

    async fn asks<T: FromRedisValue>(&mut self, words: &[&str]) -> T {
        cmd(words[0]).arg(&words[1..]).query_async(&mut self.admin).await.unwrap()
    }

    async fn step(&mut self) {
        match self.dice.roll(20) {
            0..3 => self.append().await,
            3..8 => self.claim().await,
            8..14 => self.settle().await,
            14 => self.renew().await,
            15..17 => self.clock.advance(Duration::from_millis(self.dice.count(3000))),
            17 => self.replay().await,
            18 => self.meddle().await,
            _ if self.dice.roll(8) == 0 => self.reset().await,
            _ => {}
        }
    }

    async fn append(&mut self) {
        let count = self.dice.count(6);
        let events = (0..count).map(|number| NewEvent::new("t", number)).collect();
        self.rheo.append_batch(STREAM, events).await.unwrap();
        self.last += count;
    }

    async fn claim(&mut self) {
        let consumer = [">", "STREAMS", "é \""][self.dice.roll(3) as usize];
        let lease = Duration::from_millis(self.dice.count(4000));
        let options = FetchOptions::default().consumer(consumer).lease(lease);
        let limit = self.dice.count(7) as usize;
        self.deliveries.extend(self.rheo.fetch(STREAM, GROUP, limit, options).await.unwrap());
    }

    /// Settles some leases, stale ones among them, in any order.
    async fn settle(&mut self) {
        let mut settlements = Vec::new();
        for _ in 0..self.dice.count(5).min(self.deliveries.len() as u64) {
            let pick = self.dice.roll(self.deliveries.len() as u64) as usize;
            let delay = Duration::from_millis(self.dice.count(2000));
            let outcome = match self.dice.roll(8) {
                0..4 => Outcome::Ack,
                4 => Outcome::retry("now"),
                5 => Outcome::retry_after("later", delay),
                6 => Outcome::Release,
                _ => Outcome::reject("no"),
            };
            settlements.push((self.deliveries.swap_remove(pick), outcome));
        }
        // Some are stale.
        self.rheo.settle(settlements).await;
    }

    async fn renew(&mut self) {
        if let Some(delivery) = self.deliveries.last() {
            let lasting = Duration::from_millis(self.dice.count(4000));
            // It may be stale.
            let _ = self.rheo.renew(delivery, lasting).await;
        }
    }

    async fn replay(&mut self) {
        let choice = self.dice.roll(3);
        let which = match choice {
            0 => Replay::AfterSequence(self.dice.roll(self.last + 3)),
            1 if self.last > 0 => Replay::Positions(
                (0..3).map(|_| Position::new(0, self.dice.count(self.last))).collect(),
            ),
            _ => Replay::DeadLetters,
        };
        self.rheo.replay(STREAM, GROUP, which, ReplayOptions::default()).await.unwrap();
    }

    async fn reset(&mut self) {
        let start = Start::AfterSequence(self.dice.roll(self.last + 3));
        self.rheo.reset_group(STREAM, GROUP, Confirm::Yes, start).await.unwrap();
    }

    /// Does to the server's own group what nobody should, and claims.
    async fn meddle(&mut self) {
        let read = ["XREADGROUP", "GROUP", GROUP, "hand", "COUNT", "3"];
        match self.dice.roll(4) {
            0 => self.asks::<Value>(&[&read[..], &["STREAMS", LOG, ">"]].concat()).await,
            1 => self.asks(&[&read[..], &["NOACK", "STREAMS", LOG, ">"]].concat()).await,
            2 => self.asks(&["XGROUP", "SETID", LOG, GROUP, "$"]).await,
            _ => self.asks(&["XGROUP", "SETID", LOG, GROUP, "0"]).await,
        };
        self.claim().await;
    }

    /// Whether the server's own group stands as Rheo's does.
    async fn assert_alike(&mut self) {
        let (attempts, firsts) = self.open().await;
        let cursor: u64 = self.asks(&["HGET", HASH, "cursor"]).await;
        // What was read by hand is pending above the cursor until it is claimed.
        let upto = format!("0-{cursor}");
        let pending: Vec<(String, String, i64, u64)> =
            self.asks(&["XPENDING", LOG, GROUP, "-", &upto, "100000"]).await;
        let pending = pending.into_iter().map(|(id, _, _, count)| (sequence(&id), count)).collect();
        assert_eq!(attempts, pending, "open events and pending list");

        let groups: Vec<HashMap<String, Value>> = self.asks(&["XINFO", "GROUPS", LOG]).await;
        let read = String::from_redis_value(groups[0]["last-delivered-id"].clone()).unwrap();
        assert_eq!(sequence(&read), cursor);
        let lag = Option::<u64>::from_redis_value(groups[0]["lag"].clone()).unwrap();
        assert!(
            lag.is_none_or(|lag| lag == self.last.saturating_sub(cursor)),
            "{lag:?} after {cursor}"
        );

        let mut found = BTreeSet::new();
        for place in ["leased", "delayed", "ready"] {
            let here: Vec<u64> =
                self.asks(&["ZRANGE", &format!("{HASH}:{place}"), "0", "-1"]).await;
            for first in here {
                assert!(found.insert(first), "{first} is found twice");
            }
        }
        assert_eq!(found, firsts);
    }

    /// The attempts of all open events, and where their runs begin.
    async fn open(&mut self) -> (BTreeMap<u64, u64>, BTreeSet<u64>) {
        let runs: Vec<String> = self.asks(&["ZRANGE", &format!("{HASH}:open"), "0", "-1"]).await;
        let (mut attempts, mut firsts) = (BTreeMap::new(), BTreeSet::new());
        for run in runs {
            let numbers: Vec<u64> = run.split(' ').take(3).map(|it| it.parse().unwrap()).collect();
            firsts.insert(numbers[0]);
            for sequence in numbers[0]..=numbers[1] {
                assert_eq!(attempts.insert(sequence, numbers[2]), None, "{sequence} is open twice");
            }
        }
        (attempts, firsts)
    }
}

fn sequence(id: &str) -> u64 {
    id.strip_prefix("0-").unwrap().parse().unwrap()
}

#[tokio::test]
async fn the_servers_own_group_stands_as_the_group_does() {
    let Some(server) = servers::found("redis", Server::private().await) else { return };
    for number in 0..PROGRAMS {
        let mut world = World::new(&server, number).await;
        for _ in 0..STEPS {
            world.step().await;
            world.assert_alike().await;
        }
        world.rheo.delete_stream(STREAM, Confirm::Yes).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_done_by_hand_costs_no_event() {
    let Some(server) = servers::found("redis", Server::private().await) else { return };
    let mut world = World::new(&server, 0).await;
    world.rheo.delete_group(STREAM, GROUP, Confirm::Yes).await.unwrap();
    world.rheo.create_group(STREAM, GROUP, GroupOptions::default()).await.unwrap();
    for _ in 0..3 {
        let events = (0..40).map(|number| NewEvent::new("t", number)).collect();
        world.rheo.append_batch(STREAM, events).await.unwrap();
        for _ in 0..8 {
            world.meddle().await;
        }
    }
    let rest = world.rheo.fetch(STREAM, GROUP, 120, FetchOptions::default()).await.unwrap();
    world.deliveries.extend(rest);
    let sequences = world.deliveries.iter().map(|delivery| delivery.event.sequence());
    assert!(sequences.eq(1..=120));
}

//! The boundary between the handle and a store: the [`Backend`] trait and the
//! resolved requests it receives.
//!
//! This is for authors of adapters; applications use [`Rheo`](crate::Rheo).
//! The handle has validated every name and value, filled in every default and
//! refused what the backend does not claim. What remains is the store's own work.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Capabilities, ConsumerId, DeadLetter, Delivery, Error, ErrorKind, Event, EventBody, Fence,
    Filter, GroupInfo, GroupName, GroupSettings, Order, Outcome, Position, Result, StreamName,
    Timestamp, Token,
};

/// Whose time judges leases, delays and expiry in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Now {
    /// The store's own clock.
    Store,
    /// This instant: the instance has a manual clock, and that alone rules.
    At(Timestamp),
}

impl Now {
    /// The instant meant, where the store's clock is this process's own.
    #[must_use]
    pub fn or_system(self) -> Timestamp {
        match self {
            Self::Store => Timestamp::now(),
            Self::At(instant) => instant,
        }
    }
}

/// A stream as the handle knows it.
///
/// A backend answers `StreamNotFound` unless it has a stream of this name with
/// this many partitions; the handle then looks the stream up anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StreamRef {
    /// The stream's name.
    pub name: StreamName,
    /// How many partitions it has.
    pub partitions: u32,
}

/// A group of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupRef {
    /// The stream, which is looked up before the group.
    pub stream: StreamRef,
    /// The group's name.
    pub name: GroupName,
}

/// Which server a backend is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The product: `memory`, `PostgreSQL`, `Valkey`, …
    pub product: String,
    /// Its version, as it says itself.
    pub version: String,
}

/// An event with its partition chosen, on its way to the log.
#[derive(Clone, Debug)]
pub struct RoutedEvent {
    /// The partition to append to.
    pub partition: u32,
    /// The event itself.
    pub body: EventBody,
    /// Whether the id was given by the caller, and is an idempotency key
    /// within the partition. Ids that Rheo generated need no lookup and no index.
    pub idempotent: bool,
}

/// Append these events.
///
/// Order is kept; sequences are contiguous in each partition; all or nothing
/// in each partition, and in all where `atomic_batch` is claimed. The list is
/// never empty. An idempotent id that is stored already, or stands earlier in
/// the list, yields the stored event.
#[derive(Clone, Debug)]
pub struct Append {
    /// The stream.
    pub stream: StreamRef,
    /// The events.
    pub events: Vec<RoutedEvent>,
}

/// Which partitions an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partitions {
    /// All of the stream.
    All,
    /// These: each exists and is named once, in ascending order.
    Only(Vec<u32>),
}

impl Partitions {
    /// Their numbers, in a stream of `count` partitions.
    pub fn numbers(&self, count: u32) -> impl Iterator<Item = u32> {
        let (all, only) = match self {
            Self::All => (0..count, &[][..]),
            Self::Only(partitions) => (0..0, partitions.as_slice()),
        };
        all.chain(only.iter().copied())
    }
}

/// Claim at most `limit` events for a group.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The group.
    pub group: GroupRef,
    /// The partitions to claim from.
    pub partitions: Partitions,
    /// At least 1.
    pub limit: usize,
    /// Who claims.
    pub consumer: ConsumerId,
    /// How long the leases are to last.
    pub lease: Duration,
    /// The secret of this claim.
    pub fence: Fence,
    /// Whose time judges.
    pub now: Now,
}

/// One lease and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The lease's token.
    pub token: Token,
    /// How it ends. Reasons are cut and cleaned already.
    pub outcome: Outcome,
}

/// Settle these leases, each by itself, in this order.
#[derive(Clone, Debug)]
pub struct Settle {
    /// The group.
    pub group: GroupRef,
    /// The leases and their outcomes; never empty.
    pub settlements: Vec<Settlement>,
    /// Whose time judges.
    pub now: Now,
}

/// Renew these leases, each by itself.
#[derive(Clone, Debug)]
pub struct Renew {
    /// The group.
    pub group: GroupRef,
    /// The leases; never empty.
    pub tokens: Vec<Token>,
    /// How long from now they are to last.
    pub lease: Duration,
    /// Whose time judges.
    pub now: Now,
}

/// Why the store refused a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRefusal {
    /// It is not the current lease of its event.
    Stale,
    /// It is current, and the receipt is not its own.
    ReceiptMismatch,
}

impl LeaseRefusal {
    /// What the caller is told about the lease of the event at `position`.
    #[must_use]
    pub fn to_error(
        self,
        operation: &'static str,
        stream: &StreamName,
        group: &GroupName,
        position: Position,
    ) -> Error {
        let kind = match self {
            Self::Stale => ErrorKind::StaleLease,
            Self::ReceiptMismatch => ErrorKind::ReceiptMismatch,
        };
        let context = format!("event {position} of stream {stream:?} in group {group:?}");
        Error::new(kind, operation, context)
    }
}

/// A run of sequences of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The partition.
    pub partition: u32,
    /// The first sequence, at least 1.
    pub first: u64,
    /// The last sequence, not below the first; may lie beyond the log's end.
    pub last: u64,
}

impl Range {
    /// Whether `sequence` lies in it.
    #[must_use]
    pub const fn contains(&self, sequence: u64) -> bool {
        self.first <= sequence && sequence <= self.last
    }
}

/// Make every event in these ranges claimable again.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The group.
    pub group: GroupRef,
    /// The ranges, disjoint, ascending by partition and sequence; never empty.
    pub ranges: Vec<Range>,
}

/// Create a group, or start it anew.
#[derive(Clone, Debug)]
pub struct CreateGroup {
    /// The group.
    pub group: GroupRef,
    /// Its rules.
    pub settings: GroupSettings,
    /// For each partition, the sequence after which the group begins.
    pub start: Vec<u64>,
}

/// Forget a group's leases, attempts, dead letters and progress.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The group.
    pub group: GroupRef,
    /// For each partition, the sequence after which the group begins anew.
    pub start: Vec<u64>,
}

/// Read one partition by sequence.
#[derive(Clone, Debug)]
pub struct Read {
    /// The stream.
    pub stream: StreamRef,
    /// The partition, which exists.
    pub partition: u32,
    /// The sequence after which to begin.
    pub after: u64,
    /// At least 1.
    pub limit: usize,
}

/// Find events.
#[derive(Clone, Debug)]
pub struct Search {
    /// The stream.
    pub stream: StreamRef,
    /// Where to look: at most one range for each partition, ascending by partition.
    pub ranges: Vec<Range>,
    /// What must hold, all of it, as [`Filter::matches`] says.
    pub filters: Vec<Filter>,
    /// By (sequence, partition), ascending or descending.
    pub order: Order,
    /// At least 1.
    pub limit: usize,
}

/// A place in the log to find, in each partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The last sequence.
    End,
    /// The sequence before the first event at or after this instant; where
    /// there is none, the last sequence.
    At(Timestamp),
}

/// A page of the dead-letter list.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    /// The group.
    pub group: GroupRef,
    /// Go on after this one; from the oldest where there is none.
    pub after: Option<Position>,
    /// At least 1.
    pub limit: usize,
}

/// Wait until there may be work.
#[derive(Clone, Debug)]
pub struct Wait {
    /// The group.
    pub group: GroupRef,
    /// How long at most, in real time.
    pub timeout: Duration,
    /// Whose time judges what is due.
    pub now: Now,
}

/// A store that keeps streams and groups.
///
/// Every method is one step of the store: it takes effect as its request says
/// or not at all, and dropping its future at any point leaves the store whole.
/// No method has a default body, so that nothing can be forgotten. An adapter
/// neither validates names, nor fills in defaults, nor retries unseen, nor
/// shows a payload in a log line or a message.
///
/// # Errors
/// All methods that name a stream fail with `StreamNotFound` where it is
/// missing, then with `GroupNotFound` where the group is; all fail with
/// `Unavailable` where the store cannot be reached. Further kinds are named
/// where they arise.
#[async_trait]
pub trait Backend: Any + Debug + Send + Sync {
    /// What this backend, as connected, promises.
    fn capabilities(&self) -> Capabilities;

    /// Makes the store ready: schema, functions. Does nothing where that is
    /// done already; safe when many start at once.
    async fn prepare(&self) -> Result<()>;

    /// Asks the store for a sign of life, and who it is.
    async fn ping(&self) -> Result<Server>;

    /// Creates a stream. `AlreadyExists` where the name is taken; of several
    /// that race, one wins.
    async fn create_stream(&self, stream: &StreamRef) -> Result<()>;

    /// Deletes a stream, its events and its groups.
    async fn delete_stream(&self, stream: &StreamName) -> Result<()>;

    /// How many partitions a stream has.
    async fn partitions(&self, stream: &StreamName) -> Result<u32>;

    /// All streams, by name.
    async fn list_streams(&self) -> Result<Vec<StreamRef>>;

    /// Creates a group. `AlreadyExists` where the name is taken.
    async fn create_group(&self, request: &CreateGroup) -> Result<()>;

    /// Deletes a group; its leases are stale from then on.
    async fn delete_group(&self, group: &GroupRef) -> Result<()>;

    /// All groups of a stream, by name.
    async fn list_groups(&self, stream: &StreamRef) -> Result<Vec<GroupName>>;

    /// A group's settings and progress, one entry for each partition. Settles nothing.
    async fn group_info(&self, group: &GroupRef, now: Now) -> Result<GroupInfo>;

    /// Appends events, and returns them as stored, in the order given.
    async fn append(&self, request: &Append) -> Result<Vec<Event>>;

    /// Claims events: inside a partition redeliveries before new events and
    /// lower sequences first; partitions take turns. Expired leases whose
    /// attempts are used up become dead letters on the way.
    async fn claim(&self, request: &Claim) -> Result<Vec<Delivery>>;

    /// Ends leases, and answers for each by itself, in the order given.
    async fn settle(&self, request: &Settle) -> Result<Vec<Result<(), LeaseRefusal>>>;

    /// Sets the leases' expiry to now and the given time, and answers for each
    /// by itself with the new expiry, in the order given.
    async fn renew(&self, request: &Renew) -> Result<Vec<Result<Timestamp, LeaseRefusal>>>;

    /// Makes events claimable again: revokes their leases, takes them off the
    /// dead-letter list, keeps their attempt counts. What was never handed out
    /// stays as it is.
    async fn replay(&self, request: &Replay) -> Result<()>;

    /// Starts a group anew, with the settings it has.
    async fn reset(&self, request: &Reset) -> Result<()>;

    /// Reads one partition, ascending.
    async fn read(&self, request: &Read) -> Result<Vec<Event>>;

    /// Finds events.
    async fn search(&self, request: &Search) -> Result<Vec<Event>>;

    /// Finds a place in each partition.
    async fn seek(&self, stream: &StreamRef, seek: Seek) -> Result<Vec<u64>>;

    /// A page of the dead-letter list, by time and, at the same time, by
    /// position. `CursorNotFound` where `after` is not in the list.
    async fn dead_letters(&self, request: &DeadLetters) -> Result<Vec<DeadLetter>>;

    /// Returns when there may be work, or after the timeout. A hint: it may
    /// come early or late, and a lost one does no harm.
    async fn wait(&self, request: &Wait) -> Result<()>;
}

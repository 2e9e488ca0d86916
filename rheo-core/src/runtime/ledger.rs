//! [`Ledger`]: the leases that are held, and what is to be done with each.
//! State only: no waiting, no store.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{Delivery, Lease, LeaseId, Outcome, Result};

/// Every lease that is not settled yet. Times are those of the stopwatch.
pub(super) struct Ledger {
    ordered: bool,
    lease: Duration,
    feeding: bool,
    stopping: bool,
    slots: HashMap<LeaseId, Slot>,
    /// Claimed and not handed on, in the order of claiming.
    buffer: VecDeque<Delivery>,
    /// In an ordered group, the partitions of which an event is handed on.
    busy: HashSet<u32>,
    queue: Vec<Settling>,
}

struct Slot {
    lease: Lease,
    stage: Stage,
    renew_at: Duration,
    valid_until: Duration,
}

enum Stage {
    Buffered,
    /// Handed on; the token tells whoever has it that the lease is lost.
    Running(CancellationToken),
    Settling,
}

/// A lease on its way to its end.
pub(super) struct Settling {
    pub(super) lease: Lease,
    pub(super) outcome: Outcome,
    /// Who wants to know what the store answered.
    pub(super) answer: Option<oneshot::Sender<Result<()>>>,
}

impl Ledger {
    pub(super) fn new(ordered: bool, lease: Duration) -> Self {
        Self {
            ordered,
            lease,
            feeding: true,
            stopping: false,
            slots: HashMap::new(),
            buffer: VecDeque::new(),
            busy: HashSet::new(),
            queue: Vec::new(),
        }
    }

    pub(super) fn unsettled(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn buffered(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn running(&self) -> usize {
        let running = |slot: &&Slot| matches!(slot.stage, Stage::Running(_));
        self.slots.values().filter(running).count()
    }

    pub(super) fn stopping(&self) -> bool {
        self.stopping
    }

    /// Whether nothing is held and nothing more will be.
    pub(super) fn finished(&self) -> bool {
        !self.feeding && self.slots.is_empty()
    }

    /// How many events to claim at `now`. Rather many at once than a few often,
    /// unless there is nothing to hand on. None while a lease is over that may
    /// yet be renewed: its event would be claimed away from ourselves.
    pub(super) fn room(&self, max_demand: usize, now: Duration) -> Option<usize> {
        let free = max_demand.saturating_sub(self.slots.len());
        let worthwhile = free >= max_demand.div_ceil(2) || self.next_index().is_none();
        let overdue = self.open().any(|slot| slot.valid_until <= now);
        (free > 0 && worthwhile && !overdue).then_some(free)
    }

    /// The leases that no outcome has been found for yet.
    fn open(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().filter(|slot| !matches!(slot.stage, Stage::Settling))
    }

    /// Takes in what a claim that was asked for at `asked` has yielded.
    pub(super) fn grant(&mut self, deliveries: Vec<Delivery>, asked: Duration) {
        for delivery in deliveries {
            let slot = Slot {
                lease: delivery.lease.clone(),
                stage: Stage::Buffered,
                renew_at: asked + self.lease / 2,
                valid_until: asked.saturating_add(self.lease),
            };
            self.slots.insert(delivery.lease.lease_id(), slot);
            self.buffer.push_back(delivery);
        }
        if self.stopping {
            self.release_buffered(|_| true);
        }
    }

    /// The next event to hand on, and the token that tells when its lease is lost.
    pub(super) fn next(&mut self) -> Option<(Delivery, CancellationToken)> {
        let delivery = self.buffer.remove(self.next_index()?)?;
        if self.ordered {
            self.busy.insert(delivery.event.partition());
        }
        let lost = CancellationToken::new();
        if let Some(slot) = self.slots.get_mut(&delivery.lease.lease_id()) {
            slot.stage = Stage::Running(lost.clone());
        }
        Some((delivery, lost))
    }

    fn next_index(&self) -> Option<usize> {
        let free = |delivery: &Delivery| !self.busy.contains(&delivery.event.partition());
        self.buffer.iter().position(free)
    }

    /// Ends what was handed on. Gives it back where there is nothing to settle
    /// because the lease is lost.
    pub(super) fn settle(&mut self, settling: Settling) -> Option<Settling> {
        let partition = settling.lease.position().partition;
        self.busy.remove(&partition);
        let Some(slot) = self.slots.get_mut(&settling.lease.lease_id()) else {
            return Some(settling);
        };
        slot.stage = Stage::Settling;
        let comes_again = matches!(settling.outcome, Outcome::Retry { .. } | Outcome::Release);
        self.queue.push(settling);
        if comes_again {
            self.release_run(partition);
        }
        None
    }

    /// Ends a lease for good.
    pub(super) fn remove(&mut self, lease: LeaseId) {
        self.slots.remove(&lease);
    }

    /// All that waits to be settled, in order.
    pub(super) fn take_queue(&mut self) -> Vec<Settling> {
        std::mem::take(&mut self.queue)
    }

    /// Puts back what the store could not settle, before what came since.
    pub(super) fn requeue(&mut self, mut again: Vec<Settling>) {
        again.append(&mut self.queue);
        self.queue = again;
    }

    /// When the first lease is to be renewed.
    pub(super) fn next_renewal(&self) -> Option<Duration> {
        self.slots.values().map(|slot| slot.renew_at).min()
    }

    /// The leases to renew now: those that are due by `now`, if any, and
    /// those that soon will be.
    pub(super) fn due(&self, now: Duration) -> Vec<Lease> {
        if self.next_renewal().is_none_or(|first| first > now) {
            return Vec::new();
        }
        let soon = now + self.lease / 10;
        let due = self.slots.values().filter(|slot| slot.renew_at <= soon);
        due.map(|slot| slot.lease.clone()).collect()
    }

    /// A lease lasts anew from `asked`.
    pub(super) fn renewed(&mut self, lease: Lease, asked: Duration) {
        if let Some(slot) = self.slots.get_mut(&lease.lease_id()) {
            slot.renew_at = asked + self.lease / 2;
            slot.valid_until = asked.saturating_add(self.lease);
            slot.lease = lease;
        }
    }

    /// When the first of the open leases that are valid at `now` ends.
    pub(super) fn next_end(&self, now: Duration) -> Option<Duration> {
        self.open().map(|slot| slot.valid_until).filter(|end| *end > now).min()
    }

    /// The leases whose time is over, after `since`, by `now`.
    pub(super) fn ended(&self, since: Duration, now: Duration) -> Vec<LeaseId> {
        let over = |slot: &&Slot| slot.valid_until > since && slot.valid_until <= now;
        self.slots.values().filter(over).map(|slot| slot.lease.lease_id()).collect()
    }

    /// Gives a lease up that somebody else may hold by now. One that is being
    /// settled stays: the store's answer to that decides. Returns whether it was given up.
    pub(super) fn lose(&mut self, lease: LeaseId) -> bool {
        match self.slots.get_mut(&lease) {
            None => return false,
            Some(slot) => match &slot.stage {
                Stage::Settling => {
                    // Asking again at once would yield the same answer.
                    slot.renew_at = slot.renew_at.saturating_add(self.lease / 2);
                    return false;
                }
                Stage::Running(lost) => lost.cancel(),
                Stage::Buffered => self.buffer.retain(|held| held.lease.lease_id() != lease),
            },
        }
        self.slots.remove(&lease);
        self.release_run(lease.position().partition);
        true
    }

    /// In an ordered group, what comes behind an event that comes again waits
    /// for it: the rest of the run goes back.
    fn release_run(&mut self, partition: u32) {
        if self.ordered {
            self.release_buffered(|delivery| delivery.event.partition() == partition);
        }
    }

    fn release_buffered(&mut self, chosen: impl Fn(&Delivery) -> bool) {
        let (back, kept) = std::mem::take(&mut self.buffer).into_iter().partition(chosen);
        self.buffer = kept;
        let back: VecDeque<Delivery> = back;
        for Delivery { lease, .. } in back {
            if let Some(slot) = self.slots.get_mut(&lease.lease_id()) {
                slot.stage = Stage::Settling;
            }
            self.queue.push(Settling { lease, outcome: Outcome::Release, answer: None });
        }
    }

    /// Nothing more is to be handed on: what is buffered goes back.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        self.release_buffered(|_| true);
    }

    /// No claim is under way any more, and none will be.
    pub(super) fn feed_ended(&mut self) {
        self.feeding = false;
    }

    /// Lets go of everything, and returns the leases, which end by expiry.
    pub(super) fn abandon(&mut self) -> Vec<Lease> {
        self.feeding = false;
        self.queue.clear();
        self.buffer.clear();
        let let_go = |(_, slot): (LeaseId, Slot)| {
            if let Stage::Running(lost) = slot.stage {
                lost.cancel();
            }
            slot.lease
        };
        let mut left: Vec<Lease> = self.slots.drain().map(let_go).collect();
        left.sort_by_key(Lease::position);
        left
    }
}

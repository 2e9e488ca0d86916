//! Claiming.

use std::collections::BTreeSet;
use std::sync::Arc;

use rheo_core::backend::{Claim, Settlement};
use rheo_core::progress::{ClaimTurn, Granted, OpenRun, Progress};
use rheo_core::{Delivery, Granting, LeaseId, Outcome, Position, Result, Token};
use serde_json::json;

use crate::Store;
use crate::codec;
use crate::db::{Conn, Row, args};
use crate::error::Failure;
use crate::operation::Operation;
use crate::state::{Cursor, Group, NEVER, Piece, int, list, open_run};

/// A partition in which there may be something to claim.
#[derive(Clone, Copy, Debug)]
struct Work {
    partition: u32,
    high_watermark: u64,
}

/// A claim on its way through the partitions.
struct Claiming<'a> {
    request: &'a Claim,
    group: Group,
    granting: Granting,
    deliveries: Vec<Delivery>,
}

/// A claim, and at which of the partitions it begins: every turn at another one.
#[derive(Clone, Debug)]
pub(crate) struct ClaimInTurn {
    pub(crate) claim: Claim,
    pub(crate) turn: usize,
}

impl Operation for ClaimInTurn {
    const NAME: &'static str = "fetch";
    type Output = Vec<Delivery>;

    async fn run(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Delivery>, Failure> {
        let Self { claim, turn } = self;
        let group = store.find_group(conn, Self::NAME, &claim.group, claim.now).await?;
        let granting = Granting::new(claim, group.now);
        let mut claiming = Claiming { request: claim, group, granting, deliveries: Vec::new() };
        let mut works = claiming.works(store, conn).await?;
        take_turns(&mut works, *turn);
        let mut first = true;
        for work in works {
            if claiming.left() == 0 {
                break;
            }
            // Waiting for a second lock while holding one could come full circle.
            let cursor = if std::mem::take(&mut first) {
                store.lock_cursors(conn, &group, [work.partition]).await?.pop()
            } else {
                store.lock_free_cursor(conn, &group, work.partition).await?
            };
            if let Some(cursor) = cursor {
                claiming.claim_from(store, conn, cursor, work.high_watermark).await?;
            }
        }
        Ok(claiming.deliveries)
    }
}

impl Claiming<'_> {
    fn left(&self) -> usize {
        self.request.limit - self.deliveries.len()
    }

    /// The partitions asked for that have something due or something new.
    async fn works(&self, store: &Store, conn: &mut Conn<'_>) -> Result<Vec<Work>, Failure> {
        let now = self.group.now.as_micros();
        let args = args![self.group.stream_id, self.group.id, now];
        let rows = conn.rows(&store.sql("work"), args).await?;
        let asked: BTreeSet<u32> =
            self.request.partitions.numbers(self.request.group.stream.partitions).collect();
        let work = |row: &Row| Ok(Work { partition: row.u32(0)?, high_watermark: row.u64(1)? });
        let all: Vec<Work> = rows.iter().map(work).collect::<Result<_, Failure>>()?;
        Ok(all.into_iter().filter(|work| asked.contains(&work.partition)).collect())
    }

    /// Claims from one partition whose cursor is locked.
    async fn claim_from(
        &mut self,
        store: &Store,
        conn: &mut Conn<'_>,
        cursor: Cursor,
        high_watermark: u64,
    ) -> Result<(), Failure> {
        let ordered = self.group.settings.ordered;
        let is_due = cursor.next_due <= self.group.now.as_micros();
        if ordered && !is_due && cursor.next_due != NEVER {
            return Ok(());
        }
        if is_due && !ordered {
            let args = args![self.group.id, cursor.partition, self.group.now.as_micros()];
            conn.execute(&store.sql("advance"), args).await?;
        }
        let open = if is_due { self.claimable(store, conn, &cursor).await? } else { Vec::new() };
        let piece = Piece::new(cursor, open, Vec::new(), Vec::new());
        let mut progress = piece.progress();
        let granted = progress.claim(&self.turn(high_watermark));
        self.deliver(store, conn, cursor.partition, &granted, &mut progress).await?;
        store.save(conn, &self.group, &piece, progress).await?;
        if is_due && !ordered {
            store.find_next_due(conn, &self.group, cursor.partition).await?;
        }
        Ok(())
    }

    fn turn(&self, high_watermark: u64) -> ClaimTurn<'_> {
        ClaimTurn {
            limit: self.left(),
            high_watermark,
            fence: self.request.fence,
            now: self.group.now,
            expires_at: self.granting.expires_at(),
            settings: &self.group.settings,
        }
    }

    /// The lowest open runs that are due, in an ordered group whether due or
    /// not: as many as fill the claim, or all.
    async fn claimable(
        &self,
        store: &Store,
        conn: &mut Conn<'_>,
        cursor: &Cursor,
    ) -> Result<Vec<OpenRun>, Failure> {
        let ordered = self.group.settings.ordered;
        let statement = if ordered { "load_lowest_runs" } else { "load_due_runs" };
        let mut most = self.left();
        loop {
            let args = args![self.group.id, cursor.partition, most];
            let rows = conn.rows(&store.sql(statement), args).await?;
            let open: Vec<OpenRun> = rows.iter().map(open_run).collect::<Result<_, Failure>>()?;
            if open.len() < most || self.is_filled_by(&open) {
                return Ok(open);
            }
            most = most.saturating_mul(2);
        }
    }

    /// Whether the claim has enough in these runs. Leases whose attempts are
    /// used up become dead letters instead.
    fn is_filled_by(&self, open: &[OpenRun]) -> bool {
        let handed_out =
            |run: &&OpenRun| run.fence.is_none() || run.attempt < self.group.settings.max_attempts;
        let events = open.iter().filter(handed_out).map(|run| run.last - run.first + 1);
        events.sum::<u64>() >= self.left() as u64
    }

    /// Reads what was granted. An event that vanished from the log becomes a
    /// dead letter, so that it holds up nothing.
    async fn deliver(
        &mut self,
        store: &Store,
        conn: &mut Conn<'_>,
        partition: u32,
        granted: &[Granted],
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let (Some(lowest), Some(highest)) = (granted.first(), granted.last()) else {
            return Ok(());
        };
        let ranges =
            granted.iter().map(|run| json!({"first": int(run.first), "last": int(run.last)}));
        let (first, last) = (lowest.first, highest.last);
        let args = args![self.group.stream_id, partition, list(ranges), first, last];
        let rows = conn.rows(&store.sql("events_in"), args).await?;
        let mut rows = rows.iter().peekable();
        let mut vanished = Vec::new();
        for run in granted {
            for sequence in run.first..=run.last {
                match rows.next_if(|row| row.u64(1).is_ok_and(|found| found == sequence)) {
                    Some(row) => {
                        let event = codec::event(row, 0, &self.request.group.stream.name)?;
                        self.deliveries.push(self.granting.delivery(event, run.attempt));
                    }
                    None => vanished.push(sequence),
                }
            }
        }
        self.bury(partition, &vanished, progress);
        Ok(())
    }

    fn bury(&self, partition: u32, vanished: &[u64], progress: &mut Progress) {
        let rejection = |&sequence: &u64| Settlement {
            token: Token::new(LeaseId::new(self.request.fence, Position::new(partition, sequence))),
            outcome: Outcome::reject("the event is missing from the store"),
        };
        let rejections: Vec<_> = vanished.iter().map(rejection).collect();
        let rejections: Vec<_> = rejections.iter().collect();
        progress.settle(&rejections, self.group.now, &self.group.settings);
    }
}

impl Store {
    /// Claims in a transaction of its own.
    pub(crate) async fn claim(self: &Arc<Self>, request: &Claim) -> Result<Vec<Delivery>> {
        let turn = self.next_turn(&request.group);
        let claim = ClaimInTurn { claim: request.clone(), turn };
        #[cfg(feature = "postgres")]
        if self.statements.dialect() == crate::Dialect::Postgres {
            let deliveries = self.once(crate::hot::HotClaim(claim.clone())).await?;
            if !deliveries.is_empty() {
                return Ok(deliveries);
            }
        }
        self.write(claim).await
    }
}

/// The partitions asked for, beginning at another one with each turn.
fn take_turns(works: &mut [Work], turn: usize) {
    if !works.is_empty() {
        let first = turn % works.len();
        works.rotate_left(first);
    }
}

//! Searching by what events contain, where an index tells which do.
//!
//! That index knows no order: asked for the first hundred, it must first find
//! all. Where every second event contains what is looked for, walking is far
//! cheaper; where one of a million does, walking is out of the question. So a
//! search walks as long as that pays, and then asks the index.

use rheo_core::adapter::Spans;
use rheo_core::{Order, Position, Result};

use crate::db::{Arg, Conn, args};
use crate::error::Failure;
use crate::search::Finder;
use crate::search::pushdown::Asked;
use crate::state::int;

/// How many events the first walk goes through at least.
const FIRST_WALK: usize = 2048;
/// A walk pays where it finds this part of what is missing.
const PAYING_PART: usize = 8;
/// How many candidates are held at a time.
const CANDIDATES: usize = 20_000;
/// Candidates are dense where they are at least this part of the events.
const DENSE_PART: u64 = 64;

impl Finder<'_> {
    pub(crate) async fn find_by_content(
        &mut self,
        conn: &mut Conn<'_>,
        spans: &mut Spans,
    ) -> Result<(), Failure> {
        self.walk_while_it_pays(conn, spans).await?;
        while !spans.is_empty() {
            let lanes = spans.len() as u64;
            let candidates = self.candidates(conn, spans).await?;
            self.keep_of(conn, &candidates, spans).await?;
            let (Some(first), Some(last)) = (candidates.first(), candidates.last()) else {
                break;
            };
            if candidates.len() < CANDIDATES {
                break;
            }
            spans.pass(*last);
            let among = first.sequence.abs_diff(last.sequence).saturating_mul(lanes);
            if among / DENSE_PART < CANDIDATES as u64 {
                return self.walk(conn, spans).await;
            }
        }
        Ok(())
    }

    /// Each walk is twice as long as the one before.
    async fn walk_while_it_pays(
        &mut self,
        conn: &mut Conn<'_>,
        spans: &mut Spans,
    ) -> Result<(), Failure> {
        let events = FIRST_WALK.max(2 * self.request.limit);
        let mut length = events.div_ceil(spans.len().max(1)) as u64;
        let mut pays = true;
        while pays && !spans.is_empty() {
            let missing = self.missing();
            self.walk_through(conn, spans, length).await?;
            pays = (missing - self.missing()) * PAYING_PART >= missing;
            length = length.saturating_mul(2);
        }
        Ok(())
    }

    /// The first events in the spans that contain what is looked for, and meet
    /// what else the database can check.
    async fn candidates(
        &self,
        conn: &mut Conn<'_>,
        spans: &mut Spans,
    ) -> Result<Vec<Position>, Failure> {
        let mut args = args![self.stream_id];
        args.extend(self.asked.args.iter().cloned());
        let lanes = args.len() + 1;
        let spans = spans.next(usize::MAX);
        args.push(Arg::Ints(spans.iter().map(|span| span.partition.into()).collect()));
        args.push(Arg::Ints(spans.iter().map(|span| int(span.first)).collect()));
        args.push(Arg::Ints(spans.iter().map(|span| int(span.last)).collect()));
        args.push(CANDIDATES.into());
        let statement = self.store.statements.adapt(&self.candidates_text(lanes));
        let rows = conn.rows(&statement, args).await?;
        rows.iter().map(|row| Ok(Position::new(row.u32(0)?, row.u64(1)?))).collect()
    }

    /// OFFSET keeps the planner from walking in the order that is asked for
    /// outside, in the hope that the first candidates are near.
    fn candidates_text(&self, lanes: usize) -> String {
        let Asked { conditions, by_index, .. } = &self.asked;
        let direction = match self.request.order {
            Order::Ascending => "",
            Order::Descending => "DESC",
        };
        let (firsts, lasts, limit) = (lanes + 1, lanes + 2, lanes + 3);
        format!(
            r#"SELECT c."partition", c.sequence
            FROM (SELECT e."partition", e.sequence FROM {{p}}events e
                WHERE e.stream_id = $1{conditions}{by_index} OFFSET 0) c
            JOIN unnest(${lanes}::bigint[], ${firsts}::bigint[], ${lasts}::bigint[])
                AS lane("partition", first, last)
                ON lane."partition" = c."partition"
                AND c.sequence BETWEEN lane.first AND lane.last
            ORDER BY c.sequence {direction}, c."partition" {direction} LIMIT ${limit}"#
        )
    }

    /// Keeps of these what matches, page by page, until that is enough.
    async fn keep_of(
        &mut self,
        conn: &mut Conn<'_>,
        mut candidates: &[Position],
        spans: &mut Spans,
    ) -> Result<(), Failure> {
        while !candidates.is_empty() && self.missing() > 0 {
            let (page, rest) = candidates.split_at(self.page.min(candidates.len()));
            candidates = rest;
            let partitions = page.iter().map(|position| position.partition.into()).collect();
            let sequences = page.iter().map(|position| int(position.sequence)).collect();
            let args = vec![self.stream_id.into(), Arg::Ints(partitions), Arg::Ints(sequences)];
            let rows = conn.rows(&self.store.sql("events_at"), args).await?;
            self.keep(self.events(&rows)?, spans);
        }
        Ok(())
    }
}

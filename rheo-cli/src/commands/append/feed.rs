//! [`Feed`]: a file goes into a stream, batch by batch.

use std::io;
use std::pin::pin;

use rheo::{Effect, ErrorKind};
use tokio::sync::mpsc::Receiver;

use super::fields::Draft;
use super::input::Entry;
use super::tally::{Screen, Tally};
use super::write::{Writer, all_identified};
use crate::failure::{Failure, Outcome};
use crate::output::counted;

/// How a file goes in.
pub(super) struct Feed<'a> {
    pub(super) writer: Writer<'a>,
    /// How many lines or rows are appended at once.
    pub(super) batch: usize,
    /// Whether bad lines are left out, instead of ending it.
    pub(super) skip_bad: bool,
    pub(super) screen: Screen,
    pub(super) tally: Tally,
}

/// Some entries in their order, checked.
#[derive(Default)]
struct Batch {
    first: u64,
    last: u64,
    offset: u64,
    good: Vec<Draft>,
    /// Lines, and what is wrong with them.
    bad: Vec<(u64, String)>,
}

impl Batch {
    fn len(&self) -> usize {
        self.good.len() + self.bad.len()
    }

    fn span(&self) -> String {
        match (self.first, self.last) {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first} to {last}"),
        }
    }

    fn add(&mut self, entry: Entry) {
        if self.len() == 0 {
            self.first = entry.first;
        }
        (self.last, self.offset) = (entry.last, entry.offset);
        match entry.draft {
            Ok(draft) => self.good.push(draft),
            Err(why) => self.bad.push((entry.first, why)),
        }
    }
}

impl Feed<'_> {
    /// Appends all entries. Ctrl-C ends it between two batches.
    pub(super) async fn run(&mut self, mut entries: Receiver<io::Result<Entry>>) -> Outcome {
        let mut interrupt = pin!(tokio::signal::ctrl_c());
        loop {
            let batch = tokio::select! {
                biased;
                _ = &mut interrupt => return Err(self.stopped("interrupted")),
                batch = self.next_batch(&mut entries) => batch?,
            };
            if batch.len() == 0 {
                return Ok(());
            }
            self.append(batch).await?;
        }
    }

    /// The next entries; none at the end.
    async fn next_batch(
        &self,
        entries: &mut Receiver<io::Result<Entry>>,
    ) -> Result<Batch, Failure> {
        let mut batch = Batch::default();
        while batch.len() < self.batch {
            match entries.recv().await {
                None => break,
                Some(Err(error)) => {
                    return Err(self.stopped(&format!("the input cannot be read: {error}")));
                }
                Some(Ok(Entry { first, last, offset, draft })) => {
                    let draft = self.checked(draft).await?;
                    batch.add(Entry { first, last, offset, draft });
                }
            }
        }
        Ok(batch)
    }

    /// Finds out what the store would refuse, while it is known of which line.
    async fn checked(
        &self,
        draft: Result<Draft, String>,
    ) -> Result<Result<Draft, String>, Failure> {
        let Ok(draft) = draft else { return Ok(draft) };
        let Writer { rheo, stream } = self.writer;
        match rheo.resolve_append(stream, [draft.event.clone()]).await {
            Ok(_) => Ok(Ok(draft)),
            Err(error) if is_of_the_event(error.kind()) => Ok(Err(error.context().into())),
            Err(error) => Err(self.stopped(&error.to_string())),
        }
    }

    async fn append(&mut self, batch: Batch) -> Outcome {
        let span = batch.span();
        let Batch { last, offset, good, bad, .. } = batch;
        for (line, why) in &bad {
            self.screen.tell(&format!("rheo: line {line}: {why}"));
        }
        if !bad.is_empty() && !self.skip_bad {
            let lines = counted(bad.len() as u64, "bad line");
            return Err(self.stopped(&format!(
                "{lines}, so nothing of {span} is written; --skip-bad leaves such lines out"
            )));
        }
        let (sent, identified) = (good.len() as u64, all_identified(&good));
        let written = self.writer.write(good).await.map_err(|error| {
            let unsure = error.effect() == Effect::Unknown && !identified;
            let warning = if unsure { ", and without ids they would then go in twice" } else { "" };
            self.stopped(&format!("{span}: {error}{warning}"))
        })?;
        let tally = &mut self.tally;
        tally.read += sent + bad.len() as u64;
        tally.appended += written.appended;
        tally.known += sent - written.appended;
        tally.skipped += bad.len() as u64;
        tally.last_line = last;
        self.screen.show(&self.tally, offset);
        Ok(())
    }

    /// Why it ends early, and how to go on.
    fn stopped(&self, why: &str) -> Failure {
        let next = self.tally.last_line + 1;
        Failure::new(format!("{why}; --from-line {next} goes on"))
    }
}

fn is_of_the_event(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Invalid | ErrorKind::EventTooLarge)
}

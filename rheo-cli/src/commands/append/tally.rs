//! [`Tally`]: how far a file is done, and how people see it.

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::output::visible;

/// What became of the lines whose batches are done:
/// `read` = `appended` + `known` + `skipped`.
#[derive(Debug, Serialize)]
pub(super) struct Tally {
    pub(super) stream: String,
    /// The events read, one for each line or row.
    pub(super) read: u64,
    pub(super) appended: u64,
    /// Those that were there already, by their ids.
    pub(super) known: u64,
    /// Bad lines left out.
    pub(super) skipped: u64,
    /// The last line that is done with all before it.
    pub(super) last_line: u64,
}

impl Tally {
    pub(super) fn sentence(&self) -> String {
        let Self { read, appended, known, skipped, last_line, .. } = self;
        format!(
            "{read} read: {appended} appended, {known} there already, {skipped} left out; done up to line {last_line}"
        )
    }
}

/// What is seen on a terminal while a file goes in. Elsewhere the bar is
/// nothing, and sentences are lines.
pub(super) struct Screen(ProgressBar);

impl Screen {
    /// With a bar where the size of the input is known.
    pub(super) fn new(size: Option<u64>) -> Self {
        let (bar, template) = match size {
            Some(size) => (ProgressBar::new(size), "{bar:40} {percent:>3} % {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
        };
        let style = ProgressStyle::with_template(template);
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    pub(super) fn show(&self, tally: &Tally, offset: u64) {
        self.0.set_position(offset);
        self.0.set_message(format!("{} events, line {}", tally.read, tally.last_line));
    }

    /// Tells a sentence on standard error; that nobody reads it is no failure.
    pub(super) fn tell(&self, sentence: &str) {
        self.0.suspend(|| {
            let _ = writeln!(anstream::stderr(), "{}", visible(sentence));
        });
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

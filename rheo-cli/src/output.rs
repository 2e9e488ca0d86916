//! [`Output`]: tables for people, JSON for programs.

use std::io::{self, IsTerminal, Write};

use anstyle::Style;
use serde::Serialize;

use crate::failure::Outcome;

/// Where a command's results go, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// One JSON document, or a line of JSON for each result.
    pub(crate) json: bool,
}

/// A table for people: numbers are right-aligned.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

const HEAD: Style = Style::new().bold();

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        io::stdout().is_terminal()
    }

    /// Shows a result: as one JSON document, or as the table made of it.
    pub(crate) fn show<T: Serialize>(self, result: &T, table: impl FnOnce(&T) -> Table) -> Outcome {
        if self.json { self.document(result) } else { self.table(&table(result)) }
    }

    /// Prints one JSON document, as lines that people can read as well.
    pub(crate) fn document<T: Serialize>(self, result: &T) -> Outcome {
        let mut out = io::stdout().lock();
        serde_json::to_writer_pretty(&mut out, result).map_err(io::Error::from)?;
        Ok(writeln!(out)?)
    }

    /// Prints a result as one line of JSON, at once.
    pub(crate) fn json_line<T: Serialize>(self, result: &T) -> Outcome {
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, result).map_err(io::Error::from)?;
        writeln!(out)?;
        Ok(out.flush()?)
    }

    /// Prints a line for people.
    pub(crate) fn line(self, line: impl AsRef<str>) -> Outcome {
        let mut out = anstream::stdout().lock();
        Ok(writeln!(out, "{}", line.as_ref())?)
    }

    pub(crate) fn table(self, table: &Table) -> Outcome {
        let mut out = anstream::stdout().lock();
        Ok(write!(out, "{}", table.text())?)
    }
}

impl Table {
    pub(crate) fn new(heads: impl Into<Vec<&'static str>>) -> Self {
        Self { heads: heads.into(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl ToString>) {
        self.rows.push(cells.into_iter().map(|cell| cell.to_string()).collect());
    }

    /// The table's lines. Control characters are shown, not carried out.
    pub(crate) fn text(&self) -> String {
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(|cell| visible(cell)).collect()).collect();
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widths = cells.map(|cell| cell.chars().count());
            widths.chain([self.heads[column].chars().count()]).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let numbers: Vec<bool> = (0..self.heads.len())
            .map(|column| {
                rows.iter().all(|row| row.get(column).is_some_and(|cell| is_number(cell)))
            })
            .collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.enumerate().map(|(column, cell)| {
                let width = widths[column];
                if numbers[column] { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let heads = line(&mut self.heads.iter().copied());
        let mut text = format!("{HEAD}{heads}{HEAD:#}\n");
        for row in &rows {
            text.push_str(&line(&mut row.iter().map(String::as_str)));
            text.push('\n');
        }
        text
    }
}

fn is_number(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | ' '))
}

/// The text with its control characters shown, not carried out.
pub(crate) fn visible(cell: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.into() };
    cell.chars().map(shown).collect()
}

/// So many of something, in words.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

//! CSV: an event in each row, its columns the payload's fields.

use std::collections::HashSet;
use std::io;

use csv::{ReaderBuilder, StringRecord, Terminator};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::fields::{Draft, Maker, Own};
use super::input::{Entry, Lines, MAX_BYTES};
use crate::failure::Failure;

/// The entries of a file with a header. Empty lines are none.
pub(super) struct Csv {
    lines: Lines,
    header: Vec<String>,
    infer: bool,
    maker: Maker,
}

/// A row, of which the cells are as many as the header's.
struct Row<'a> {
    header: &'a [String],
    cells: &'a StringRecord,
    infer: bool,
}

/// Where in a row one is.
#[derive(Clone, Copy, PartialEq)]
enum At {
    CellStart,
    Plain,
    Quoted,
    /// Behind a quote that closes the cell, unless another follows.
    Quote,
}

impl Csv {
    /// Reads the header.
    pub(super) fn new(mut lines: Lines, infer: bool, maker: Maker) -> Result<Self, Failure> {
        let refused = |why: String| Failure::new(format!("the header: {why}"));
        let Some((_, text)) = row(&mut lines)? else {
            return Err(refused("there is none".into()));
        };
        let header = text.and_then(|text| cells(&text)).map_err(refused)?;
        let header: Vec<String> = header.iter().map(Into::into).collect();
        let mut names = HashSet::new();
        if let Some(name) = header.iter().find(|name| !names.insert(name.as_str())) {
            return Err(refused(format!("two columns have the name {name:?}")));
        }
        if let Some(name) = maker.names().find(|name| !names.contains(name)) {
            return Err(refused(format!("no column has the name {name:?}")));
        }
        Ok(Self { lines, header, infer, maker })
    }

    fn draft(&self, text: &str) -> Result<Draft, String> {
        let cells = cells(text)?;
        if cells.len() != self.header.len() {
            let (count, right) = (cells.len(), self.header.len());
            return Err(format!("it has {count} cells, the header has {right}"));
        }
        let row = Row { header: &self.header, cells: &cells, infer: self.infer };
        self.maker.draft(Own::default(), &row, |name| {
            Ok(row.cell(name).filter(|cell| !cell.is_empty()).map(Into::into))
        })
    }
}

impl Iterator for Csv {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        let (first, text) = match row(&mut self.lines).transpose()? {
            Ok(row) => row,
            Err(error) => return Some(Err(error)),
        };
        let draft = text.and_then(|text| self.draft(&text));
        let Lines { number: last, offset, .. } = self.lines;
        Some(Ok(Entry { first, last, offset, draft }))
    }
}

/// The number of a row's first line, and the text of all its lines or what is
/// wrong with it. The rows are told apart here, so that a quote that is never
/// closed is told by its line, and does not take in all of a long file.
fn row(lines: &mut Lines) -> io::Result<Option<(u64, Result<String, String>)>> {
    let mut first = None;
    let mut text = String::new();
    let mut at = At::CellStart;
    loop {
        let line = match (lines.next()?, first) {
            (None, None) => return Ok(None),
            (None, Some(first)) => {
                return Ok(Some((first, Err("a quote in it is not closed".into()))));
            }
            (Some(Ok(line)), None) if without_end(&line).is_empty() => continue,
            (Some(line), _) => line,
        };
        let first = *first.get_or_insert(lines.number);
        let line = match line {
            Ok(line) => line,
            Err(why) => return Ok(Some((first, Err(why)))),
        };
        at = behind(&line, at);
        text.push_str(&line);
        if at != At::Quoted {
            return Ok(Some((first, Ok(text))));
        }
        if text.len() > MAX_BYTES {
            let why = "a quote in it is not closed within 16 MiB";
            return Ok(Some((first, Err(why.into()))));
        }
    }
}

/// Where one is behind a line that begins at `at`.
fn behind(line: &str, at: At) -> At {
    line.bytes().fold(at, |at, byte| match (at, byte) {
        (At::CellStart | At::Quote, b'"') => At::Quoted,
        (At::Quoted, b'"') => At::Quote,
        (At::Quoted, _) => At::Quoted,
        (_, b',') => At::CellStart,
        _ => At::Plain,
    })
}

fn without_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

fn cells(text: &str) -> Result<StringRecord, String> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(without_end(text).as_bytes());
    let mut cells = StringRecord::new();
    reader.read_record(&mut cells).map_err(|error| error.to_string())?;
    Ok(cells)
}

impl Row<'_> {
    fn cell(&self, name: &str) -> Option<&str> {
        let column = self.header.iter().position(|column| column == name)?;
        self.cells.get(column)
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(Some(self.header.len()))?;
        for (name, cell) in self.header.iter().zip(self.cells) {
            match inferred(cell).filter(|_| self.infer) {
                Some(value) => fields.serialize_entry(name, value)?,
                None => fields.serialize_entry(name, cell)?,
            }
        }
        fields.end()
    }
}

/// The JSON that a cell looks like, None where it is but text. So are numbers
/// that would lose digits, as long account numbers, or begin with a zero.
fn inferred(cell: &str) -> Option<&RawValue> {
    let json = match cell.as_bytes() {
        [] => "null",
        [b'-' | b'0'..=b'9', ..] if !keeps_its_value(cell) => return None,
        [b'"' | b'[' | b'{', ..] => return None,
        _ => cell,
    };
    serde_json::from_str::<&RawValue>(json).ok().filter(|value| value.get() == json)
}

fn keeps_its_value(number: &str) -> bool {
    if number.contains(['.', 'e', 'E']) {
        return number.parse::<f64>().is_ok_and(f64::is_finite);
    }
    number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<(u64, Result<Vec<String>, String>)> {
        let mut lines = Lines::new(Box::new(io::Cursor::new(text.as_bytes().to_vec())));
        let split = |text: String| cells(&text).map(|row| row.iter().map(Into::into).collect());
        std::iter::from_fn(|| row(&mut lines).unwrap())
            .map(|(first, text)| (first, text.and_then(split)))
            .collect()
    }

    #[test]
    fn rows_are_told_apart_with_their_lines() {
        let text = "a,b\r\n\r\n\"x\r\n\"\"y\"\"\",5\" pipe\r\n\"\",\nlast,\"1,2\"";
        let row = |first, cells: [&str; 2]| (first, Ok(cells.map(String::from).to_vec()));
        let right = [
            row(1, ["a", "b"]),
            row(3, ["x\r\n\"y\"", "5\" pipe"]),
            row(5, ["", ""]),
            row(6, ["last", "1,2"]),
        ];
        assert_eq!(rows(text), right);
    }

    #[test]
    fn a_quote_that_is_not_closed_is_told() {
        let rows = rows("a\n\"b\nc\n");
        assert_eq!(rows[1], (2, Err("a quote in it is not closed".into())));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn cells_are_inferred_only_where_nothing_is_lost() {
        let json = |cell| inferred(cell).map(RawValue::get);
        for cell in ["0", "-17", "2.50", "1e3", "18446744073709551615", "true", "false", "null"] {
            assert_eq!(json(cell), Some(cell));
        }
        assert_eq!(json(""), Some("null"));
        let long = "123456789012345678901";
        for cell in ["007", "+1", "1.", "1e999", " 1", "1 ", long, "NaN", "True", "[1]", "-"] {
            assert_eq!(json(cell), None, "{cell}");
        }
    }
}

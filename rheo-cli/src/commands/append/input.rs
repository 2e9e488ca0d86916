//! [`Lines`]: the lines of a file or of standard input, one at a time.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use tokio::sync::mpsc;

use super::fields::Draft;
use crate::failure::Failure;

/// The longest that a line, or a row of CSV, may be.
pub(super) const MAX_BYTES: usize = 16 << 20;
/// How many entries are read ahead.
const READ_AHEAD: usize = 16;

pub(super) type Input = Box<dyn BufRead + Send>;

/// A line of NDJSON or a row of CSV, which may take several lines.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) first: u64,
    pub(super) last: u64,
    /// The bytes of the input up to its end.
    pub(super) offset: u64,
    /// The event, or what is wrong.
    pub(super) draft: Result<Draft, String>,
}

/// Reads lines without holding more than one.
pub(super) struct Lines {
    input: Input,
    /// The number of the last line read.
    pub(super) number: u64,
    /// The bytes read.
    pub(super) offset: u64,
}

/// Opens a file, `-` for standard input, and tells its size where it has one.
pub(super) fn open(path: &Path) -> Result<(Lines, Option<u64>), Failure> {
    if path == Path::new("-") {
        return Ok((Lines::new(Box::new(BufReader::new(io::stdin()))), None));
    }
    let failed = |error| Failure::new(format!("{path:?} cannot be read: {error}"));
    let file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    let size = about.is_file().then_some(about.len());
    Ok((Lines::new(Box::new(BufReader::new(file))), size))
}

/// Reads on a thread of its own, since reading standard input can take for
/// ever, and the process is not to wait for it at its end.
pub(super) fn read_ahead(
    entries: impl Iterator<Item = io::Result<Entry>> + Send + 'static,
) -> mpsc::Receiver<io::Result<Entry>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        for entry in entries {
            let failed = entry.is_err();
            if sender.blocking_send(entry).is_err() || failed {
                break;
            }
        }
    });
    receiver
}

impl Lines {
    pub(super) fn new(input: Input) -> Self {
        Self { input, number: 0, offset: 0 }
    }

    /// The next line with its end, or what is wrong with it; None at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<String, String>>> {
        let mut bytes = Vec::new();
        let most = MAX_BYTES as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut bytes)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.offset += read as u64;
        if read > MAX_BYTES && !bytes.ends_with(b"\n") {
            self.offset += self.input.skip_until(b'\n')? as u64;
            return Ok(Some(Err("it is longer than 16 MiB".into())));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let byte = error.utf8_error().valid_up_to() + 1;
            format!("it is no UTF-8 from its byte {byte} on")
        });
        Ok(Some(text.map(|text| self.without_mark(text))))
    }

    /// Takes away the byte order mark that some programs begin a file with.
    fn without_mark(&self, text: String) -> String {
        match text.strip_prefix('\u{feff}') {
            Some(rest) if self.number == 1 => rest.into(),
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: impl Into<Vec<u8>>) -> Lines {
        Lines::new(Box::new(io::Cursor::new(bytes.into())))
    }

    #[test]
    fn a_bad_line_does_not_spoil_the_next() {
        let mut bytes = b"\xef\xbb\xbfone\r\n".to_vec();
        bytes.extend(vec![b'x'; MAX_BYTES + 5]);
        bytes.extend(b"\nab\xff\nlast");
        let size = bytes.len() as u64;
        let mut lines = lines(bytes);
        let mut next = || lines.next().unwrap();
        assert_eq!(next().unwrap().unwrap(), "one\r\n");
        assert_eq!(next().unwrap().unwrap_err(), "it is longer than 16 MiB");
        assert_eq!(next().unwrap().unwrap_err(), "it is no UTF-8 from its byte 3 on");
        assert_eq!(next().unwrap().unwrap(), "last");
        assert!(next().is_none());
        assert_eq!((lines.number, lines.offset), (4, size));
    }
}

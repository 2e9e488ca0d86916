//! [`Screen`]: lines of a terminal that are redrawn in place.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anstream::{AutoStream, ColorChoice};

/// Hides the cursor, and cuts lines with wide characters at the border.
const BEGIN: &str = "\x1b[?25l\x1b[?7l";
const END: &str = "\x1b[?7h\x1b[?25h";

/// The size of a terminal that does not tell.
const USUAL: (usize, usize) = (80, 24);

/// The lines above the cursor. Dropped, it leaves them, and the terminal is as
/// it was.
pub(super) struct Screen {
    drawn: usize,
    colour: bool,
}

impl Screen {
    pub(super) fn begin() -> io::Result<Self> {
        // Made first, so that its drop undoes what has been written of BEGIN.
        let colour = AutoStream::choice(&io::stdout()) != ColorChoice::Never;
        let screen = Self { drawn: 0, colour };
        write(BEGIN)?;
        Ok(screen)
    }

    /// Draws over what was drawn before, no more than the terminal holds.
    pub(super) fn draw(&mut self, text: &str) -> io::Result<()> {
        let lines = fit(text, size());
        let mut frame = String::new();
        if self.drawn > 0 {
            let _ = write!(frame, "\x1b[{}A", self.drawn);
        }
        for line in &lines {
            let _ = writeln!(frame, "\r\x1b[2K{}", self.coloured(line));
        }
        frame.push_str("\x1b[J");
        self.drawn = lines.len();
        write(&frame)
    }

    fn coloured(&self, line: &str) -> String {
        if self.colour { line.to_string() } else { anstream::adapter::strip_str(line).to_string() }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = write(END);
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// How many characters a line, and how many lines, the terminal has.
fn size() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => USUAL,
    }
}

/// The lines that a terminal shows, with one left for the cursor.
fn fit(text: &str, (width, height): (usize, usize)) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let room = height.saturating_sub(1).max(1);
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    let mut fitting: Vec<String> = lines[..shown].iter().map(|line| cut(line, width)).collect();
    if shown < lines.len() {
        fitting.push(cut(&format!("… {} more", lines.len() - shown), width));
    }
    fitting
}

/// The line's first `width` characters. Escape sequences, which take no room,
/// stay, so that what they begin also ends.
fn cut(line: &str, width: usize) -> String {
    let mut room = width;
    let mut escape = false;
    let fits = |c: &char| {
        if escape || *c == '\x1b' {
            escape = !c.is_ascii_alphabetic();
            return true;
        }
        let fits = room > 0;
        room = room.saturating_sub(1);
        fits
    };
    line.chars().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_the_rest_is_counted() {
        let text = "\x1b[1mHEAD AND TAIL\x1b[0m\nfirst\nsecond\nthird\n";
        assert_eq!(fit(text, (6, 4)), ["\x1b[1mHEAD A\x1b[0m", "first", "… 2 mo"]);
        assert_eq!(fit(text, (80, 5)).len(), 4);
        assert_eq!(fit(text, (80, 1)), ["… 4 more"]);
        assert_eq!(fit("", (80, 24)), [""; 0]);
    }
}

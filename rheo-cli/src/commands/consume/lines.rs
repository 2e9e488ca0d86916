//! [`Lines`]: passes whole lines on, so that those of commands that run at
//! once are not mixed.

use std::io::{self, Write};
use std::thread;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::sync::{mpsc, oneshot};

/// A longer line is passed on in parts.
const LONGEST: u64 = 1 << 20;

/// Writes lines in a thread of its own: a reader that does not read holds up
/// the commands, and nothing else.
pub(super) struct Lines(mpsc::Sender<Line>);

struct Line {
    bytes: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

impl Lines {
    pub(super) fn to(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (sender, mut lines) = mpsc::channel::<Line>(1);
        thread::Builder::new().name("lines".into()).spawn(move || {
            while let Some(Line { bytes, written }) = lines.blocking_recv() {
                let result = out.write_all(&bytes).and_then(|()| out.flush());
                // A command that was killed meanwhile does not want to know.
                let _ = written.send(result);
            }
        })?;
        Ok(Self(sender))
    }

    /// Passes on all that comes from `pipe`. Returns its first line that is
    /// not blank, also where that is all that could be passed on.
    pub(super) async fn pass(&self, pipe: impl AsyncRead + Unpin) -> Passed {
        let mut passed = Passed { first: Vec::new(), result: Ok(()) };
        let mut pipe = BufReader::new(pipe);
        while passed.result.is_ok() {
            let mut line = Vec::new();
            match (&mut pipe).take(LONGEST).read_until(b'\n', &mut line).await {
                Ok(0) => break,
                Ok(_) => {}
                // What was read before is all there is.
                Err(_) => break,
            }
            if passed.first.is_empty() {
                passed.first = line.trim_ascii().to_vec();
            }
            passed.result = self.write(line).await;
        }
        passed
    }

    async fn write(&self, bytes: Vec<u8>) -> io::Result<()> {
        let gone = || io::Error::other("the thread that writes has ended");
        let (written, answer) = oneshot::channel();
        self.0.send(Line { bytes, written }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// What has been passed on.
pub(super) struct Passed {
    /// The first line that is not blank, trimmed.
    pub(super) first: Vec<u8>,
    pub(super) result: io::Result<()>,
}

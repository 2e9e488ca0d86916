//! A binary that runs, and what it prints meanwhile. Every wait is bounded.

#![allow(dead_code, reason = "no test uses all of it")]

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// More than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    pub(crate) out: Text,
    pub(crate) err: Text,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let out = Text::of(child.stdout.take().expect("it is piped"));
        let err = Text::of(child.stderr.take().expect("it is piped"));
        Self { stdin: child.stdin.take(), child, out, err }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("it has a number"), signal).expect("it has not been waited for");
    }

    /// Presses keys, where it runs on a terminal.
    pub(crate) fn press(&mut self, keys: &str) {
        let stdin = self.stdin.as_mut().expect("it is piped");
        stdin.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Waits until it has ended, and returns all it has printed.
    pub(crate) fn end(mut self) -> Ended {
        let (out, err) = (self.out.all(), self.err.all());
        let status = self.child.wait().expect("it can be waited for");
        Ended { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes out of a pipe.
pub(crate) struct Text {
    parts: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Text {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let (sender, parts) = channel();
        thread::spawn(move || {
            let mut part = vec![0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                if sender.send(part[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { parts, bytes: Vec::new() }
    }

    /// Waits for `wanted`, and returns all until now.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while !self.text().contains(wanted) {
            assert!(self.more(deadline), "ended without {wanted:?}: {:?}", self.text());
        }
        self.text()
    }

    #[track_caller]
    fn all(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.more(deadline) {}
        self.text()
    }

    /// Waits for more, and returns whether there was.
    #[track_caller]
    fn more(&mut self, deadline: Instant) -> bool {
        match self.parts.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(part) => {
                self.bytes.extend(part);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("it takes too long: {:?}", self.text()),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

//! [`Shell`]: runs the command for one event, and reads its status as an
//! outcome.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rheo::{Delivery, Outcome};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, Command};

use super::OnFailure;
use super::lines::Lines;
use super::process::Group;
use crate::show::DeliveryJson;

/// The status by which commands ask for another try, as mailers do (EX_TEMPFAIL).
const TRY_AGAIN: i32 = 75;

pub(super) struct Shell {
    command: String,
    on_failure: OnFailure,
    retry_after: Duration,
    out: Lines,
    err: Lines,
}

impl Shell {
    pub(super) fn new(
        command: &str,
        on_failure: OnFailure,
        retry_after: Duration,
    ) -> io::Result<Self> {
        let (out, err) = (Lines::to(io::stdout())?, Lines::to(io::stderr())?);
        Ok(Self { command: command.to_string(), on_failure, retry_after, out, err })
    }

    /// Runs the command. Dropped, it kills it.
    ///
    /// # Errors
    /// Where the command's output can not be passed on.
    pub(super) async fn run(&self, delivery: &Delivery) -> io::Result<Outcome> {
        let Some(document) = document(delivery) else {
            return Ok(Outcome::reject("what is stored is no JSON"));
        };
        let mut child = match self.start(delivery) {
            Ok(child) => child,
            Err(error) => return Ok(self.retry(format!("the command does not start: {error}"))),
        };
        // Made after the child and so dropped before it, while the number is still its own.
        let group = Group::of(&child);
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Ok(self.retry("the command has no pipes".into()));
        };
        let ((), out, err) =
            tokio::join!(feed(stdin, &document), self.out.pass(stdout), self.heed(stderr));
        let status = child.wait().await;
        group.ended();
        out.result?;
        Ok(match status {
            Ok(status) => self.outcome(status, &err),
            Err(error) => self.retry(format!("the command's status is unknown: {error}")),
        })
    }

    /// Starts the command in a group of its own, which Ctrl-C does not reach.
    fn start(&self, delivery: &Delivery) -> io::Result<Child> {
        let Delivery { event, lease } = delivery;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&self.command);
        command.env("RHEO_STREAM", event.stream().as_str());
        command.env("RHEO_GROUP", lease.group().as_str());
        command.env("RHEO_PARTITION", event.partition().to_string());
        command.env("RHEO_SEQUENCE", event.sequence().to_string());
        command.env("RHEO_POSITION", event.position().to_string());
        command.env("RHEO_ID", event.id().to_string());
        command.env("RHEO_TIMESTAMP", event.timestamp().to_string());
        command.env("RHEO_TYPE", event.event_type());
        command.env("RHEO_ATTEMPT", lease.attempt().to_string());
        match event.key() {
            Some(key) => command.env("RHEO_KEY", key),
            None => command.env_remove("RHEO_KEY"),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true).spawn()
    }

    /// Passes on what the command says of itself, and returns its first line.
    async fn heed(&self, mut stderr: ChildStderr) -> Vec<u8> {
        let passed = self.err.pass(&mut stderr).await;
        // Where nobody reads ours, the command may still speak.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        passed.first
    }

    fn outcome(&self, status: ExitStatus, line: &[u8]) -> Outcome {
        if status.success() {
            return Outcome::Ack;
        }
        let reason =
            if line.is_empty() { told(status) } else { String::from_utf8_lossy(line).into_owned() };
        let failed = signal(status).is_none() && status.code() != Some(TRY_AGAIN);
        match self.on_failure {
            OnFailure::Reject if failed => Outcome::reject(reason),
            OnFailure::Reject | OnFailure::Retry => self.retry(reason),
        }
    }

    fn retry(&self, reason: String) -> Outcome {
        Outcome::retry_after(reason, self.retry_after)
    }
}

fn document(delivery: &Delivery) -> Option<Vec<u8>> {
    let delivery = DeliveryJson::new(delivery).ok()?;
    let mut document = serde_json::to_vec(&delivery).ok()?;
    document.push(b'\n');
    Some(document)
}

/// Writes the event, and closes the pipe.
async fn feed(mut stdin: ChildStdin, document: &[u8]) {
    // It fails where the command does not want all of it, which is its own affair.
    let _ = stdin.write_all(document).await;
}

/// The signal that has ended the command, also where the shell tells it by its
/// own status: 128 and the signal's number.
fn signal(status: ExitStatus) -> Option<i32> {
    let told_by_shell = |code: i32| (129..=192).contains(&code).then(|| code - 128);
    status.signal().or_else(|| status.code().and_then(told_by_shell))
}

fn told(status: ExitStatus) -> String {
    match (signal(status), status.code()) {
        (Some(signal), _) => format!("the command was ended by signal {signal}"),
        (None, Some(code)) => format!("the command ended with status {code}"),
        (None, None) => "the command ended in an unknown way".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_told_as_what_ended_the_command() {
        let ended = |code: i32| told(ExitStatus::from_raw(code << 8));
        assert_eq!(ended(3), "the command ended with status 3");
        assert_eq!(ended(137), "the command was ended by signal 9");
        assert_eq!(ended(255), "the command ended with status 255");
        assert_eq!(told(ExitStatus::from_raw(15)), "the command was ended by signal 15");
    }
}

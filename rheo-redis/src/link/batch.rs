//! [`Batch`]: commands that go over one connection together, and their answers.

use std::time::Duration;

use redis::{Arg, Cmd, Pipeline, ServerError, Value, cmd, pipe};

use crate::error::{Failure, is_without_function};

/// What the server answered to one command.
pub(crate) type Answer = Result<Value, ServerError>;

/// Commands that go over one connection together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    commands: &'a [&'a Cmd],
    /// Whether they may change something, so that it matters whether they ran.
    pub(super) writes: bool,
    /// Whether several of them are one step: all or none, and nobody's between.
    atomic: bool,
    /// How many replicas are to have it, and in which time.
    replicas: Option<(u32, Duration)>,
    /// Whether the node takes them only when told that it was asked for by
    /// another, which hands the slot over.
    asking: bool,
}

impl<'a> Batch<'a> {
    /// One step: all of the commands run, or none.
    pub(crate) fn step(commands: &'a [&'a Cmd], writes: bool) -> Self {
        let atomic = commands.len() > 1;
        Self { commands, writes, atomic, replicas: None, asking: false }
    }

    /// Commands that only read, each by itself.
    pub(crate) fn reads(commands: &'a [&'a Cmd]) -> Self {
        Self { commands, writes: false, atomic: false, replicas: None, asking: false }
    }

    /// The same, and wait until so many replicas have it.
    pub(crate) fn replicated(mut self, count: u32, within: Duration) -> Self {
        self.replicas = (self.writes && count > 0).then_some((count, within));
        self
    }

    pub(super) fn asking(mut self, asking: bool) -> Self {
        self.asking = asking;
        self
    }

    pub(super) fn first(&self) -> Option<&'a Cmd> {
        self.commands.first().copied()
    }

    /// The command, where that is all there is to be sent.
    pub(super) fn lone_command(&self) -> Option<&'a Cmd> {
        match self.commands {
            [command] if !self.asking && self.replicas.is_none() => Some(command),
            _ => None,
        }
    }

    /// All that is to be sent.
    pub(super) fn pipeline(&self) -> Pipeline {
        let mut pipeline = pipe();
        if self.asking {
            pipeline.cmd("ASKING");
        }
        if self.atomic {
            pipeline.cmd("MULTI");
        }
        for &command in self.commands {
            pipeline.add_command(command.clone());
        }
        if self.atomic {
            pipeline.cmd("EXEC");
        }
        if let Some((count, within)) = self.replicas {
            let mut wait = cmd("WAIT");
            wait.arg(count).arg(within.as_millis().max(1).to_string());
            pipeline.add_command(wait);
        }
        pipeline
    }

    /// The answers to the commands, out of those to all that was sent.
    pub(super) fn answers(&self, mut told: Vec<Value>) -> Result<Vec<Answer>, Failure> {
        let copies = self.replicas.map(|_| told.pop());
        if self.asking && !told.is_empty() {
            told.remove(0);
        }
        let answers: Vec<_> = if self.atomic {
            of_transaction(told)?.into_iter().map(answer).collect()
        } else {
            told.into_iter().map(answer).collect()
        };
        if let (Some((wanted, _)), Some(copies)) = (self.replicas, copies)
            && answers.iter().any(Result::is_ok)
        {
            replicated(wanted, copies)?;
        }
        Ok(answers)
    }

    /// Whether all that calls functions came to nothing, as the server does
    /// not have them.
    pub(super) fn is_without_functions(&self, answers: &[Answer]) -> bool {
        let mut calls = self.commands.iter().zip(answers).filter(|(command, _)| {
            matches!(command.args_iter().next(), Some(Arg::Simple(b"FCALL" | b"FCALL_RO")))
        });
        let missing = |answer: &Answer| matches!(answer, Err(error) if is_without_function(error));
        let first = calls.next().is_some_and(|(_, answer)| missing(answer));
        first && calls.all(|(_, answer)| missing(answer))
    }
}

pub(super) fn answer(value: Value) -> Answer {
    match value {
        Value::ServerError(error) => Err(error),
        value => Ok(value),
    }
}

/// The answers in a transaction's last one. Where there are none, a command was
/// refused when it was put into the line, and nothing ran.
fn of_transaction(mut told: Vec<Value>) -> Result<Vec<Value>, Failure> {
    match told.pop() {
        Some(Value::Array(answers)) => Ok(answers),
        Some(last) => {
            let refused = told.into_iter().chain([last]).find_map(|told| answer(told).err());
            Err(refused.map_or(Failure::Late, Failure::Refused))
        }
        None => Err(Failure::Late),
    }
}

fn replicated(wanted: u32, copies: Option<Value>) -> Result<(), Failure> {
    match copies {
        Some(Value::Int(copies)) => {
            let missing = i64::from(wanted).saturating_sub(copies);
            match u32::try_from(missing) {
                Ok(0) | Err(_) => Ok(()),
                Ok(missing) => Err(Failure::Unreplicated(missing)),
            }
        }
        Some(Value::ServerError(error)) => Err(Failure::Unconfirmed(error)),
        _ => Err(Failure::Unreplicated(wanted)),
    }
}

#[cfg(test)]
mod tests {
    use redis::{ServerErrorKind, parse_redis_value};

    use super::*;

    fn told(text: &str) -> Value {
        parse_redis_value(text.as_bytes()).unwrap()
    }

    fn calls() -> [Cmd; 2] {
        [cmd("FCALL"), cmd("XREADGROUP")]
    }

    #[test]
    fn the_answers_of_a_step_are_in_its_last_one() {
        let [call, read] = &calls();
        let commands = [call, read];
        let step = Batch::step(&commands, true);
        assert_eq!(step.pipeline().len(), 4);
        let queued = || vec![told("+OK\r\n"), told("+QUEUED\r\n"), told("+QUEUED\r\n")];
        let mut ran = queued();
        ran.push(told("*2\r\n:1\r\n-NOSTREAM it\r\n"));
        let answers = step.answers(ran).unwrap();
        assert_eq!(answers[0], Ok(Value::Int(1)));
        assert_eq!(answers[1].as_ref().unwrap_err().code(), "NOSTREAM");
        // Nothing ran, and the first refusal says why.
        let mut refused = queued();
        refused[1] = told("-MOVED 1 a:1\r\n");
        refused.push(told("-EXECABORT it\r\n"));
        let failure = step.answers(refused).unwrap_err();
        let is_moved = |error: &ServerError| error.kind() == Some(ServerErrorKind::Moved);
        assert!(matches!(&failure, Failure::Refused(error) if is_moved(error)), "{failure:?}");
    }

    #[test]
    fn replicas_are_waited_for_where_something_was_done() {
        let [call, _] = &calls();
        let commands = [call];
        let batch = Batch::step(&commands, true).replicated(2, Duration::from_secs(1)).asking(true);
        assert!(batch.lone_command().is_none());
        assert_eq!(batch.pipeline().len(), 3);
        let answers =
            |answer, copies| batch.answers(vec![told("+OK\r\n"), told(answer), Value::Int(copies)]);
        assert_eq!(answers(":1\r\n", 2).unwrap(), [Ok(Value::Int(1))]);
        assert!(matches!(answers(":1\r\n", 0), Err(Failure::Unreplicated(2))));
        assert!(answers("-NOSTREAM it\r\n", 0).unwrap()[0].is_err());
        assert!(Batch::reads(&commands).replicated(2, Duration::ZERO).lone_command().is_some());
    }

    #[test]
    fn functions_are_missing_where_all_calls_say_so() {
        let [call, read] = &calls();
        let commands = [call, read, call];
        let batch = Batch::step(&commands, true);
        let missing = || answer(told("-ERR Function not found\r\n"));
        assert!(batch.is_without_functions(&[missing(), Ok(Value::Nil), missing()]));
        assert!(!batch.is_without_functions(&[missing(), Ok(Value::Nil), Ok(Value::Nil)]));
        assert!(!Batch::reads(&[read]).is_without_functions(&[missing()]));
    }
}

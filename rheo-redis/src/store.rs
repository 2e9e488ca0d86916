//! [`Store`]: what all operations go through.

use futures::future::join_all;
use redis::{Cmd, Value};
use rheo_core::{Effect, Result};

use crate::call::{About, Call};
use crate::claim::Turns;
use crate::config::Options;
use crate::connect::Facts;
use crate::error::Failure;
use crate::keys::Keys;
use crate::link::{Answer, Batch, Link};
use crate::wake::Waking;

/// A server or a cluster, as this instance uses it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) link: Link,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
    pub(crate) facts: Facts,
    pub(crate) waking: Waking,
    pub(crate) turns: Turns,
}

impl Store {
    /// Makes one call.
    pub(crate) async fn call(&self, operation: &'static str, call: &Call) -> Result<Value> {
        let answers = self.transact(operation, &call.about, call.writes, &[call.command()]).await?;
        answers.into_iter().next().unwrap_or(Ok(Value::Nil))
    }

    /// Makes all calls: in one step and one round trip on a single server,
    /// side by side in a cluster. Answers for each by itself.
    pub(crate) async fn call_each(
        &self,
        operation: &'static str,
        calls: &[Call],
    ) -> Result<Vec<Result<Value>>> {
        if self.link.is_cluster() {
            return Ok(join_all(calls.iter().map(|call| self.call(operation, call))).await);
        }
        let Some(first) = calls.first() else {
            return Ok(Vec::new());
        };
        let writes = calls.iter().any(|call| call.writes);
        let commands: Vec<_> = calls.iter().map(Call::command).collect();
        let batch = if writes { self.step(&commands) } else { Batch::reads(&commands) };
        let answers = match self.link.send(&batch).await {
            Err(failure)
                if failure.is_out_of_memory() && calls.iter().all(|it| it.even_when_full) =>
            {
                let mut answers = Vec::with_capacity(calls.len());
                for call in calls {
                    answers.push(self.call(operation, call).await);
                }
                return Ok(answers);
            }
            sent => {
                sent.map_err(|failure| failure.into_error(operation, Some(&first.about), writes))?
            }
        };
        let tell = |(answer, call): (Answer, &Call)| {
            answer.map_err(|refused| {
                Failure::Refused(refused).into_error(operation, Some(&call.about), call.writes)
            })
        };
        Ok(answers.into_iter().zip(calls).map(tell).collect())
    }

    /// Makes all calls, as [`call_each`](Self::call_each) does, and fails where
    /// one of them does. If another took effect, that of the whole is unknown.
    pub(crate) async fn call_all(
        &self,
        operation: &'static str,
        calls: &[Call],
    ) -> Result<Vec<Value>> {
        let answers = self.call_each(operation, calls).await?;
        let in_part = answers.iter().any(Result::is_ok);
        let answers: Result<Vec<Value>> = answers.into_iter().collect();
        answers.map_err(|error| if in_part { error.with_effect(Effect::Unknown) } else { error })
    }

    /// Runs commands on keys of one slot in one step: all of them, or none. It
    /// fails where that is not known or not so; an answer may still be an error.
    pub(crate) async fn transact(
        &self,
        operation: &'static str,
        about: &About,
        writes: bool,
        commands: &[&Cmd],
    ) -> Result<Vec<Result<Value>>> {
        let batch = if writes { self.step(commands) } else { Batch::step(commands, false) };
        let told = |failure: Failure| failure.into_error(operation, Some(about), writes);
        let answers = self.link.send(&batch).await.map_err(told)?;
        let tell = |answer: Answer| answer.map_err(|refused| told(Failure::Refused(refused)));
        Ok(answers.into_iter().map(tell).collect())
    }

    /// Commands that write, in one step, and on as many replicas as is asked for.
    fn step<'a>(&self, commands: &'a [&'a Cmd]) -> Batch<'a> {
        let Options { replicas, replica_timeout, .. } = self.options;
        Batch::step(commands, true).replicated(replicas, replica_timeout)
    }

    /// Runs commands that only read, each on keys of one slot, in one round
    /// trip on a single server, and fails where one of them does.
    pub(crate) async fn read(
        &self,
        operation: &'static str,
        about: &About,
        commands: &[Cmd],
    ) -> Result<Vec<Value>> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let told = |failure: Failure| failure.into_error(operation, Some(about), false);
        let commands: Vec<_> = commands.iter().collect();
        let answers = self.link.read(&commands).await.map_err(told)?;
        answers
            .into_iter()
            .map(|it| it.map_err(|refused| told(Failure::Refused(refused))))
            .collect()
    }
}

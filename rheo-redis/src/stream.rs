//! Creating, deleting and listing streams. The steps, and how anyone can
//! finish them, are told in `lua/stream.lua`.

use std::collections::HashMap;
use std::fmt;

use redis::{FromRedisValue, Value, cmd};
use rheo_core::backend::StreamRef;
use rheo_core::{Effect, Error, ErrorKind, Result, StreamName};

use crate::Store;
use crate::call::Call;
use crate::error::{Failure, corrupt, stream_not_found};

/// How often a create begins anew, because the name was taken by a stream that
/// was being deleted.
const TRIES: usize = 16;

/// What the catalog says of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    made: u64,
    partitions: u32,
    state: State,
    /// What the stream is indexed by, with commas between.
    index: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Making,
    Ready,
    Dropping,
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let entry = Self {
            made: words.next()?.parse().ok()?,
            partitions: words.next()?.parse().ok()?,
            state: match words.next()? {
                "making" => State::Making,
                "ready" => State::Ready,
                "dropping" => State::Dropping,
                _ => return None,
            },
            index: words.next()?.into(),
        };
        words.next().is_none().then_some(entry)
    }

    fn turned(&self, state: State) -> Self {
        Self { state, ..self.clone() }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Making => "making",
            State::Ready => "ready",
            State::Dropping => "dropping",
        };
        write!(f, "{} {} {state} {}", self.made, self.partitions, self.index)
    }
}

impl Store {
    /// Creates a stream, with the indexes that the options ask for.
    pub(crate) async fn create_stream(&self, stream: &StreamRef) -> Result<()> {
        const OPERATION: &str = "create_stream";
        let name = &stream.name;
        let enter = Call::write("enter_stream", name, &[self.keys.streams()])
            .arg(name.as_str())
            .arg(stream.partitions)
            .arg(self.options.index_list());
        for _ in 0..TRIES {
            match self.call(OPERATION, &enter).await {
                Ok(entered) => {
                    let entry = entry_of(OPERATION, name, entered)?;
                    self.finish_stream(OPERATION, name, entry).await?;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if self.find_stream(OPERATION, name).await?.is_some() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let context = format!("stream {name:?} keeps being created and deleted by others");
        Err(Error::new(ErrorKind::Conflict, OPERATION, context))
    }

    /// Deletes a stream, its events and its groups.
    pub(crate) async fn delete_stream(&self, name: &StreamName) -> Result<()> {
        const OPERATION: &str = "delete_stream";
        let found = self.find_stream(OPERATION, name).await?;
        let entry = found.ok_or_else(|| stream_not_found(OPERATION, name))?;
        let dropping = entry.turned(State::Dropping);
        let leave = self.turn(name, &entry, Some(&dropping));
        let mut stages = self.joined(vec![leave], self.drops(name, &entry));
        stages.push(vec![self.turn(name, &dropping, None)]);
        let answers = self.in_stages(OPERATION, stages).await?;
        match answers.first() {
            Some(Value::Int(1)) => Ok(()),
            // Somebody else deleted it meanwhile.
            _ => Err(stream_not_found(OPERATION, name)),
        }
    }

    /// How many partitions a stream has.
    pub(crate) async fn partitions(&self, name: &StreamName) -> Result<u32> {
        const OPERATION: &str = "partitions";
        let found = self.find_stream(OPERATION, name).await?;
        found.map(|entry| entry.partitions).ok_or_else(|| stream_not_found(OPERATION, name))
    }

    /// All streams, by name.
    pub(crate) async fn list_streams(&self) -> Result<Vec<StreamRef>> {
        const OPERATION: &str = "list_streams";
        let catalog = self.catalog(OPERATION).await?;
        let mut streams = Vec::with_capacity(catalog.len());
        // Under the empty name is the last number given.
        for (name, entry) in catalog.into_iter().filter(|(name, _)| !name.is_empty()) {
            let name = StreamName::new(&name)
                .map_err(|_| corrupt(OPERATION, format!("a stream cannot be called {name:?}")))?;
            let entry = entry_of(OPERATION, &name, entry)?;
            if let Some(entry) = self.help_stream(OPERATION, &name, entry).await? {
                streams.push(StreamRef { name, partitions: entry.partitions });
            }
        }
        streams.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(streams)
    }

    /// The entries of all streams.
    async fn catalog(&self, operation: &'static str) -> Result<HashMap<String, Value>> {
        let told = |failure: Failure| failure.into_error(operation, None, false);
        let mut all = cmd("HGETALL");
        all.arg(self.keys.streams());
        let answer = self.link.read(&[&all]).await.map_err(told)?.pop();
        let entries = answer.unwrap_or(Ok(Value::Nil)).map_err(Failure::Refused).map_err(told)?;
        HashMap::from_redis_value(entries)
            .map_err(|_| corrupt(operation, "the catalog of streams is no list of names"))
    }

    /// The stream of this name, if there is one, once it is in no half state.
    async fn find_stream(
        &self,
        operation: &'static str,
        name: &StreamName,
    ) -> Result<Option<Entry>> {
        let mut get = cmd("HGET");
        get.arg(self.keys.streams()).arg(name.as_str());
        match self.read(operation, &name.into(), &[get]).await?.pop() {
            None | Some(Value::Nil) => Ok(None),
            Some(entry) => {
                let entry = entry_of(operation, name, entry)?;
                self.help_stream(operation, name, entry).await
            }
        }
    }

    /// Finishes what somebody else began. That is no effect of this operation.
    async fn help_stream(
        &self,
        operation: &'static str,
        name: &StreamName,
        entry: Entry,
    ) -> Result<Option<Entry>> {
        let finished = self.finish_stream(operation, name, entry).await;
        finished.map_err(|error| error.with_effect(Effect::NotApplied))
    }

    /// Makes or drops all of the stream where that is not finished, and returns
    /// the stream, unless it was dropped.
    async fn finish_stream(
        &self,
        operation: &'static str,
        name: &StreamName,
        entry: Entry,
    ) -> Result<Option<Entry>> {
        match entry.state {
            State::Ready => Ok(Some(entry)),
            State::Making => {
                let ready = entry.turned(State::Ready);
                let turn = self.turn(name, &entry, Some(&ready));
                self.in_stages(operation, vec![self.makes(name, &entry), vec![turn]]).await?;
                Ok(Some(ready))
            }
            State::Dropping => {
                let turn = self.turn(name, &entry, None);
                self.in_stages(operation, vec![self.drops(name, &entry), vec![turn]]).await?;
                Ok(None)
            }
        }
    }

    /// Replaces the entry in the catalog, unless it is another by now.
    fn turn(&self, name: &StreamName, before: &Entry, after: Option<&Entry>) -> Call {
        Call::write("turn_stream", name, &[self.keys.streams()])
            .arg(name.as_str())
            .arg(before.to_string())
            .arg(after.map(Entry::to_string).unwrap_or_default())
            .even_when_full()
    }

    fn makes(&self, name: &StreamName, entry: &Entry) -> Vec<Call> {
        let make = |partition| {
            Call::write("make_partition", name, &self.partition_keys(name, partition))
                .arg(entry.partitions)
                .arg(entry.made)
                .arg(&entry.index)
        };
        (0..entry.partitions).map(make).collect()
    }

    fn drops(&self, name: &StreamName, entry: &Entry) -> Vec<Call> {
        let drop = |partition| {
            Call::write("drop_partition", name, &self.partition_keys(name, partition))
                .arg(entry.made)
                .arg(if partition == 0 { self.channel(name) } else { String::new() })
                .even_when_full()
        };
        (0..entry.partitions).map(drop).collect()
    }

    /// The keys that functions on partitions take.
    pub(crate) fn partition_keys(&self, name: &StreamName, partition: u32) -> [String; 2] {
        [self.keys.log(name, partition), self.keys.meta(name, partition)]
    }

    /// Two stages that are one step where they can be: on a single server.
    pub(crate) fn joined(&self, mut first: Vec<Call>, then: Vec<Call>) -> Vec<Vec<Call>> {
        if self.link.is_cluster() {
            return vec![first, then];
        }
        first.extend(then);
        vec![first]
    }

    /// Makes the calls of one stage after the other, as long as all succeed,
    /// and returns all answers. Where one fails, others may have taken effect.
    pub(crate) async fn in_stages(
        &self,
        operation: &'static str,
        stages: Vec<Vec<Call>>,
    ) -> Result<Vec<Value>> {
        let mut answers = Vec::new();
        for stage in stages {
            let begun = !answers.is_empty();
            let unknown = |error: Error| error.with_effect(Effect::Unknown);
            let answered = self.call_all(operation, &stage).await;
            answers.extend(answered.map_err(|it| if begun { unknown(it) } else { it })?);
        }
        Ok(answers)
    }
}

fn entry_of(operation: &'static str, name: &StreamName, value: Value) -> Result<Entry> {
    let text = String::from_redis_value(value).unwrap_or_default();
    Entry::parse(&text)
        .ok_or_else(|| corrupt(operation, format!("the catalog says {text:?} of stream {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        for text in ["1 1 making ", "1795997062822256 1024 ready type,key", "7 3 dropping lineage"]
        {
            assert_eq!(Entry::parse(text).map(|entry| entry.to_string()).as_deref(), Some(text));
        }
        for strange in ["", "1 1 ready", "x 1 ready ", "1 -1 ready ", "1 1 gone ", "1 1 ready  "] {
            assert_eq!(Entry::parse(strange), None, "{strange:?}");
        }
    }

    #[test]
    fn only_the_state_of_an_entry_turns() {
        let making = Entry::parse("7 3 making key").unwrap();
        assert_eq!(making.turned(State::Ready).to_string(), "7 3 ready key");
    }
}

//! Reading by sequence.

use redis::{Value, cmd};
use rheo_core::backend::Read;
use rheo_core::{Event, Result};

use crate::Store;
use crate::codec::{self, entry_id};
use crate::error::{corrupt, stream_not_found};

const OPERATION: &str = "read";

impl Store {
    /// Reads one partition, ascending.
    pub(crate) async fn read_log(&self, request: &Read) -> Result<Vec<Event>> {
        let Read { stream, partition, after, limit } = request;
        let mut range = cmd("XRANGE");
        range.arg(self.keys.log(&stream.name, *partition));
        range.arg(format!("({}", entry_id(*after))).arg("+").arg("COUNT").arg(*limit);
        let mut count = cmd("HGET");
        count.arg(self.keys.meta(&stream.name, *partition)).arg("partitions");
        let answers = self.read(OPERATION, &stream.into(), &[range, count]).await?;
        let [entries, partitions] = <[Value; 2]>::try_from(answers)
            .map_err(|_| corrupt(OPERATION, "a read has two answers"))?;
        if partitions != Value::BulkString(stream.partitions.to_string().into()) {
            return Err(stream_not_found(OPERATION, &stream.name));
        }
        codec::events(entries, &stream.name, *partition)
    }
}

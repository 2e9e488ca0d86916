//! [`Cursor`] and [`Page`]: going through the answer to a query in parts.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64;

use super::{Query, fingerprint};
use crate::backend::StreamRef;
use crate::{Error, Event, Result};

/// The first byte of every cursor.
const FORMAT: u8 = 1;

/// Where a walk through the pages of a query stands.
///
/// It is one opaque word, as text and in serde, and can be kept for as long as
/// the stream is there: also across restarts, and in another process. It goes
/// with the stream and the query that it came from, whose limit alone may change.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cursor {
    stream: u64,
    query: u64,
    /// For each partition of the stream, the sequence after which to go on.
    positions: Vec<u64>,
}

impl Cursor {
    /// Remembers, for each partition of the stream, the sequence after which
    /// to go on.
    pub(crate) fn new(stream: &StreamRef, query: &Query, positions: &[u64]) -> Self {
        Self {
            stream: fingerprint::of_stream(stream),
            query: fingerprint::of_query(query),
            positions: positions.to_vec(),
        }
    }

    /// For each partition, the sequence after which to go on.
    ///
    /// # Errors
    /// `Invalid` where the cursor came from another stream or another query.
    pub(crate) fn positions(&self, stream: &StreamRef, query: &Query) -> Result<Vec<u64>> {
        let invalid = |why| Err(Error::invalid("query_page", why));
        if self.stream != fingerprint::of_stream(stream)
            || self.positions.len() != stream.partitions as usize
        {
            return invalid("the cursor belongs to another stream");
        }
        if self.query != fingerprint::of_query(query) {
            return invalid("the cursor belongs to another query");
        }
        Ok(self.positions.clone())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.stream.to_le_bytes());
        bytes.extend(self.query.to_le_bytes());
        for &position in &self.positions {
            write_varint(&mut bytes, position);
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, checksum) = bytes.split_last_chunk()?;
        if xxh3_64(bytes) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let bytes = bytes.strip_prefix(&[FORMAT])?;
        let (stream, bytes) = bytes.split_first_chunk()?;
        let (query, mut bytes) = bytes.split_first_chunk()?;
        let mut positions = Vec::new();
        while !bytes.is_empty() {
            positions.push(read_varint(&mut bytes)?);
        }
        Some(Self {
            stream: u64::from_le_bytes(*stream),
            query: u64::from_le_bytes(*query),
            positions,
        })
    }
}

/// Seven bits to a byte, the lowest first; the top bit says that more follow.
fn write_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        let shifted = part << shift;
        if shifted >> shift != part {
            return None;
        }
        number |= shifted;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.encode()))
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cursor({self})")
    }
}

impl FromStr for Cursor {
    type Err = Error;

    /// Reads what `Display` wrote.
    ///
    /// # Errors
    /// `Invalid` where it is something else, or was changed on the way.
    fn from_str(text: &str) -> Result<Self> {
        let bytes = BASE64.decode(text).ok();
        bytes.and_then(|bytes| Self::decode(&bytes)).ok_or_else(|| {
            Error::invalid("cursor", "the text is no cursor, or was changed on the way")
        })
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A part of the answer to a query.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The events, ascending by (sequence, partition).
    pub events: Vec<Event>,
    /// From where the next page goes on. After the last page it goes on with
    /// what is appended later.
    pub cursor: Cursor,
    /// Whether there may be more already.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ErrorKind, StreamName};

    fn stream(name: &str, partitions: u32) -> StreamRef {
        StreamRef { name: StreamName::new(name).unwrap(), partitions }
    }

    fn refusal(result: Result<impl fmt::Debug>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.context().into()
    }

    proptest! {
        #[test]
        fn positions_survive_text(positions in prop::collection::vec(any::<u64>(), 1..20)) {
            let (stream, query) = (stream("orders", positions.len() as u32), Query::new().key("k"));
            let cursor = Cursor::new(&stream, &query, &positions);
            let read: Cursor = cursor.to_string().parse().unwrap();
            prop_assert_eq!(&read, &cursor);
            prop_assert_eq!(read.positions(&stream, &query.limit(7)).unwrap(), positions);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(text.parse::<Cursor>().is_err());
            prop_assert!(Cursor::decode(&bytes).is_none());
        }
    }

    #[test]
    fn it_belongs_to_one_stream_and_one_query() {
        let (orders, query) = (stream("orders", 2), Query::new().key("k"));
        let cursor = Cursor::new(&orders, &query, &[7, 300]);
        for other in [stream("order", 2), stream("orders", 3)] {
            let why = refusal(cursor.positions(&other, &query));
            assert_eq!(why, "the cursor belongs to another stream");
        }
        let others = [Query::new(), query.clone().partition(0), query.after_sequence(1)];
        for other in others {
            let why = refusal(cursor.positions(&orders, &other));
            assert_eq!(why, "the cursor belongs to another query");
        }
    }

    #[test]
    fn every_change_to_its_text_is_noticed() {
        let text = Cursor::new(&stream("orders", 2), &Query::new(), &[7, u64::MAX]).to_string();
        let alphabet = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain("-_=+/ ".chars());
        for other in alphabet {
            for at in (0..text.len()).filter(|&at| !text[at..].starts_with(other)) {
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                refusal(changed.parse::<Cursor>());
            }
            refusal(format!("{text}{other}").parse::<Cursor>());
        }
        for end in 0..text.len() {
            refusal(text[..end].parse::<Cursor>());
        }
    }

    #[test]
    fn it_is_one_word_in_serde() {
        let cursor = Cursor::new(&stream("orders", 1), &Query::new(), &[1]);
        let json = serde_json::to_string(&cursor).unwrap();
        assert_eq!(json, format!("\"{cursor}\""));
        assert_eq!(serde_json::from_str::<Cursor>(&json).unwrap(), cursor);
    }

    /// A varint of eleven bytes, or above 64 bits, even where the checksum fits.
    #[test]
    fn numbers_that_are_too_long_are_refused() {
        for mut bytes in
            [&[0xff; 11][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], &[0x80]]
        {
            assert_eq!(read_varint(&mut bytes), None);
        }
    }
}

//! The names of keys: which key holds what, and that the keys of a partition
//! share a slot of a cluster.

use rheo_core::{GroupName, StreamName};

/// Makes the names of all keys, under the prefix of this instance.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    /// The prefix has no braces, so that the first ones are a partition's tag.
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into() }
    }

    /// The list of all streams.
    pub(crate) fn streams(&self) -> String {
        format!("{}streams", self.prefix)
    }

    /// The channel on which work in a stream is made known.
    pub(crate) fn channel(&self, stream: &StreamName) -> String {
        format!("{}wake:{}", self.prefix, word(stream.as_str()))
    }

    /// A partition's log. What is in braces decides the slot, and all other
    /// keys of the partition begin with this one.
    pub(crate) fn log(&self, stream: &StreamName, partition: u32) -> String {
        format!("{}{{{}/{partition}}}", self.prefix, word(stream.as_str()))
    }

    /// What is known of a partition beside its events: a hash.
    pub(crate) fn meta(&self, stream: &StreamName, partition: u32) -> String {
        self.log(stream, partition) + ":meta"
    }

    /// The sequences of events whose ids their callers gave: a hash.
    pub(crate) fn ids(&self, stream: &StreamName, partition: u32) -> String {
        self.log(stream, partition) + ":ids"
    }

    /// The sequences of events that have `value` for `field`: a sorted set.
    pub(crate) fn index(
        &self,
        stream: &StreamName,
        partition: u32,
        field: &str,
        value: &str,
    ) -> String {
        format!("{}:by:{field}:{}", self.log(stream, partition), word(value))
    }

    /// The keys of a group in a partition, in the order in which all functions
    /// on groups take them.
    pub(crate) fn group(
        &self,
        stream: &StreamName,
        partition: u32,
        group: &GroupName,
    ) -> Vec<String> {
        let log = self.log(stream, partition);
        let of_group = format!("{log}:group:{}", word(group.as_str()));
        let parts = ["open", "leased", "delayed", "ready", "attempts", "dead", "graves"];
        let mut keys = vec![log.clone(), format!("{log}:meta"), of_group.clone()];
        keys.extend(parts.iter().map(|part| format!("{of_group}:{part}")));
        keys
    }
}

/// A name as one word of a key: what could end the word, or a slot's tag, is
/// written as `%` and two hexadecimal digits.
fn word(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '%' | '{' | '}' | '/' | ':' => {
                word.push_str(&format!("%{:02x}", u32::from(character)));
            }
            _ => word.push(character),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word_and_no_two_names_are_the_same() {
        assert_eq!(word("orders"), "orders");
        assert_eq!(word("a:b/c{d}%"), "a%3ab%2fc%7bd%7d%25");
        assert_eq!(word("é ü"), "é ü");
    }

    #[test]
    fn all_keys_of_a_partition_share_its_tag() {
        let keys = Keys::new("rheo:");
        let stream = StreamName::new("or}d{ers").unwrap();
        let group = GroupName::new("{billing}:x").unwrap();
        let tag = "rheo:{or%7dd%7bers/3}";
        assert_eq!(keys.log(&stream, 3), tag);
        let mut all = keys.group(&stream, 3, &group);
        all.push(keys.ids(&stream, 3));
        all.push(keys.index(&stream, 3, "type", "{a}"));
        all.push(keys.meta(&stream, 3));
        assert!(all.iter().all(|key| key.starts_with(tag)), "{all:?}");
        assert_eq!(all.last(), Some(&all[1]));
    }
}

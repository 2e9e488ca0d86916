//! Which partition an event goes to.

use xxhash_rust::xxh3::xxh3_64;

/// The partition for a key in a stream of `partitions`: `xxh3_64` of the key's
/// UTF-8 bytes, seed 0, modulo the number of partitions.
///
/// This function is part of the contract and never changes.
///
/// ```
/// assert_eq!(rheo_core::partition_for_key("AAPL", 4), rheo_core::partition_for_key("AAPL", 4));
/// ```
#[must_use]
pub fn partition_for_key(key: &str, partitions: u32) -> u32 {
    let partition = xxh3_64(key.as_bytes()) % u64::from(partitions.max(1));
    u32::try_from(partition).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vectors: should one of these change, every stored log would be misrouted.
    #[test]
    fn the_routing_never_changes() {
        assert_eq!(xxh3_64(b""), 0x2d06_8005_38d3_94c2);
        let routed = |key| [2, 4, 7, 1024].map(|partitions| partition_for_key(key, partitions));
        assert_eq!(routed(""), [0, 2, 0, 194]);
        assert_eq!(partition_for_key("anything", 1), 0);
    }
}

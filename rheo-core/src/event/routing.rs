//! Which partition an event goes to.

use xxhash_rust::xxh3::xxh3_64;

/// The partition for a key in a stream of `partitions`: `xxh3_64` of the key's
/// UTF-8 bytes, seed 0, modulo the number of partitions.
///
/// This function is part of the contract and never changes.
///
/// ```
/// assert_eq!(rheo_core::partition_for_key("AAPL", 4), 1);
/// ```
#[must_use]
pub fn partition_for_key(key: &str, partitions: u32) -> u32 {
    let partition = xxh3_64(key.as_bytes()) % u64::from(partitions.max(1));
    u32::try_from(partition).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vectors, from another implementation of xxh3: should one of these
    /// change, every stored log would be misrouted.
    #[test]
    fn the_routing_never_changes() {
        let long = "a".repeat(300);
        let vectors = [
            ("", 0x2d06_8005_38d3_94c2, [0, 2, 4, 194]),
            ("AAPL", 0xdfb0_aa5c_25cc_e8c5, [1, 1, 0, 197]),
            ("AMZN", 0xfa6b_23e7_ee7b_d426, [0, 2, 6, 38]),
            ("customer-7", 0xfbea_082c_2997_ee28, [0, 0, 0, 552]),
            ("é", 0xf794_0a00_6cf1_0cb3, [1, 3, 6, 179]),
            (&long, 0xc1d1_7581_d8eb_7e21, [1, 1, 0, 545]),
        ];
        for (key, hash, routed) in vectors {
            assert_eq!(xxh3_64(key.as_bytes()), hash, "{key}");
            let partitions = [2, 4, 7, 1024];
            assert_eq!(partitions.map(|count| partition_for_key(key, count)), routed, "{key}");
            assert_eq!(partition_for_key(key, 1), 0);
        }
    }
}

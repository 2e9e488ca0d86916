//! Which slot of a cluster a command's keys are in.

use redis::{Arg, Cmd};

/// How many slots a cluster has.
pub(super) const SLOTS: u16 = 16384;

/// The slot of a command's keys, by the first of them.
pub(super) fn slot_of(command: &Cmd) -> u16 {
    first_key(command).map_or(0, slot)
}

/// Where the commands that Rheo uses have their first key.
fn first_key(command: &Cmd) -> Option<&[u8]> {
    let mut words = command.args_iter().filter_map(|arg| match arg {
        Arg::Simple(word) => Some(word),
        _ => None,
    });
    let name = words.next()?;
    match name {
        b"FCALL" | b"FCALL_RO" => words.nth(2),
        b"XREADGROUP" | b"XREAD" => {
            words.find(|word| word.eq_ignore_ascii_case(b"STREAMS"))?;
            words.next()
        }
        b"XINFO" | b"XGROUP" | b"MEMORY" | b"OBJECT" => words.nth(1),
        _ => words.next(),
    }
}

/// The slot of a key: that of what stands in its first braces, if there is
/// something, and else of all of it.
fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// The checksum that the cluster's specification names (XMODEM).
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo"), 12182);
        assert_eq!(slot(b"{foo}:bar"), slot(b"foo"));
        assert_eq!(slot(b"a{foo}{bar}"), slot(b"foo"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{bar"), crc16(b"foo{bar") % SLOTS);
    }

    #[test]
    fn commands_go_where_their_first_key_is() {
        let mut calls = [cmd("FCALL"), cmd("XREADGROUP"), cmd("XINFO"), cmd("XRANGE"), cmd("PING")];
        calls[0].arg("f").arg(2).arg("{a}").arg("{b}").arg("x");
        calls[1].arg("GROUP").arg("g").arg("c").arg("COUNT").arg(1).arg("STREAMS").arg("{a}");
        calls[2].arg("STREAM").arg("{a}");
        calls[3].arg("{a}").arg("-").arg("+");
        let slots: Vec<_> = calls.iter().map(slot_of).collect();
        let a = slot(b"a");
        assert_eq!(slots, [a, a, a, a, 0]);
    }
}

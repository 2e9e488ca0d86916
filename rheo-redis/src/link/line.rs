//! [`Line`]: what a node tells about a range of slots.

use redis::Value;

use crate::connect::address::Place;

/// A range of slots, and who has them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) primary: Place,
    pub(super) replicas: Vec<Place>,
}

impl Line {
    /// Reads a line of what CLUSTER SLOTS answers. Nothing where the node that
    /// answered does not know who has the slots.
    pub(super) fn read(line: &Value, told_by: &Place) -> Option<Self> {
        let Value::Array(line) = line else {
            return None;
        };
        let [Value::Int(first), Value::Int(last), primary, replicas @ ..] = line.as_slice() else {
            return None;
        };
        Some(Self {
            first: u16::try_from(*first).ok()?,
            last: u16::try_from(*last).ok()?,
            primary: place(primary, told_by)?,
            replicas: replicas.iter().filter_map(|replica| place(replica, told_by)).collect(),
        })
    }
}

fn place(node: &Value, told_by: &Place) -> Option<Place> {
    let Value::Array(node) = node else {
        return None;
    };
    let [host, Value::Int(port), ..] = node.as_slice() else {
        return None;
    };
    let host = match host {
        // It is where it was asked.
        Value::Nil => told_by.host.clone(),
        Value::BulkString(host) if host.is_empty() => told_by.host.clone(),
        Value::BulkString(host) => String::from_utf8(host.clone()).ok()?,
        _ => return None,
    };
    let known = host != "?";
    known.then_some(Place { host, port: u16::try_from(*port).ok()? })
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    #[test]
    fn ranges_and_who_has_them_are_read() {
        let place = |host: &str, port| Place { host: host.into(), port };
        let read =
            |text: &str| Line::read(&parse_redis_value(text.as_bytes()).unwrap(), &place("me", 1));
        let line = "*4\r\n:5\r\n:9\r\n*3\r\n$1\r\nb\r\n:2\r\n$1\r\nx\r\n*2\r\n$0\r\n\r\n:3\r\n";
        let whole =
            Line { first: 5, last: 9, primary: place("b", 2), replicas: vec![place("me", 3)] };
        assert_eq!(read(line), Some(whole));
        assert_eq!(read(&line.replace("$1\r\nb", "$-1")).unwrap().primary, place("me", 2));
        assert_eq!(read(&line.replace("\r\nb\r\n", "\r\n?\r\n")), None);
        assert_eq!(read("+OK\r\n"), None);
    }
}

//! Names of streams, groups and consumers.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Error, Result};

/// The longest a name may be, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;

fn check(what: &'static str, name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid(what, "a name has at least one character"));
    }
    if name.len() > MAX_NAME_BYTES {
        let context = format!("a name has at most {MAX_NAME_BYTES} bytes, not {}", name.len());
        return Err(Error::invalid(what, context));
    }
    if name.chars().any(char::is_control) {
        let context = format!("a name has no control character: {name:?}");
        return Err(Error::invalid(what, context));
    }
    Ok(())
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident $what:literal;)+) => {$(
        $(#[$doc])*
        ///
        /// 1 to 255 bytes of UTF-8 without control characters. Every other
        /// character is allowed and means itself; names are compared byte for byte.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes a name.
            ///
            /// # Errors
            /// `Invalid` where it is empty, longer than 255 bytes, or holds a control character.
            pub fn new(name: impl AsRef<str>) -> Result<Self> {
                let name = name.as_ref();
                check($what, name)?;
                Ok(Self(name.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                Self::new(&text).map_err(serde::de::Error::custom)
            }
        }
    )+};
}

names! {
    /// The name of a stream.
    StreamName "stream name";
    /// The name of a group on one stream.
    GroupName "group name";
    /// The name by which a consumer tells the store who holds a lease.
    ConsumerId "consumer id";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_but_control_means_itself() {
        for name in ["A", "a", "a ", "é", "e", "a:b", "{x}", "%", "'", "🦀", " "] {
            assert_eq!(StreamName::new(name).unwrap().as_str(), name);
        }
        assert!(StreamName::new("é".repeat(127)).is_ok());
    }

    #[test]
    fn what_breaks_the_rule_is_told() {
        for name in ["", "a\nb", "\u{0}", "\u{7f}", "\u{85}", &"é".repeat(128)] {
            let error = GroupName::new(name).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Invalid, "{name:?}");
        }
    }
}

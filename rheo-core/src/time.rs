//! [`Timestamp`]: an instant, to the microsecond.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// An instant in UTC, to the microsecond, from the year 1 to the year 9998.
///
/// Microseconds are what every supported store holds exactly, so a timestamp
/// comes back as it went in. Anything finer is cut off, never rounded up.
///
/// ```
/// use std::time::Duration;
/// use rheo_core::Timestamp;
///
/// let noon: Timestamp = "2026-03-15T12:00:00Z".parse()?;
/// assert_eq!((noon + Duration::from_millis(1500)).to_string(), "2026-03-15T12:00:01.5Z");
/// # Ok::<(), rheo_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The first instant that can be held: the start of the year 1.
    pub const MIN: Self = Self(-62_135_596_800_000_000);
    /// The last instant that can be held: the end of the year 9998.
    pub const MAX: Self = Self(253_370_764_799_999_999);

    /// The system's time.
    #[must_use]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// From microseconds since 1970-01-01T00:00:00Z; values out of range
    /// become [`MIN`](Self::MIN) or [`MAX`](Self::MAX).
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to this instant, zero where it is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_add(micros(duration)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self::from_micros(self.0.saturating_sub(micros(duration)))
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self::from_micros(micros(after)),
            Err(before) => {
                let micros = before.duration().as_nanos().div_ceil(1000);
                Self::from_micros(i64::try_from(micros).map_or(i64::MIN, |micros| -micros))
            }
        }
    }
}

impl From<Timestamp> for SystemTime {
    fn from(timestamp: Timestamp) -> Self {
        let distance = Duration::from_micros(timestamp.0.unsigned_abs());
        if timestamp.0 >= 0 { Self::UNIX_EPOCH + distance } else { Self::UNIX_EPOCH - distance }
    }
}

/// As RFC 3339, in UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => fmt::Display::fmt(&instant, f),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339.
    ///
    /// # Errors
    /// `Invalid` where the text is none, or has no offset.
    fn from_str(text: &str) -> Result<Self, Error> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| {
            Error::invalid(
                "timestamp",
                format!("{text:?} is no RFC 3339 instant such as 2026-03-15T12:00:00Z"),
            )
        })?;
        let micros = instant.as_nanosecond().div_euclid(1000);
        Ok(Self::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_survive_text_and_system_time() {
        for micros in [0, 1, -1, 1_773_576_000_000_001, -62_135_596_800_000_000] {
            let instant = Timestamp::from_micros(micros);
            assert_eq!(instant.to_string().parse::<Timestamp>().unwrap(), instant);
            assert_eq!(Timestamp::from(SystemTime::from(instant)), instant);
        }
    }

    #[test]
    fn what_is_finer_is_cut_off_and_never_rounded_up() {
        let late: Timestamp = "1970-01-01T00:00:00.0000019Z".parse().unwrap();
        let early: Timestamp = "1969-12-31T23:59:59.9999989Z".parse().unwrap();
        assert_eq!((late.as_micros(), early.as_micros()), (1, -2));
        let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_nanos(1100);
        assert_eq!(Timestamp::from(before_1970).as_micros(), -2);
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::MIN - Duration::MAX, Timestamp::MIN);
        assert_eq!(Timestamp::MIN.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::MAX.to_string(), "9998-12-31T23:59:59.999999Z");
    }

    #[test]
    fn text_that_is_no_instant_is_invalid() {
        let error = "tomorrow".parse::<Timestamp>().unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
    }
}

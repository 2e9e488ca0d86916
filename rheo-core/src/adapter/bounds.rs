//! [`Bounds`]: between which integers a number lies that meets a condition.

use serde_json::{Number, Value};

use crate::Condition;

/// Between which integers a sequence or a partition lies that meets conditions.
///
/// A store can look there alone. The matcher still has the last word: what
/// conditions allow is never left out, and more than that may lie between.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    first: i128,
    last: i128,
}

impl Default for Bounds {
    /// All integers.
    fn default() -> Self {
        Self { first: i128::MIN, last: i128::MAX }
    }
}

impl Bounds {
    /// Where an integer lies that meets the condition. Where it has a list,
    /// more integers than those that meet it may lie there.
    #[must_use]
    pub fn of(condition: &Condition) -> Self {
        let all = Self::default();
        match condition {
            Condition::Exists => all,
            Condition::Equals(value) => Self::at(value),
            Condition::In(values) => {
                let none = Self { first: i128::MAX, last: i128::MIN };
                values.iter().map(Self::at).fold(none, |a, b| Self {
                    first: a.first.min(b.first),
                    last: a.last.max(b.last),
                })
            }
            Condition::Less(value) => Self { last: Self::at(value).first.saturating_sub(1), ..all },
            Condition::LessOrEqual(value) => Self { last: Self::at(value).last, ..all },
            Condition::Greater(value) => {
                Self { first: Self::at(value).last.saturating_add(1), ..all }
            }
            Condition::GreaterOrEqual(value) => Self { first: Self::at(value).first, ..all },
        }
    }

    /// The integers that equal the value: between a fraction's ceiling and its
    /// floor lies none. What is no number rules nothing out.
    fn at(value: &Value) -> Self {
        match value {
            Value::Number(number) => {
                Self { first: rounded(number, f64::ceil), last: rounded(number, f64::floor) }
            }
            _ => Self::default(),
        }
    }

    /// What lies in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { first: self.first.max(other.first), last: self.last.min(other.last) }
    }

    /// The first and the last that are at least 0; the last is below the first
    /// where there are none.
    #[must_use]
    pub fn ends(self) -> (u64, u64) {
        if self.last < 0 {
            return (1, 0);
        }
        let end = |end: i128| u64::try_from(end.max(0)).unwrap_or(u64::MAX);
        (end(self.first), end(self.last))
    }
}

/// A float beyond all integers here becomes the last of them.
fn rounded(number: &Number, round: fn(f64) -> f64) -> i128 {
    if let Some(integer) = number.as_i64() {
        integer.into()
    } else if let Some(integer) = number.as_u64() {
        integer.into()
    } else {
        round(number.as_f64().unwrap_or_default()) as i128
    }
}

#[cfg(test)]
mod tests {
    use Condition::{Equals, Exists, Greater, GreaterOrEqual, In, Less, LessOrEqual};
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_hold_exactly_the_integers_that_meet_a_condition() {
        let table = [
            (Exists, (0, u64::MAX)),
            (Equals(json!(7)), (7, 7)),
            (Equals(json!(7.0)), (7, 7)),
            (Equals(json!(7.5)), (8, 7)),
            (Equals(json!(-1)), (1, 0)),
            (Equals(json!(u64::MAX)), (u64::MAX, u64::MAX)),
            (Less(json!(7)), (0, 6)),
            (Less(json!(7.5)), (0, 7)),
            (Less(json!(0)), (1, 0)),
            (Less(json!(1e300)), (0, u64::MAX)),
            (LessOrEqual(json!(7)), (0, 7)),
            (LessOrEqual(json!(7.5)), (0, 7)),
            (LessOrEqual(json!(-0.5)), (1, 0)),
            (Greater(json!(7)), (8, u64::MAX)),
            (Greater(json!(7.5)), (8, u64::MAX)),
            (Greater(json!(-3)), (0, u64::MAX)),
            (GreaterOrEqual(json!(7)), (7, u64::MAX)),
            (GreaterOrEqual(json!(7.5)), (8, u64::MAX)),
            (GreaterOrEqual(json!(-1e300)), (0, u64::MAX)),
            (In(vec![json!(9), json!(4.0)]), (4, 9)),
            (In(vec![]), (1, 0)),
        ];
        for (condition, ends) in table {
            assert_eq!(Bounds::of(&condition).ends(), ends, "{condition:?}");
        }
        let both = Bounds::of(&Greater(json!(2))).and(Bounds::of(&Less(json!(9))));
        assert_eq!(both.ends(), (3, 8));
    }
}

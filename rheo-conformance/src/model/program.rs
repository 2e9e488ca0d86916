//! Random programs of operations.

use std::fmt;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use rheo_core::{GroupSettings, Outcome, Position};

/// What the store allows in a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) partitions: u32,
    pub(super) replay: bool,
    pub(super) ordered: bool,
}

/// A group and what is done to it.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) partitions: u32,
    pub(super) settings: GroupSettings,
    /// After which sequence the group starts, in all partitions.
    pub(super) start: u64,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Append {
        partition: u32,
        count: u64,
    },
    Claim {
        partition: u32,
        limit: usize,
        lease: Duration,
    },
    Settle(Vec<(Pick, Outcome)>),
    Renew {
        pick: Pick,
        lease: Duration,
    },
    Advance(Duration),
    ReplayAfter {
        partition: u32,
        sequence: u64,
    },
    /// Those of them that exist.
    ReplayPositions(Vec<Position>),
    ReplayDeadLetters,
    Reset {
        start: u64,
    },
}

/// One of the leases that were ever given out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    /// Counted from the latest one, round and round.
    pub(super) back: usize,
    pub(super) wrong_receipt: bool,
}

pub(super) fn programs(shape: Shape) -> impl Strategy<Value = Program> {
    let steps = vec(step(shape), 1..40);
    (1..=3_u32, 0..3_u64, steps).prop_map(move |(max_attempts, start, steps)| Program {
        partitions: shape.partitions,
        settings: GroupSettings { max_attempts, ordered: shape.ordered },
        start,
        steps,
    })
}

fn step(shape: Shape) -> impl Strategy<Value = Step> {
    let partition = move || 0..shape.partitions;
    let replays = u32::from(shape.replay);
    prop_oneof![
        4 => (partition(), 1..5_u64)
            .prop_map(|(partition, count)| Step::Append { partition, count }),
        10 => (partition(), 1..6_usize, seconds(1..8))
            .prop_map(|(partition, limit, lease)| Step::Claim { partition, limit, lease }),
        9 => vec((pick(), outcome()), 1..5).prop_map(Step::Settle),
        3 => (pick(), seconds(1..8)).prop_map(|(pick, lease)| Step::Renew { pick, lease }),
        6 => seconds(1..6).prop_map(Step::Advance),
        replays => replay(shape),
    ]
}

fn replay(shape: Shape) -> impl Strategy<Value = Step> {
    let partition = move || 0..shape.partitions;
    let position = (partition(), 1..9_u64)
        .prop_map(|(partition, sequence)| Position::new(partition, sequence));
    prop_oneof![
        2 => (partition(), 0..6_u64)
            .prop_map(|(partition, sequence)| Step::ReplayAfter { partition, sequence }),
        2 => vec(position, 1..4).prop_map(Step::ReplayPositions),
        1 => Just(Step::ReplayDeadLetters),
        1 => (0..6_u64).prop_map(|start| Step::Reset { start }),
    ]
}

fn pick() -> impl Strategy<Value = Pick> {
    let back = prop_oneof![4 => 0..5_usize, 1 => 0..40_usize];
    (back, prop::bool::weighted(0.1)).prop_map(|(back, wrong_receipt)| Pick { back, wrong_receipt })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Ack),
        3 => seconds(0..6).prop_map(|after| Outcome::retry_after("again", after)),
        1 => Just(Outcome::reject("never")),
        2 => Just(Outcome::Release),
    ]
}

fn seconds(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_secs)
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupSettings { max_attempts, ordered } = self.settings;
        let kind = if ordered { "an ordered" } else { "a" };
        write!(f, "  0. {kind} group of {} partitions, ", self.partitions)?;
        write!(f, "max_attempts {max_attempts}, after sequence {}", self.start)?;
        for (number, step) in (1..).zip(&self.steps) {
            write!(f, "\n{number:>3}. {step}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append { partition, count } => write!(f, "append {count} to {partition}"),
            Self::Claim { partition, limit, lease } => {
                write!(f, "claim up to {limit} of {partition} for {lease:?}")
            }
            Self::Settle(picks) => {
                f.write_str("settle")?;
                for (index, (pick, outcome)) in picks.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {pick} by {}", outcome.as_str())?;
                    if let Outcome::Retry { after, .. } = outcome {
                        write!(f, " after {after:?}")?;
                    }
                }
                Ok(())
            }
            Self::Renew { pick, lease } => write!(f, "renew {pick} for {lease:?}"),
            Self::Advance(time) => write!(f, "let {time:?} pass"),
            Self::ReplayAfter { partition, sequence } => {
                write!(f, "replay {partition} after {sequence}")
            }
            Self::ReplayPositions(positions) => {
                f.write_str("replay, where they exist,")?;
                positions.iter().try_for_each(|position| write!(f, " {position}"))
            }
            Self::ReplayDeadLetters => f.write_str("replay dead letters"),
            Self::Reset { start } => write!(f, "reset to after {start}"),
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.back {
            0 => f.write_str("the latest lease")?,
            back => write!(f, "the latest lease but {back}")?,
        }
        if self.wrong_receipt {
            f.write_str(" with a wrong receipt")?;
        }
        Ok(())
    }
}

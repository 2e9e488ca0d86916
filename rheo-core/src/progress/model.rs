//! Random programs on a [`Subject`] and on the [`Spec`], compared after every step.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::fixture::{Answer, at, token};
use super::spec::Spec;
use super::{ClaimTurn, Granted, Progress};
use crate::backend::{LeaseRefusal, Settlement};
use crate::{Fence, GroupSettings, Outcome, Receipt, Timestamp, Token};

/// What is compared: a [`Progress`], or something that is kept by means of one.
pub(super) trait Subject {
    fn restart_after(&mut self, sequence: u64);
    fn claim(&mut self, turn: &ClaimTurn<'_>) -> Vec<Granted>;
    fn settle(
        &mut self,
        settlements: &[&Settlement],
        now: Timestamp,
        settings: &GroupSettings,
    ) -> Vec<Answer>;
    fn renew(
        &mut self,
        tokens: &[&Token],
        expires_at: Timestamp,
    ) -> Vec<Result<Timestamp, LeaseRefusal>>;
    fn reopen(&mut self, first: u64, last: u64, high_watermark: u64);
    /// All of its state.
    fn whole(&self) -> Progress;
}

impl Subject for Progress {
    fn restart_after(&mut self, sequence: u64) {
        *self = Self::starting_after(sequence);
    }

    fn claim(&mut self, turn: &ClaimTurn<'_>) -> Vec<Granted> {
        self.claim(turn)
    }

    fn settle(
        &mut self,
        settlements: &[&Settlement],
        now: Timestamp,
        settings: &GroupSettings,
    ) -> Vec<Answer> {
        self.settle(settlements, now, settings)
    }

    fn renew(
        &mut self,
        tokens: &[&Token],
        expires_at: Timestamp,
    ) -> Vec<Result<Timestamp, LeaseRefusal>> {
        self.renew(tokens, expires_at)
    }

    fn reopen(&mut self, first: u64, last: u64, high_watermark: u64) {
        self.reopen(first, last, high_watermark);
    }

    fn whole(&self) -> Progress {
        self.clone()
    }
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Append(u64),
    Claim { limit: usize, lease: i64 },
    Settle { tokens: Tokens, outcomes: Vec<Outcome> },
    Renew { tokens: Tokens, lease: i64 },
    Reopen { first: u64, len: u64 },
    Pass(i64),
    Reset(u64),
}

/// Some of the tokens that were issued, as one would show them to the store.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    /// Where to begin among those issued.
    from: Index,
    count: usize,
    shuffled: bool,
    repeated: bool,
    wrong_receipt: Option<Index>,
    wrong_fence: Option<Index>,
}

impl Tokens {
    fn choose(&self, issued: &[Token]) -> Vec<Token> {
        if issued.is_empty() {
            return vec![token(u128::MAX, 1)];
        }
        let from = self.from.index(issued.len());
        let mut chosen: Vec<_> = issued[from..].iter().take(self.count).cloned().collect();
        if self.shuffled {
            chosen.reverse();
            let middle = chosen.len() / 2;
            chosen.rotate_left(middle);
        }
        if self.repeated {
            chosen.push(chosen[0].clone());
        }
        if let Some(index) = self.wrong_receipt {
            let index = index.index(chosen.len());
            chosen[index].receipt = Receipt::entry("0-1");
        }
        if let Some(index) = self.wrong_fence {
            let index = index.index(chosen.len());
            chosen[index] = token(u128::MAX, chosen[index].lease_id.position().sequence);
        }
        chosen
    }
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let rarely = || prop::option::weighted(0.15, any::<Index>());
    let flags = (prop::bool::weighted(0.3), prop::bool::weighted(0.2));
    (any::<Index>(), 1..12_usize, flags, rarely(), rarely()).prop_map(
        |(from, count, (shuffled, repeated), wrong_receipt, wrong_fence)| Tokens {
            from,
            count,
            shuffled,
            repeated,
            wrong_receipt,
            wrong_fence,
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let retry =
        (0..6_u64).prop_map(|after| Outcome::retry_after("r", Duration::from_micros(after)));
    prop_oneof![
        4 => Just(Outcome::Ack),
        3 => retry,
        1 => Just(Outcome::reject("no")),
        2 => Just(Outcome::Release),
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let settle = (tokens(), prop_oneof![vec(outcome(), 1), vec(outcome(), 1..5)]);
    prop_oneof![
        2 => (1..8_u64).prop_map(Step::Append),
        6 => (1..10_usize, 0..8_i64).prop_map(|(limit, lease)| Step::Claim { limit, lease }),
        6 => settle.prop_map(|(tokens, outcomes)| Step::Settle { tokens, outcomes }),
        2 => (tokens(), 0..8_i64).prop_map(|(tokens, lease)| Step::Renew { tokens, lease }),
        2 => (0..30_u64, 1..20_u64).prop_map(|(first, len)| Step::Reopen { first, len }),
        4 => (1..6_i64).prop_map(Step::Pass),
        1 => (0..20_u64).prop_map(Step::Reset),
    ]
}

/// The two side by side, and what surrounds them.
pub(super) struct Pair<S> {
    subject: S,
    spec: Spec,
    settings: GroupSettings,
    now: Timestamp,
    claims: u128,
    issued: Vec<Token>,
}

impl<S: Subject> Pair<S> {
    /// Takes the steps with a subject that begins after `start`.
    pub(super) fn compare_all(mut subject: S, start: u64, settings: GroupSettings, steps: &[Step]) {
        subject.restart_after(start);
        let mut pair = Self {
            subject,
            spec: Spec::starting_after(start, 0),
            settings,
            now: at(0),
            claims: 0,
            issued: Vec::new(),
        };
        for step in steps {
            pair.take(step);
            pair.compare();
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Append(count) => self.spec.append(*count),
            Step::Claim { limit, lease } => self.claim(*limit, *lease),
            Step::Settle { tokens, outcomes } => self.settle(tokens, outcomes),
            Step::Renew { tokens, lease } => self.renew(tokens, *lease),
            Step::Reopen { first, len } => {
                let last = first + len - 1;
                self.subject.reopen(*first, last, self.spec.high_watermark());
                self.spec.reopen(*first, last, self.now);
            }
            Step::Pass(micros) => self.now = at(self.now.as_micros() + micros),
            Step::Reset(start) => {
                self.subject.restart_after(*start);
                self.spec = Spec::starting_after(*start, self.spec.high_watermark());
            }
        }
    }

    fn turn(&self, limit: usize, now: Timestamp, lease: i64) -> ClaimTurn<'_> {
        ClaimTurn {
            limit,
            high_watermark: self.spec.high_watermark(),
            fence: Fence::from_u128(self.claims),
            now,
            expires_at: at(now.as_micros() + lease),
            settings: &self.settings,
        }
    }

    fn claim(&mut self, limit: usize, lease: i64) {
        self.claims += 1;
        let settings = self.settings;
        let turn = ClaimTurn { settings: &settings, ..self.turn(limit, self.now, lease) };
        let runs = self.subject.claim(&turn);
        let granted: Vec<_> = runs
            .iter()
            .flat_map(|run| (run.first..=run.last).map(|sequence| (sequence, run.attempt)))
            .collect();
        assert_eq!(granted, self.spec.claim(&turn));
        let tokens = granted.iter().map(|&(sequence, _)| token(self.claims, sequence));
        self.issued.extend(tokens);
    }

    fn settle(&mut self, tokens: &Tokens, outcomes: &[Outcome]) {
        let tokens = tokens.choose(&self.issued).into_iter();
        let settlements: Vec<_> = tokens
            .zip(outcomes.iter().cycle().cloned())
            .map(|(token, outcome)| Settlement { token, outcome })
            .collect();
        let references: Vec<_> = settlements.iter().collect();
        let answers = self.subject.settle(&references, self.now, &self.settings);
        let settle = |settlement| self.spec.settle(settlement, self.now, &self.settings);
        assert_eq!(answers, settlements.iter().map(settle).collect::<Vec<_>>());
    }

    fn renew(&mut self, tokens: &Tokens, lease: i64) {
        let expires_at = at(self.now.as_micros() + lease);
        let tokens = tokens.choose(&self.issued);
        let answers = self.subject.renew(&tokens.iter().collect::<Vec<_>>(), expires_at);
        let renew = |token| self.spec.renew(token, expires_at);
        assert_eq!(answers, tokens.iter().map(renew).collect::<Vec<_>>());
    }

    fn compare(&self) {
        let progress = self.subject.whole();
        progress.assert_sound();
        let high_watermark = self.spec.high_watermark();
        assert_eq!(progress.progress(high_watermark, self.now), self.spec.progress(self.now));
        let dead: Vec<_> = progress
            .dead_letters_from(Timestamp::MIN, 0)
            .map(|(sequence, dead)| (dead.at, sequence, dead.attempt, &*dead.reason))
            .collect();
        assert_eq!(dead, self.spec.dead_letters());
        self.compare_hints(&progress);
    }

    /// A claim finds something exactly when the hints say so.
    fn compare_hints(&self, progress: &Progress) {
        let finds = |spec: &Spec, now| {
            let mut after = spec.clone();
            after.claim(&self.turn(1, now, 1));
            after != *spec
        };
        let high_watermark = self.spec.high_watermark();
        let claimable = progress.claimable(high_watermark, self.now, &self.settings);
        assert_eq!(claimable, finds(&self.spec, self.now));

        let open = self.spec.without_new();
        let soon = (self.now.as_micros()..).take(20).map(at);
        let next_due = progress.next_due(self.now, &self.settings);
        assert_eq!(next_due, soon.into_iter().find(|&now| finds(&open, now)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn progress_does_what_the_laws_say(
        max_attempts in 1..=4_u32,
        ordered: bool,
        start in 0..6_u64,
        steps in vec(step(), 1..60),
    ) {
        let settings = GroupSettings { max_attempts, ordered };
        Pair::compare_all(Progress::starting_after(0), start, settings, &steps);
    }
}

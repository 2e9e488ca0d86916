//! What each example prints, on whatever store.

use std::path::PathBuf;
use std::process::{Command, Output};

/// The examples that run on any store.
pub(crate) const ON_ANY_STORE: [fn(&str); 4] = [quickstart, concepts, pipelines, market];

/// Cargo builds the examples together with the tests, and puts them beside.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION)
}

pub(crate) fn run(name: &str, arguments: &[&str]) -> Output {
    let example = example(name);
    assert!(example.exists(), "build it first: cargo build -p rheo --examples --all-features");
    Command::new(example).args(arguments).output().unwrap()
}

/// What the example prints, when it ends well.
pub(crate) fn printed(name: &str, arguments: &[&str]) -> String {
    let output = run(name, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines of `expected`, all of them, in this order, others allowed between.
pub(crate) fn assert_lines(printed: &str, expected: &str) {
    let mut lines = printed.lines().map(str::trim);
    for line in expected.lines().map(str::trim).filter(|line| !line.is_empty()) {
        assert!(
            lines.any(|printed| printed == line),
            "no line {line:?}, or not there, in:\n{printed}"
        );
    }
}

pub(crate) fn quickstart(url: &str) {
    let printed = printed("quickstart", &["--url", url]);
    let expected = "
        appended  0-1  Ada 12.50
        appended  1-1  Bob 80.00
        appended  0-2  Ada 7.25
        lag       1
        lag       0";
    assert_lines(&printed, expected);
    // Which partition comes first is the store's choice.
    for order in ["0-1  Ada 12.50", "0-2  Ada 7.25", "1-1  Bob 80.00"] {
        let line = format!("billed    {order}");
        assert_eq!(printed.lines().filter(|printed| *printed == line).count(), 1, "{printed}");
    }
}

pub(crate) fn concepts(url: &str) {
    let expected = "
        30 curve updates in one partition at 2026-03-15T12:00:00Z

        1. Two groups, one log
        risk fetched 1..=5 at attempt 1
        surveillance fetched 1..=5 at attempt 1
        surveillance acked 1..=5
        the same event ids, different lease ids

        2. A lease expires, and its token is worth nothing any more
        risk fetched 1..=5 at attempt 2
        ack of event 1 with the old lease: stale lease
        risk acked 1..=5

        3. Queries
        EUR-EURIBOR-6M in EUR  3, 6, 9, 12, 15, 18, 21, 24, 27, 30
        after 10 until 15      11..=15
        correlation corr-1     1, 8, 15, 22, 29

        4. Pages of eight
        first page   1..=8
        second page  9..=16
        lazy walk    1..=30

        5. Replay
        risk-replay fetched 21..=30 at attempt 1
        risk is untouched
        risk acked 6..=30
        risk replays after sequence 0: lag 30
        risk fetched 1..=5 at attempt 3
        risk fetched 6..=30 at attempt 2
        risk acked 6..=30
        risk replays what is in EUR: lag 30
        risk fetched 3 at attempt 4; 6, 9, 12, 15, 18, 21, 24, 27, 30 at attempt 3
        ack of event 3 with the older lease: stale lease

        6. Reset
        reset without confirm: confirmation required
        risk fetched 26..=30 at attempt 1
        the log still holds 1..=30

        7. Four partitions, and the frontier of one
        EUR-EURIBOR-6M  partition 2, sequence 1
        EUR-EURIBOR-6M  partition 2, sequence 2
        EUR-EURIBOR-6M  partition 2, sequence 3
        acked the first and the third: frontier 1, lag 2
        acked the second: frontier 3, lag 0

        8. A consumer
        archive processed 1..=30
        a second consumer of archive: already running";
    assert_lines(&printed("concepts", &["--url", url]), expected);
}

pub(crate) fn pipelines(url: &str) {
    let printed = printed("pipelines", &["--url", url]);
    let expected = "
        1. One by one
        12 trades, 780 shares
        lag 0
        2. Reduced and settled three at a time
        trades [1, 2, 3]: total 1 is 60 shares
        trades [4, 5, 6]: total 2 is 150 shares
        trades [7, 8, 9]: total 3 is 240 shares
        trades [10, 11, 12]: total 4 is 330 shares
        lag 0
        3. Windows of two
        the price rose by [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23]
        lag 0
        4. Several at once, with retry and reject
        acked 11, retried 1, rejected 1
        dead letter: trade 7, no such account
        lag 0";
    assert_lines(&printed, expected);
    // Trades that are booked at once end in any order.
    assert_lines(&printed, "trade 5, attempt 1: retry");
    assert_lines(&printed, "trade 7, attempt 1: reject");
}

pub(crate) fn market(url: &str) {
    let expected = "
        560 prices in 4 partitions, keyed by symbol
        symbol  latest price           lowest  highest  rejected
        AAPL     223.02 on 2010-03-01     7.07   223.02        22
        AMZN     128.82 on 2010-03-01     5.97   135.91         3
        GOOG     560.19 on 2010-03-01   102.37   707.00         0
        IBM      125.55 on 2010-03-01    53.01   130.32         0
        MSFT      28.80 on 2010-03-01    15.81    43.22         0
        group       done  lag  dead letters
        screening    560    0            25
        summary      560    0             0
        25 dead letters, of which the first three:
        25 prices under 10, by a query";
    assert_lines(&printed("market", &["--url", url]), expected);
}

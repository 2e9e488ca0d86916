//! Runs each example as a newcomer would, and checks what it prints.
//!
//! On the stores that need a server they run in the tests of their crates.

#![cfg(any(feature = "memory", feature = "sqlite"))]

mod printed;

#[cfg(feature = "memory")]
#[test]
fn they_run_in_memory() {
    for example in printed::ON_ANY_STORE {
        example("memory:");
    }
}

/// Twice, as a newcomer does: nothing of the first run is in the way.
#[cfg(feature = "sqlite")]
#[test]
fn they_run_again_in_the_same_file() {
    let directory = fresh_directory("examples");
    let url = format!("sqlite:{}", directory.join("examples.db").display());
    for example in printed::ON_ANY_STORE {
        example(&url);
        example(&url);
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn outbox() {
    let expected = "
        1. An order and its event
        Ada's order is committed: orders 1, to ship 1, shipped 0
        Bob's order is rolled back: orders 1, to ship 1, shipped 0
        2. A shipment and its ack
        a slow worker has the event, its lease expires, and a quick one has it too
        the quick worker fails at the last moment: orders 1, to ship 1, shipped 0
        the quick worker tries again: orders 1, to ship 0, shipped 1
        the slow worker is refused: stale lease: orders 1, to ship 0, shipped 1";
    printed::assert_lines(&printed::printed("outbox", &[]), expected);

    let directory = fresh_directory("outbox");
    let url = format!("sqlite:{}", directory.join("outbox.db").display());
    for _ in 0..2 {
        printed::assert_lines(&printed::printed("outbox", &["--url", &url]), expected);
    }
}

#[test]
fn a_wrong_argument_is_told() {
    let output = printed::run("quickstart", &["--nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--url URL"));
}

/// A directory of this test's own, in Cargo's target directory.
#[cfg(feature = "sqlite")]
fn fresh_directory(name: &str) -> std::path::PathBuf {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

//! Runs each example as a newcomer would, and checks what it prints.

#![cfg(feature = "memory")]

use std::path::PathBuf;
use std::process::{Command, Output};

/// Cargo builds the examples together with the tests, and puts them beside.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let example = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(example.exists(), "build it first: cargo build -p rheo --examples");
    example
}

fn run(name: &str, arguments: &[&str]) -> Output {
    Command::new(example(name)).args(arguments).output().unwrap()
}

/// What the example prints, when it ends well.
fn printed(name: &str) -> String {
    let output = run(name, &["--url", "memory:"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} failed: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

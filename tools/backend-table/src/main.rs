//! Says which stores the conformance suite ran on, from its reports, and keeps
//! the table of backends in the README true.
//!
//! `backend-table` prints, `backend-table --check` also fails where the
//! README's table is not what the reports say, `backend-table --write` mends it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use rheo::{BACKENDS, BackendInfo};
use serde_json::Value;

const BEGIN: &str = "<!-- backends:begin -->\n";
const END: &str = "<!-- backends:end -->";

/// The stores that prove a backend beside the one that is named like its
/// feature: the feature, the store, and how it differs.
const FURTHER: &[(&str, &str, &str)] =
    &[("redis", "redis-aof", "with its file, indexed"), ("redis", "redis-cluster", "as a cluster")];

/// Servers that the suite may run on in place of the product that a backend is
/// for, and how they stand to it.
const STAND_INS: &[(&str, &str)] = &[("SecantusDB", "compatible with MongoDB")];

fn main() -> ExitCode {
    println!("\nconformance, store by store:");
    for proof in BACKENDS.iter().flat_map(proofs) {
        println!("  {}", summary(proof.store));
    }
    let flags: Vec<String> = env::args().skip(1).collect();
    match flags.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => ExitCode::SUCCESS,
        ["--check"] => check(),
        ["--write"] => write(),
        _ => {
            eprintln!("usage: backend-table [--check | --write]");
            ExitCode::from(2)
        }
    }
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// The report of a store's last whole run.
fn report(store: &str) -> Option<Value> {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let text = fs::read_to_string(target.join(format!("conformance/{store}.json"))).ok()?;
    serde_json::from_str(&text).ok()
}

/// A store that the suite runs on to prove a backend.
struct Proof {
    store: &'static str,
    /// How it differs from the backend's other stores.
    differs: Option<&'static str>,
}

/// The stores of a backend, the one of its feature's name first.
fn proofs(backend: &BackendInfo) -> impl Iterator<Item = Proof> + use<> {
    let feature = backend.feature;
    let further = FURTHER.iter().filter(move |(of, ..)| *of == feature);
    let further = further.map(|&(_, store, differs)| Proof { store, differs: Some(differs) });
    std::iter::once(Proof { store: feature, differs: None }).chain(further)
}

fn summary(store: &str) -> String {
    match report(store) {
        None => format!("{store}: did not run"),
        Some(report) => match server(&report) {
            None => format!("{store}: not configured"),
            Some(server) => format!("{store}: ran on {server}: {}", totals(&report)),
        },
    }
}

/// What a store ran on, if it did.
fn server(report: &Value) -> Option<String> {
    let server = report["server"].as_str()?;
    let stand_in = STAND_INS.iter().find(|(product, _)| server.starts_with(product));
    Some(match stand_in {
        Some((_, relation)) => format!("{server}, {relation}"),
        None => server.into(),
    })
}

fn totals(report: &Value) -> String {
    let total = |verdict: &str| report["totals"][verdict].as_u64().unwrap_or(0);
    let mut text = format!("{} passed", total("pass"));
    for (verdict, words) in [("fail", "failed"), ("refused_as_declared", "refused as declared")] {
        if total(verdict) > 0 {
            text += &format!(", {} {words}", total(verdict));
        }
    }
    text
}

/// What a backend does not promise, in words.
fn promises(report: &Value) -> String {
    let guarantees = report["capabilities"]["guarantees"].as_object();
    let unclaimed = guarantees.into_iter().flatten().filter(|(_, claimed)| **claimed == false);
    let unclaimed: Vec<_> = unclaimed.map(|(name, _)| format!("`{name}`")).collect();
    match unclaimed.len() {
        0 => "all".into(),
        _ => format!("all but {}", unclaimed.join(", ")),
    }
}

fn table() -> String {
    let mut table = String::from(
        "| feature | URL | promises | proved on | conformance cases |\n|---|---|---|---|---|\n",
    );
    for backend in BACKENDS {
        for proof in proofs(backend) {
            let report = report(proof.store).unwrap_or_default();
            let differs = proof.differs.map(|how| format!(", {how}"));
            table += &format!(
                "| `{}` | `{}` | {} | {}{} | {} |\n",
                backend.feature,
                backend.example,
                promises(&report),
                server(&report).as_deref().unwrap_or("not run"),
                differs.unwrap_or_default(),
                totals(&report),
            );
        }
    }
    table
}

fn readme() -> PathBuf {
    root().join("README.md")
}

/// The README with the table as the reports say it.
fn updated() -> Option<(String, String)> {
    let text = fs::read_to_string(readme()).ok()?;
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let mended = format!("{before}{BEGIN}{}{END}{after}", table());
    Some((text, mended))
}

fn check() -> ExitCode {
    match updated() {
        Some((text, mended)) if without_servers(&text) == without_servers(&mended) => {
            ExitCode::SUCCESS
        }
        Some(_) => {
            eprintln!("the README's table of backends is not what the reports say: run");
            eprintln!("  cargo run -p backend-table -- --write");
            ExitCode::FAILURE
        }
        None => no_table(),
    }
}

/// The text without what each row was proved on: the next machine may have
/// another version, or another server for the same store.
fn without_servers(text: &str) -> String {
    let row = |line: &str| {
        let mut cells: Vec<&str> = line.split('|').collect();
        if line.starts_with("| `") && cells.len() > 4 {
            cells.remove(4);
        }
        cells.join("|")
    };
    text.lines().map(row).collect::<Vec<_>>().join("\n")
}

fn write() -> ExitCode {
    match updated() {
        Some((_, mended)) => match fs::write(readme(), mended) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("README.md cannot be written: {error}");
                ExitCode::FAILURE
            }
        },
        None => no_table(),
    }
}

fn no_table() -> ExitCode {
    eprintln!("README.md has no table between {} and {END}", BEGIN.trim_end());
    ExitCode::FAILURE
}

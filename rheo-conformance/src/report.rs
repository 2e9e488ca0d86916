//! [`Report`]: what a run of the suite found, for people and for programs.

use std::fmt;
use std::path::PathBuf;
use std::{env, fs, io};

use rheo_core::Capabilities;
use serde::Serialize;

use crate::Law;

/// What became of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The behaviour was shown.
    Pass,
    /// The behaviour was not shown.
    Fail,
    /// The backend does not claim what the case needs, and refuses it as it should.
    RefusedAsDeclared,
    /// There was no store to run it on, or none that it may break.
    NotConfigured,
}

/// One case in the report.
#[derive(Clone, Debug, Serialize)]
pub struct CaseReport {
    /// The case.
    pub id: &'static str,
    /// The laws it proves.
    pub laws: &'static [Law],
    /// What became of it.
    pub verdict: Verdict,
    /// Why, where it did not simply pass.
    pub reason: Option<String>,
    /// What it drew its random choices from.
    pub seed: u64,
    /// How long it took.
    pub milliseconds: u64,
}

/// How many cases came to which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// [`Verdict::Pass`].
    pub pass: usize,
    /// [`Verdict::Fail`].
    pub fail: usize,
    /// [`Verdict::RefusedAsDeclared`].
    pub refused_as_declared: usize,
    /// [`Verdict::NotConfigured`].
    pub not_configured: usize,
}

/// A run of the suite on one store.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The store's name.
    pub store: String,
    /// The server's product and version, as it says itself.
    pub server: Option<String>,
    /// What the backend claims.
    pub capabilities: Option<Capabilities>,
    /// All cases, in the registry's order.
    pub cases: Vec<CaseReport>,
    /// Their verdicts, counted.
    pub totals: Totals,
}

impl Report {
    pub(crate) fn new(
        store: String,
        server: Option<String>,
        capabilities: Option<Capabilities>,
        cases: Vec<CaseReport>,
    ) -> Self {
        let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
        let totals = Totals {
            pass: count(Verdict::Pass),
            fail: count(Verdict::Fail),
            refused_as_declared: count(Verdict::RefusedAsDeclared),
            not_configured: count(Verdict::NotConfigured),
        };
        Self { store, server, capabilities, cases, totals }
    }

    /// The ids of the cases that failed, in order.
    #[must_use]
    pub fn failed(&self) -> Vec<&'static str> {
        let failed = |case: &&CaseReport| case.verdict == Verdict::Fail;
        self.cases.iter().filter(failed).map(|case| case.id).collect()
    }

    /// Writes the report as JSON to `conformance/<store>.json` in the target directory.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn save(&self) -> io::Result<PathBuf> {
        save_as(&self.store, self)
    }
}

/// Writes JSON to `conformance/<name>.json` in the target directory.
pub(crate) fn save_as(name: &str, content: &impl Serialize) -> io::Result<PathBuf> {
    let directory = target_directory()?.join("conformance");
    fs::create_dir_all(&directory)?;
    let path = directory.join(format!("{name}.json"));
    fs::write(&path, serde_json::to_vec_pretty(content)?)?;
    Ok(path)
}

/// The directory that Cargo built this test into: `target`, above `<profile>/deps`.
fn target_directory() -> io::Result<PathBuf> {
    let exe = env::current_exe()?;
    let target = exe.ancestors().nth(3).map(PathBuf::from);
    target.ok_or_else(|| io::Error::other("the test does not lie in a target directory"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = self.server.as_deref().unwrap_or("not configured");
        writeln!(f, "conformance of {} ({server})", self.store)?;
        for case in &self.cases {
            let laws: Vec<_> = case.laws.iter().map(Law::to_string).collect();
            let verdict = match case.verdict {
                Verdict::Pass => continue,
                Verdict::Fail => "FAIL",
                Verdict::RefusedAsDeclared => "refused as declared",
                Verdict::NotConfigured => "not configured",
            };
            write!(f, "  {verdict}: {} [{}] seed {}", case.id, laws.join(" "), case.seed)?;
            match &case.reason {
                Some(reason) => writeln!(f, ": {reason}")?,
                None => writeln!(f)?,
            }
        }
        let Totals { pass, fail, refused_as_declared, not_configured } = self.totals;
        write!(
            f,
            "  {pass} passed, {fail} failed, {refused_as_declared} refused as declared, \
             {not_configured} not configured"
        )
    }
}

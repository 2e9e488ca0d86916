//! [`Failure`]: why a command did not do what it was asked to.

use std::io;
use std::process::ExitCode;

/// Why a command ends without success.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something was refused or failed: one sentence for people.
    Told(String),
    /// The command line asks for what makes no sense.
    Usage(String),
    /// Whoever reads the output wants no more of it, which is no failure.
    Closed,
}

/// What a command comes to.
pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self::Told(sentence.into())
    }

    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::Usage(sentence.into())
    }

    /// Tells it on standard error, and with which status the process ends.
    pub(crate) fn tell(&self) -> ExitCode {
        match self {
            Self::Told(sentence) => {
                anstream::eprintln!("rheo: {sentence}");
                ExitCode::from(1)
            }
            Self::Usage(sentence) => {
                anstream::eprintln!("rheo: {sentence}");
                ExitCode::from(2)
            }
            Self::Closed => ExitCode::SUCCESS,
        }
    }
}

impl From<rheo::Error> for Failure {
    fn from(error: rheo::Error) -> Self {
        Self::Told(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Told(error.to_string()),
        }
    }
}

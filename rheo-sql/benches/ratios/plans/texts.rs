//! The statements as the crate makes them: from its own files.

#[path = "../../../src/dialect.rs"]
#[allow(dead_code, unreachable_pub, reason = "the crate needs more of it")]
mod dialect;
#[path = "../../../src/statements.rs"]
#[allow(dead_code, unused_imports, reason = "the crate needs more of it")]
mod statements;

/// What the statements are told about the crate's options.
pub(crate) mod config {
    use super::statements::Names;

    pub(crate) struct Options {
        pub(crate) names: Names,
        pub(crate) transaction_pooling: bool,
    }

    impl Default for Options {
        fn default() -> Self {
            let names = Names { schema: None, prefix: "rheo_".into() };
            Self { names, transaction_pooling: false }
        }
    }
}

pub(crate) use dialect::Dialect;
pub(super) use statements::{Statement, Statements};

/// All statements of a store, on tables named as by default.
pub(super) fn of(store: &str) -> Statements {
    let dialect = match store {
        "sqlite" => Dialect::Sqlite,
        "postgres" => Dialect::Postgres,
        _ => Dialect::MySql,
    };
    Statements::new(dialect, &config::Options::default())
}

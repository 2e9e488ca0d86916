//! Making a SQL database ready, or printing the SQL that does.

use clap::{Args, ValueEnum};
use rheo::sql::{Dialect, Options, schema_sql};
use serde_json::json;

use crate::cli::Cli;
use crate::failure::{Failure, Outcome};
use crate::output::Output;

/// Make a SQL database ready, or print the SQL that does
#[derive(Debug, Args)]
#[command(after_help = "Example: rheo --url postgres://user@host/database migrate --print")]
pub(crate) struct Migrate {
    /// Print the SQL, and reach for no server
    #[arg(long)]
    print: bool,
    /// For which database; by default that of the URL
    #[arg(long, requires = "print")]
    dialect: Option<Spoken>,
    /// What the tables' names begin with; by default what the URL says, or rheo_
    #[arg(long, requires = "print")]
    prefix: Option<String>,
}

/// A database whose SQL can be printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spoken {
    Sqlite,
    Postgres,
    Mysql,
}

impl Spoken {
    fn of(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgres),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::Sqlite => Dialect::Sqlite,
            Self::Postgres => Dialect::Postgres,
            Self::Mysql => Dialect::MySql,
        }
    }
}

impl Migrate {
    pub(crate) async fn run(&self, cli: &Cli, output: Output) -> Outcome {
        if self.print { self.print(cli, output) } else { prepare(super::url(cli)?, output).await }
    }

    fn print(&self, cli: &Cli, output: Output) -> Outcome {
        let url = cli.url.as_deref().unwrap_or_default();
        let spoken = self.dialect.or_else(|| Spoken::of(url)).ok_or_else(|| {
            Failure::usage("for which database? --dialect sqlite, postgres or mysql says so")
        })?;
        let mut options = Options::default();
        if let Some(prefix) = self.prefix.as_deref().or_else(|| option(url, "table_prefix")) {
            options = options.table_prefix(prefix);
        }
        // Another database has no use for what the URL says to PostgreSQL.
        let schema = option(url, "schema").filter(|_| matches!(spoken, Spoken::Postgres));
        if let Some(schema) = schema {
            options = options.schema(schema);
        }
        let sql = schema_sql(spoken.dialect(), options)?;
        if output.json {
            return output.document(&json!({ "sql": sql }));
        }
        output.line(sql.trim_end())
    }
}

async fn prepare(url: &str, output: Output) -> Outcome {
    // Starting an instance is what makes a store ready.
    let server = rheo::connect(url).await?.ping().await?;
    let needed = Spoken::of(url).is_some();
    if output.json {
        let (product, version) = (server.product, server.version);
        let result = json!({ "product": product, "version": version, "tables": needed });
        return output.document(&result);
    }
    match needed {
        true => output.line(format!("{}: the tables are ready", server.product)),
        false => output.line(format!("{} has no tables to make: it is ready", server.product)),
    }
}

/// What a URL says for one of Rheo's options.
pub(super) fn option<'a>(url: &'a str, key: &str) -> Option<&'a str> {
    let pairs = url.split_once('?')?.1.split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next_back()
}

//! Asking a database for a plan.

use sqlx::{AssertSqlSafe, Row, mysql::MySqlRow};

use super::cases::Case;
use crate::bare::Bare;

/// The plan of a statement, line by line.
pub(super) async fn plan(bare: &mut Bare, case: &Case) -> Vec<String> {
    let text = &*case.statement.text;
    match bare {
        Bare::Sqlite(_) => bare.lines(&format!("EXPLAIN QUERY PLAN {text}")).await,
        // Prepared, and for arguments unknown, as it is planned after a few calls.
        Bare::Postgres(_) => {
            let args = case.args.join(", ");
            let explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)";
            bare.run("SET plan_cache_mode = force_generic_plan").await;
            bare.run(&format!("PREPARE asked AS {text}")).await;
            bare.run("BEGIN").await;
            let lines = bare.lines(&format!("{explain} EXECUTE asked ({args})")).await;
            bare.run("ROLLBACK; DEALLOCATE asked").await;
            lines
        }
        Bare::MySql(conn) => {
            let text = format!("EXPLAIN {}", filled(case));
            let rows = sqlx::raw_sql(AssertSqlSafe(text)).fetch_all(conn).await;
            rows.expect("explained").iter().map(line).collect()
        }
    }
}

/// The statement with its arguments in it.
fn filled(case: &Case) -> String {
    let order = case.statement.order.as_deref().unwrap_or_default();
    let mut parts = case.statement.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_string();
    for (part, &arg) in parts.zip(order) {
        text.push_str(&case.args[arg]);
        text.push_str(part);
    }
    text
}

fn line(row: &MySqlRow) -> String {
    let names = ["table", "type", "key", "ref", "rows", "Extra"];
    let cell = |name: &str| {
        let value: Option<String> = row.get_unchecked(name);
        value.map(|value| format!("{name} {value}"))
    };
    names.into_iter().filter_map(cell).collect::<Vec<_>>().join(", ")
}

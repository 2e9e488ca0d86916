//! The statements that are explained, and with which arguments.

use super::texts::{self, Statement};

pub(super) const STREAM: &str = "stream-5";
pub(super) const GROUP: &str = "group-1";

/// A statement with its arguments, as SQL writes them.
pub(super) struct Case {
    pub(super) title: String,
    pub(super) statement: Statement,
    pub(super) args: Vec<String>,
}

const HOT: &[(&str, &str)] = &[
    (
        "hot_append",
        "STREAM; 4; '{2,2}'; ARRAY[gen_random_uuid(), gen_random_uuid()]; '{1,2}'; '{type-1,type-2}'; \
         '{a,b}'; '{\"{}\",\"{}\"}'; '{\"7\",\"8\"}'",
    ),
    (
        "hot_claim",
        "STREAM; 4; GROUP; NULL; 100; 7; '00000000-0000-0000-0000-000000000001'; 30000000; NULL",
    ),
    (
        "hot_ack",
        "STREAM; 4; GROUP; '{2}'; '{1001}'; '{1005}'; '{00000000-0000-0000-0000-000000000001}'",
    ),
];

const GENERAL: &[(&str, &str)] = &[
    ("lock_partitions", r#"STREAM; 4; '[{"number":1},{"number":2}]'"#),
    ("find_group", "STREAM; 4; GROUP; 1"),
    ("work", "STREAM_ID; GROUP_ID; 1"),
    ("lock_cursors", r#"GROUP_ID; '[{"partition":1},{"partition":2}]'"#),
    ("advance", "GROUP_ID; 2; 1"),
    ("load_due_runs", "GROUP_ID; 2; 100"),
    ("load_lowest_runs", "GROUP_ID; 2; 100"),
    ("load_runs", r#"GROUP_ID; '[{"partition":2,"first":1003,"last":1102}]'"#),
    ("events_in", r#"STREAM_ID; 2; '[{"first":1003,"last":1102}]'; 1003; 1102"#),
    (
        "put_runs",
        r#"GROUP_ID; 2; '[{"first":900001,"last":900100,"attempt":1,"fence":"00000000000000000000000000000001","due":5}]'"#,
    ),
    ("remove_runs", r#"GROUP_ID; 2; '[{"first":1001},{"first":1006}]'"#),
    ("find_next_due", "GROUP_ID; 2"),
    ("read", "STREAM; 4; 2; 3000; 100"),
    ("places_at", "STREAM; 4; 0; 3; 1700000000000000"),
];

/// Searches, as search.rs makes them: the condition, and its argument.
const SEARCHES: &[(&str, &str, &str)] = &[
    ("search by type", "e.type = $6", "'type-3'"),
    ("search by key", r#"e."key" = $6"#, "'customer-17'"),
];

/// PostgreSQL's look for the events that contain something, as candidates.rs makes it.
const CANDIDATES: &str = r#"SELECT c."partition", c.sequence
FROM (SELECT e."partition", e.sequence FROM {p}events e
    WHERE e.stream_id = $1 AND (e.payload @> $2::jsonb) OFFSET 0) c
JOIN unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS lane("partition", first, last)
    ON lane."partition" = c."partition" AND c.sequence BETWEEN lane.first AND lane.last
ORDER BY c.sequence, c."partition" LIMIT $6"#;

pub(super) fn of(store: &str, (stream_id, group_id): (String, String)) -> Vec<Case> {
    let statements = texts::of(store);
    let case = |title: &str, statement: Statement, args: &str| {
        let arg = |arg: &str| match arg.trim() {
            "STREAM" => format!("'{STREAM}'"),
            "GROUP" => format!("'{GROUP}'"),
            "STREAM_ID" => stream_id.clone(),
            "GROUP_ID" => group_id.clone(),
            literal => literal.into(),
        };
        Case { title: title.into(), statement, args: args.split(';').map(arg).collect() }
    };
    let named = |&(name, args): &(&'static str, &str)| case(name, statements.get(name), args);
    let mut cases: Vec<Case> = Vec::new();
    if store == "postgres" {
        cases.extend(HOT.iter().map(named));
    }
    cases.extend(GENERAL.iter().map(named));
    for (title, condition, value) in SEARCHES {
        let condition = match store {
            "sqlite" => format!("unlikely({condition})"),
            _ => condition.to_string(),
        };
        let text = format!(
            r#"SELECT {{event}} FROM {{p}}events e
            WHERE e.stream_id = $1 AND e."partition" = $2 AND e.sequence BETWEEN $3 AND $4
                AND {condition} ORDER BY e.sequence LIMIT $5"#
        );
        let args = format!("STREAM_ID; 2; 1; 5000; 100; {value}");
        cases.push(case(title, statements.adapt(&text), &args));
    }
    if store == "postgres" {
        let args =
            r#"STREAM_ID; '{"customer":"customer-17"}'; '{0,2}'; '{1,1}'; '{5000,5000}'; 20000"#;
        cases.push(case("search by containment", statements.adapt(CANDIDATES), args));
    }
    cases
}

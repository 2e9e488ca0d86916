//! [`Dialect`]: which database, and how it says what the others say otherwise.

/// One of the databases that this crate speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// SQLite.
    #[cfg(feature = "sqlite")]
    Sqlite,
    /// PostgreSQL, from version 13.
    #[cfg(feature = "postgres")]
    Postgres,
    /// MySQL from version 8.0, MariaDB from version 10.6.
    #[cfg(feature = "mysql")]
    MySql,
}

impl Dialect {
    /// The files with statements of its own.
    pub(crate) fn statements(self) -> &'static [&'static str] {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => &[include_str!("sqlite/statements.sql")],
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                &[include_str!("postgres/statements.sql"), include_str!("postgres/hot.sql")]
            }
            #[cfg(feature = "mysql")]
            Self::MySql => &[include_str!("mysql/statements.sql")],
        }
    }

    /// Its migrations, in order.
    pub(crate) fn migrations(self) -> &'static [&'static str] {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => &[include_str!("sqlite/0001.sql")],
            #[cfg(feature = "postgres")]
            Self::Postgres => &[include_str!("postgres/0001.sql")],
            #[cfg(feature = "mysql")]
            Self::MySql => &[include_str!("mysql/0001.sql")],
        }
    }

    /// Whether `$1` is how it writes an argument.
    pub(crate) const fn numbers_arguments(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => true,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::MySql => false,
        }
    }

    /// Whether a server's clock is what judges leases. SQLite has no server.
    pub(crate) const fn has_clock(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::MySql => true,
        }
    }

    /// Whether values inside documents are found by an index.
    pub(crate) const fn indexes_documents(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::MySql => false,
        }
    }

    /// Whether its tables lie in schemas of a database.
    pub(crate) const fn has_schemas(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => false,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::MySql => false,
        }
    }

    /// Whether those who wait are woken: by the database, or within the
    /// process that has it.
    pub(crate) const fn notifies(self) -> bool {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => true,
            #[cfg(feature = "postgres")]
            Self::Postgres => true,
            #[cfg(feature = "mysql")]
            Self::MySql => false,
        }
    }

    /// The rows of the JSON array in `argument`, as table `x`.
    pub(crate) fn list(self, argument: &str, columns: &[(&str, &str)]) -> String {
        let each = |column: &dyn Fn(&str, &str) -> String| -> String {
            columns.iter().map(|(name, kind)| column(name, kind)).collect::<Vec<_>>().join(", ")
        };
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let columns = each(&|name, _| format!(r#"value->>'{name}' AS "{name}""#));
                format!("(SELECT {columns} FROM json_each({argument})) AS x")
            }
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let columns = each(&|name, kind| {
                    let kind = if kind == "int" { "bigint" } else { "text" };
                    format!(r#""{name}" {kind}"#)
                });
                format!("jsonb_to_recordset({argument}::jsonb) AS x({columns})")
            }
            #[cfg(feature = "mysql")]
            Self::MySql => {
                let columns = each(&|name, kind| {
                    let kind =
                        if kind == "int" { "BIGINT" } else { "LONGTEXT CHARACTER SET utf8mb4" };
                    format!(r#""{name}" {kind} PATH '$.{name}'"#)
                });
                format!("JSON_TABLE({argument}, '$[*]' COLUMNS({columns})) AS x")
            }
        }
    }

    /// The time in `argument`, or the store's own where that is null.
    pub(crate) fn now(self, argument: &str) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => argument.into(),
            #[cfg(feature = "postgres")]
            Self::Postgres => format!(
                "COALESCE({argument}, (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint)"
            ),
            #[cfg(feature = "mysql")]
            Self::MySql => format!(
                "COALESCE({argument}, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)))"
            ),
        }
    }

    /// The UUID whose digits are in `digits`.
    pub(crate) fn uuid(self, digits: &str) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => format!("unhex({digits})"),
            #[cfg(feature = "postgres")]
            Self::Postgres => format!("{digits}::uuid"),
            #[cfg(feature = "mysql")]
            Self::MySql => format!("UNHEX({digits})"),
        }
    }

    /// A document of the text in `argument`.
    pub(crate) fn document(self, argument: &str) -> String {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => argument.into(),
            #[cfg(feature = "postgres")]
            Self::Postgres => format!("{argument}::jsonb"),
            #[cfg(feature = "mysql")]
            Self::MySql => argument.into(),
        }
    }

    /// The columns of an event.
    pub(crate) fn event_columns(self) -> String {
        let text = self.document_as_text();
        format!(
            r#"e."partition", e.sequence, e.id, e.timestamp, e.type, e."key", e.metadata{text}, e.payload{text}"#
        )
    }

    /// What makes text of a document.
    const fn document_as_text(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "",
            #[cfg(feature = "postgres")]
            Self::Postgres => "::text",
            #[cfg(feature = "mysql")]
            Self::MySql => "",
        }
    }

    /// A join whose order the planner keeps, where it could choose a bad one.
    pub(crate) const fn join_in_order(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "CROSS JOIN",
            #[cfg(feature = "postgres")]
            Self::Postgres => "CROSS JOIN",
            #[cfg(feature = "mysql")]
            Self::MySql => "STRAIGHT_JOIN",
        }
    }

    pub(crate) const fn for_update(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "",
            #[cfg(feature = "postgres")]
            Self::Postgres => "FOR UPDATE",
            #[cfg(feature = "mysql")]
            Self::MySql => "FOR UPDATE",
        }
    }

    pub(crate) const fn skip_locked(self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite => "",
            #[cfg(feature = "postgres")]
            Self::Postgres => "FOR UPDATE SKIP LOCKED",
            #[cfg(feature = "mysql")]
            Self::MySql => "FOR UPDATE SKIP LOCKED",
        }
    }
}

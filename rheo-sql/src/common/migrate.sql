-- The version of the tables: see migrate.rs.

-- name: found_version
SELECT COALESCE(MAX(version), 0) FROM {p}schema

-- name: keep_versions
CREATE TABLE IF NOT EXISTS {p}schema (
    version BIGINT NOT NULL PRIMARY KEY,
    applied_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
)

-- name: put_version
INSERT INTO {p}schema (version) VALUES ($1)

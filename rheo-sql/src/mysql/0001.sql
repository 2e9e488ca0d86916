-- Names, types and keys are byte strings, so that they compare byte for byte on MySQL and
-- MariaDB alike; the view shows them as text. Definitions are committed one by one here, so
-- each can be run again.

CREATE TABLE IF NOT EXISTS {p}streams (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARBINARY(255) NOT NULL,
    partitions BIGINT NOT NULL,
    UNIQUE KEY {n}streams_name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The log's end in each partition: its last sequence, and its latest timestamp.
CREATE TABLE IF NOT EXISTS {p}partitions (
    stream_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    last BIGINT NOT NULL DEFAULT 0,
    latest BIGINT NOT NULL DEFAULT -62135596800000000,
    PRIMARY KEY (stream_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- `latest` is the latest timestamp up to and including this event: it rises with the sequence.
CREATE TABLE IF NOT EXISTS {p}events (
    stream_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    id BINARY(16) NOT NULL,
    timestamp BIGINT NOT NULL,
    latest BIGINT NOT NULL,
    type VARBINARY(255) NOT NULL,
    "key" VARBINARY(512),
    metadata LONGTEXT NOT NULL,
    payload LONGTEXT NOT NULL,
    PRIMARY KEY (stream_id, "partition", sequence),
    KEY {n}events_type (stream_id, type, "partition", sequence),
    KEY {n}events_key (stream_id, "key", "partition", sequence),
    KEY {n}events_latest (stream_id, "partition", latest, sequence)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The ids that callers gave, which stand for one event in their partition.
CREATE TABLE IF NOT EXISTS {p}ids (
    stream_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    id BINARY(16) NOT NULL,
    sequence BIGINT NOT NULL,
    PRIMARY KEY (stream_id, "partition", id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}groups (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    stream_id BIGINT NOT NULL,
    name VARBINARY(255) NOT NULL,
    max_attempts BIGINT NOT NULL,
    ordered BIGINT NOT NULL,
    UNIQUE KEY {n}groups_name (stream_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Events above the cursor were never handed out. `next_due` is no later than any open run is due.
CREATE TABLE IF NOT EXISTS {p}cursors (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "cursor" BIGINT NOT NULL,
    next_due BIGINT NOT NULL DEFAULT 9223372036854775807,
    PRIMARY KEY (group_id, "partition")
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Open events, in runs that stand alike: leased with a fence, waiting without.
CREATE TABLE IF NOT EXISTS {p}runs (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    fence BINARY(16),
    due BIGINT NOT NULL,
    PRIMARY KEY (group_id, "partition", first),
    KEY {n}runs_due (group_id, "partition", due, first)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Attempts of acked and skipped events, where position implies another.
CREATE TABLE IF NOT EXISTS {p}attempts (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    PRIMARY KEY (group_id, "partition", first)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS {p}dead (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    reason TEXT NOT NULL,
    dead_at BIGINT NOT NULL,
    PRIMARY KEY (group_id, "partition", sequence),
    KEY {n}dead_at (group_id, dead_at, sequence, "partition")
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The log as people query it.
CREATE OR REPLACE VIEW {p}log AS
SELECT CONVERT(s.name USING utf8mb4) AS stream, e."partition", e.sequence,
    LOWER(INSERT(INSERT(INSERT(INSERT(HEX(e.id), 9, 0, '-'), 14, 0, '-'), 19, 0, '-'), 24, 0, '-')) AS id,
    CAST('1970-01-01' AS DATETIME(6)) + INTERVAL e.timestamp MICROSECOND AS timestamp,
    CONVERT(e.type USING utf8mb4) AS type, CONVERT(e."key" USING utf8mb4) AS "key",
    e.metadata, e.payload
FROM {p}events e JOIN {p}streams s ON s.id = e.stream_id;

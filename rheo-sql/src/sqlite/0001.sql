CREATE TABLE {p}streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL
);

-- The log's end in each partition: its last sequence, and its latest timestamp.
CREATE TABLE {p}partitions (
    stream_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    last INTEGER NOT NULL DEFAULT 0,
    latest INTEGER NOT NULL DEFAULT -62135596800000000,
    PRIMARY KEY (stream_id, number)
) WITHOUT ROWID;

-- `latest` is the latest timestamp up to and including this event: it rises with the sequence.
CREATE TABLE {p}events (
    stream_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    id BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    latest INTEGER NOT NULL,
    type TEXT NOT NULL,
    "key" TEXT,
    metadata TEXT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (stream_id, "partition", sequence)
) WITHOUT ROWID;
CREATE INDEX {n}events_type ON {p}events (stream_id, type, "partition", sequence);
CREATE INDEX {n}events_key ON {p}events (stream_id, "key", "partition", sequence) WHERE "key" IS NOT NULL;
CREATE INDEX {n}events_latest ON {p}events (stream_id, "partition", latest, sequence);

-- The ids that callers gave, which stand for one event in their partition.
CREATE TABLE {p}ids (
    stream_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    id BLOB NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (stream_id, "partition", id)
) WITHOUT ROWID;

CREATE TABLE {p}groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    stream_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    max_attempts INTEGER NOT NULL,
    ordered INTEGER NOT NULL,
    UNIQUE (stream_id, name)
);

-- Events above the cursor were never handed out. `next_due` is no later than any open run is due.
CREATE TABLE {p}cursors (
    group_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "cursor" INTEGER NOT NULL,
    next_due INTEGER NOT NULL DEFAULT 9223372036854775807,
    PRIMARY KEY (group_id, "partition")
) WITHOUT ROWID;

-- Open events, in runs that stand alike: leased with a fence, waiting without.
CREATE TABLE {p}runs (
    group_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    fence BLOB,
    due INTEGER NOT NULL,
    PRIMARY KEY (group_id, "partition", first)
) WITHOUT ROWID;
CREATE INDEX {n}runs_due ON {p}runs (group_id, "partition", due, first);

-- Attempts of acked and skipped events, where position implies another.
CREATE TABLE {p}attempts (
    group_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (group_id, "partition", first)
) WITHOUT ROWID;

CREATE TABLE {p}dead (
    group_id INTEGER NOT NULL,
    "partition" INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    reason TEXT NOT NULL,
    dead_at INTEGER NOT NULL,
    PRIMARY KEY (group_id, "partition", sequence)
) WITHOUT ROWID;
CREATE INDEX {n}dead_at ON {p}dead (group_id, dead_at, sequence, "partition");

-- The log as people query it.
CREATE VIEW {p}log AS
SELECT s.name AS stream, e."partition", e.sequence,
    lower(substr(hex(e.id), 1, 8) || '-' || substr(hex(e.id), 9, 4) || '-'
        || substr(hex(e.id), 13, 4) || '-' || substr(hex(e.id), 17, 4) || '-'
        || substr(hex(e.id), 21)) AS id,
    -- Before 1970 as well the fraction counts upwards.
    strftime('%Y-%m-%dT%H:%M:%S',
            (e.timestamp - (e.timestamp % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch')
        || printf('.%06dZ', (e.timestamp % 1000000 + 1000000) % 1000000) AS timestamp,
    e.type, e."key", e.metadata, e.payload
FROM {p}events e JOIN {p}streams s ON s.id = e.stream_id;

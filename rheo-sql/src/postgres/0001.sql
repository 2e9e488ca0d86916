-- Rows that every operation changes lie in pages that are mostly free: a changed row stays on
-- its page, without a new index entry, and the next reader of the page clears the old ones away.
-- Vacuum comes early where rows come and go, and never shortens a table, as that would lock it.

CREATE TABLE {p}streams (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    partitions BIGINT NOT NULL
);

-- The log's end in each partition: its last sequence, and its latest timestamp.
CREATE TABLE {p}partitions (
    stream_id BIGINT NOT NULL,
    number BIGINT NOT NULL,
    last BIGINT NOT NULL DEFAULT 0,
    latest BIGINT NOT NULL DEFAULT -62135596800000000,
    PRIMARY KEY (stream_id, number)
) WITH (
    fillfactor = 10, vacuum_truncate = false,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- `latest` is the latest timestamp up to and including this event: it rises with the sequence.
CREATE TABLE {p}events (
    stream_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    timestamp BIGINT NOT NULL,
    latest BIGINT NOT NULL,
    id UUID NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    "key" TEXT COLLATE "C",
    metadata JSONB NOT NULL,
    payload JSONB NOT NULL,
    PRIMARY KEY (stream_id, "partition", sequence)
);
CREATE INDEX {n}events_type ON {p}events (stream_id, type, "partition", sequence);
CREATE INDEX {n}events_key ON {p}events (stream_id, "key", "partition", sequence) WHERE "key" IS NOT NULL;
CREATE INDEX {n}events_latest ON {p}events (stream_id, "partition", latest, sequence);
CREATE INDEX {n}events_metadata ON {p}events USING gin (metadata jsonb_path_ops);
CREATE INDEX {n}events_payload ON {p}events USING gin (payload jsonb_path_ops);

-- The ids that callers gave, which stand for one event in their partition.
CREATE TABLE {p}ids (
    stream_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    id UUID NOT NULL,
    sequence BIGINT NOT NULL,
    PRIMARY KEY (stream_id, "partition", id)
);

CREATE TABLE {p}groups (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    max_attempts BIGINT NOT NULL,
    ordered BIGINT NOT NULL,
    UNIQUE (stream_id, name)
);

-- Events above the cursor were never handed out. `next_due` is no later than any open run is due.
CREATE TABLE {p}cursors (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "cursor" BIGINT NOT NULL,
    next_due BIGINT NOT NULL DEFAULT 9223372036854775807,
    PRIMARY KEY (group_id, "partition")
) WITH (
    fillfactor = 10, vacuum_truncate = false,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);

-- Open events, in runs that stand alike: leased with a fence, waiting without.
CREATE TABLE {p}runs (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    due BIGINT NOT NULL,
    fence UUID,
    PRIMARY KEY (group_id, "partition", first)
) WITH (
    vacuum_truncate = false,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0
);
-- Every due time is less. Only who says so is offered this index, so that no plan looks a
-- run up in it by partition and first, which the primary key does at once.
CREATE INDEX {n}runs_due ON {p}runs (group_id, "partition", due, first)
    WHERE due < 9223372036854775807;

-- Attempts of acked and skipped events, where position implies another.
CREATE TABLE {p}attempts (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    first BIGINT NOT NULL,
    last BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    PRIMARY KEY (group_id, "partition", first)
);

CREATE TABLE {p}dead (
    group_id BIGINT NOT NULL,
    "partition" BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    dead_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (group_id, "partition", sequence)
);
CREATE INDEX {n}dead_at ON {p}dead (group_id, dead_at, sequence, "partition");

-- The log as people query it.
CREATE VIEW {p}log AS
SELECT s.name AS stream, e."partition", e.sequence, e.id,
    TIMESTAMPTZ 'epoch' + e.timestamp * INTERVAL '1 microsecond' AS timestamp,
    e.type, e."key", e.metadata, e.payload
FROM {p}events e JOIN {p}streams s ON s.id = e.stream_id;

-- Appending: see append.rs.

-- name: lock_partitions
SELECT p.stream_id, p.number, p.last, p.latest
FROM {list $3: number int}
{then} {p}partitions p
WHERE p.number = x.number
    AND p.stream_id = (SELECT s.id FROM {p}streams s WHERE s.name = $1 AND s.partitions = $2)
ORDER BY p.number {for update}

-- name: stored_by_ids
SELECT {event}
FROM {list $2: partition int, id text}
{then} {p}ids i {then} {p}events e
WHERE i.stream_id = $1 AND i."partition" = x."partition" AND i.id = {uuid x.id}
    AND e.stream_id = i.stream_id AND e."partition" = i."partition"
    AND e.sequence = i.sequence {for update}

-- name: put_ids
INSERT INTO {p}ids (stream_id, "partition", id, sequence)
SELECT $1, x."partition", {uuid x.id}, x.sequence
FROM {list $2: partition int, id text, sequence int}

-- name: put_events
INSERT INTO {p}events
    (stream_id, "partition", sequence, id, timestamp, latest, type, "key", metadata, payload)
VALUES

-- name: set_end
UPDATE {p}partitions SET last = $3, latest = $4 WHERE stream_id = $1 AND number = $2

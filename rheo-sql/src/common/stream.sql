-- Streams: see stream.rs.

-- name: put_stream
INSERT INTO {p}streams (name, partitions) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: put_partitions
INSERT INTO {p}partitions (stream_id, number)
SELECT s.id, x.number
FROM {list $2: number int}
JOIN {p}streams s ON s.name = $1

-- name: find_stream
SELECT s.id, s.partitions FROM {p}streams s WHERE s.name = $1

-- name: lock_stream
SELECT s.id, s.partitions FROM {p}streams s WHERE s.name = $1 {for update}

-- name: list_streams
SELECT s.name, s.partitions FROM {p}streams s ORDER BY s.name

-- name: ends
SELECT p.number, p.last FROM {p}partitions p WHERE p.stream_id = $1

-- name: lock_ends
SELECT p.number FROM {p}partitions p WHERE p.stream_id = $1 ORDER BY p.number {for update}

-- name: lock_groups
SELECT g.id FROM {p}groups g WHERE g.stream_id = $1 ORDER BY g.id {for update}

-- name: remove_partitions
DELETE FROM {p}partitions WHERE stream_id = $1

-- name: remove_groups
DELETE FROM {p}groups WHERE stream_id = $1

-- name: remove_ids
DELETE FROM {p}ids WHERE stream_id = $1

-- name: remove_events
DELETE FROM {p}events WHERE stream_id = $1

-- name: remove_stream
DELETE FROM {p}streams WHERE id = $1

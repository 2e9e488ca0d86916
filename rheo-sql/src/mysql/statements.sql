-- What is said otherwise here.

-- Streams and groups: see stream.rs and group.rs.

-- name: put_stream
INSERT IGNORE INTO {p}streams (name, partitions) VALUES ($1, $2)

-- name: put_group
INSERT IGNORE INTO {p}groups (stream_id, name, max_attempts, ordered) VALUES ($1, $2, $3, $4)

-- Claiming and settling: see state.rs. A list in a subquery is joined with the whole partition.

-- name: remove_runs
DELETE r FROM {list $3: first int} {then} {p}runs r
WHERE r.group_id = $1 AND r."partition" = $2 AND r.first = x.first

-- name: remove_attempts
DELETE r FROM {list $3: first int} {then} {p}attempts r
WHERE r.group_id = $1 AND r."partition" = $2 AND r.first = x.first

-- name: remove_dead
DELETE d FROM {list $3: sequence int} {then} {p}dead d
WHERE d.group_id = $1 AND d."partition" = $2 AND d.sequence = x.sequence

-- What is said otherwise here.

-- Streams and groups: see stream.rs and group.rs.

-- name: put_stream
INSERT IGNORE INTO {p}streams (name, partitions) VALUES ($1, $2)

-- name: put_group
INSERT IGNORE INTO {p}groups (stream_id, name, max_attempts, ordered) VALUES ($1, $2, $3, $4)

-- Groups: see group.rs and replay.rs.

-- name: put_group
INSERT INTO {p}groups (stream_id, name, max_attempts, ordered) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING

-- name: put_cursors
INSERT INTO {p}cursors (group_id, "partition", start, "cursor")
SELECT g.id, x."partition", x.start, x.start
FROM {list $3: partition int, start int}
JOIN {p}groups g ON g.stream_id = $1 AND g.name = $2

-- name: lock_group
SELECT g.id FROM {p}groups g WHERE g.stream_id = $1 AND g.name = $2 {for update}

-- name: list_groups
SELECT g.name
FROM {p}streams s LEFT JOIN {p}groups g ON g.stream_id = s.id
WHERE s.name = $1 AND s.partitions = $2
ORDER BY g.name

-- name: lock_all_cursors
SELECT c."partition" FROM {p}cursors c WHERE c.group_id = $1 ORDER BY c."partition" {for update}

-- name: restart_cursor
UPDATE {p}cursors SET start = $3, "cursor" = $3, next_due = 9223372036854775807
WHERE group_id = $1 AND "partition" = $2

-- name: remove_cursors
DELETE FROM {p}cursors WHERE group_id = $1

-- name: remove_all_runs
DELETE FROM {p}runs WHERE group_id = $1

-- name: remove_all_attempts
DELETE FROM {p}attempts WHERE group_id = $1

-- name: remove_all_dead
DELETE FROM {p}dead WHERE group_id = $1

-- name: remove_group
DELETE FROM {p}groups WHERE id = $1

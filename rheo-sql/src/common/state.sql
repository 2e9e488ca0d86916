-- The delivery state of a group: see state.rs. Runs are locked before they are
-- looked at, since on PostgreSQL acks of whole runs go past the cursor's lock.

-- name: find_group
SELECT s.id, g.id, g.max_attempts, g.ordered, {now $4}
FROM {p}streams s LEFT JOIN {p}groups g ON g.stream_id = s.id AND g.name = $3
WHERE s.name = $1 AND s.partitions = $2

-- name: lock_cursors
SELECT c."partition", c.start, c."cursor", c.next_due
FROM {list $2: partition int}
{then} {p}cursors c
WHERE c.group_id = $1 AND c."partition" = x."partition"
ORDER BY c."partition" {for update}

-- name: lock_free_cursors
SELECT c."partition", c.start, c."cursor", c.next_due
FROM {list $2: partition int}
{then} {p}cursors c
WHERE c.group_id = $1 AND c."partition" = x."partition"
ORDER BY c."partition" {skip locked}

-- name: load_runs
SELECT r."partition", r.first, r.last, r.attempt, r.fence, r.due
FROM {list $2: partition int, first int, last int}
{then} {p}runs r
WHERE r.group_id = $1 AND r."partition" = x."partition" AND r.first <= x.last
    AND r.first >= COALESCE(
        (SELECT MAX(b.first) FROM {p}runs b
         WHERE b.group_id = $1 AND b."partition" = x."partition" AND b.first <= x.first),
        x.first) {for update}

-- name: load_due_runs
SELECT r."partition", r.first, r.last, r.attempt, r.fence, r.due
FROM {p}runs r
WHERE r.group_id = $1 AND r."partition" = $2 AND r.due = -62135596800000000
ORDER BY r.first LIMIT $3 {for update}

-- name: load_lowest_runs
SELECT r."partition", r.first, r.last, r.attempt, r.fence, r.due
FROM {p}runs r
WHERE r.group_id = $1 AND r."partition" = $2
ORDER BY r.first LIMIT $3 {for update}

-- name: advance
UPDATE {p}runs SET due = -62135596800000000
WHERE group_id = $1 AND "partition" = $2 AND due > -62135596800000000 AND due <= $3
    AND due < 9223372036854775807

-- name: last_expiry
SELECT MAX(r.due) FROM {p}runs r
WHERE r.group_id = $1 AND r."partition" = $2 AND r.fence IS NOT NULL

-- name: load_attempts
SELECT r."partition", r.first, r.last, r.attempt
FROM {list $2: partition int, first int, last int}
{then} {p}attempts r
WHERE r.group_id = $1 AND r."partition" = x."partition" AND r.first <= x.last
    AND r.first >= COALESCE(
        (SELECT MAX(b.first) FROM {p}attempts b
         WHERE b.group_id = $1 AND b."partition" = x."partition" AND b.first <= x.first),
        x.first) {for update}

-- name: load_dead
SELECT d."partition", d.sequence, d.attempt, d.reason, d.dead_at
FROM {list $2: partition int, first int, last int}
{then} {p}dead d
WHERE d.group_id = $1 AND d."partition" = x."partition"
    AND d.sequence >= x.first AND d.sequence <= x.last {for update}

-- name: remove_runs
DELETE FROM {p}runs
WHERE group_id = $1 AND "partition" = $2
    AND first IN (SELECT x.first FROM {list $3: first int})

-- name: put_runs
INSERT INTO {p}runs (group_id, "partition", first, last, attempt, fence, due)
SELECT $1, $2, x.first, x.last, x.attempt, {uuid x.fence}, x.due
FROM {list $3: first int, last int, attempt int, fence text, due int}

-- name: remove_attempts
DELETE FROM {p}attempts
WHERE group_id = $1 AND "partition" = $2
    AND first IN (SELECT x.first FROM {list $3: first int})

-- name: put_attempts
INSERT INTO {p}attempts (group_id, "partition", first, last, attempt)
SELECT $1, $2, x.first, x.last, x.attempt
FROM {list $3: first int, last int, attempt int}

-- name: remove_dead
DELETE FROM {p}dead
WHERE group_id = $1 AND "partition" = $2
    AND sequence IN (SELECT x.sequence FROM {list $3: sequence int})

-- name: put_dead
INSERT INTO {p}dead (group_id, "partition", sequence, attempt, reason, dead_at)
SELECT $1, $2, x.sequence, x.attempt, x.reason, x.dead_at
FROM {list $3: sequence int, attempt int, reason text, dead_at int}

-- name: set_cursor
UPDATE {p}cursors SET "cursor" = $3, next_due = $4
WHERE group_id = $1 AND "partition" = $2

-- name: find_next_due
UPDATE {p}cursors SET next_due = COALESCE(
    (SELECT MIN(r.due) FROM {p}runs r
     WHERE r.group_id = $1 AND r."partition" = $2 AND r.due < 9223372036854775807),
    9223372036854775807)
WHERE group_id = $1 AND "partition" = $2

-- name: lowest_due
SELECT r.due FROM {p}runs r WHERE r.group_id = $1 AND r."partition" = $2
ORDER BY r.first LIMIT 1

-- name: work
SELECT c."partition", p.last
FROM {p}cursors c JOIN {p}partitions p ON p.stream_id = $1 AND p.number = c."partition"
WHERE c.group_id = $2 AND (c.next_due <= $3 OR p.last > c."cursor")
ORDER BY c."partition"

-- name: events_in
SELECT {event}
FROM {list $3: first int, last int}
{then} {p}events e
WHERE e.stream_id = $1 AND e."partition" = $2
    AND e.sequence >= x.first AND e.sequence <= x.last
    -- MariaDB turns no bound from a list into a range of the key.
    AND e.sequence >= $4 AND e.sequence <= $5
ORDER BY e.sequence

-- Searching: see candidates.rs.

-- name: events_at
SELECT {event}
FROM unnest($2::bigint[], $3::bigint[]) AS w("partition", sequence)
JOIN {p}events e ON e.stream_id = $1 AND e."partition" = w."partition" AND e.sequence = w.sequence

-- Claiming and settling: see state.rs. The planner does not know how short the
-- lists are: OFFSET keeps it from reading a partition whole to join it with one.

-- name: events_in
SELECT {event}
FROM {list $3: first int, last int}
CROSS JOIN LATERAL (
    SELECT * FROM {p}events o
    WHERE o.stream_id = $1 AND o."partition" = $2 AND o.sequence BETWEEN x.first AND x.last
        AND o.sequence BETWEEN $4 AND $5
    OFFSET 0) e
ORDER BY e.sequence

-- name: remove_runs
DELETE FROM {p}runs r
USING {list $3: first int} CROSS JOIN LATERAL (
    SELECT b.ctid AS place FROM {p}runs b
    WHERE b.group_id = $1 AND b."partition" = $2 AND b.first = x.first OFFSET 0) found
WHERE r.ctid = found.place

-- name: remove_attempts
DELETE FROM {p}attempts r
USING {list $3: first int} CROSS JOIN LATERAL (
    SELECT b.ctid AS place FROM {p}attempts b
    WHERE b.group_id = $1 AND b."partition" = $2 AND b.first = x.first OFFSET 0) found
WHERE r.ctid = found.place

-- name: remove_dead
DELETE FROM {p}dead r
USING {list $3: sequence int} CROSS JOIN LATERAL (
    SELECT b.ctid AS place FROM {p}dead b
    WHERE b.group_id = $1 AND b."partition" = $2 AND b.sequence = x.sequence OFFSET 0) found
WHERE r.ctid = found.place

-- Searching: see candidates.rs.

-- name: events_at
SELECT {event}
FROM unnest($2::bigint[], $3::bigint[]) AS w("partition", sequence)
JOIN {p}events e ON e.stream_id = $1 AND e."partition" = w."partition" AND e.sequence = w.sequence

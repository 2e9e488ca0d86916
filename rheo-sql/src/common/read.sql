-- Reading: see read.rs, seek.rs and search.rs.

-- name: read
SELECT {event}
FROM {p}events e
WHERE e.stream_id = (SELECT s.id FROM {p}streams s WHERE s.name = $1 AND s.partitions = $2)
    AND e."partition" = $3 AND e.sequence > $4
ORDER BY e.sequence LIMIT $5

-- name: last_places
SELECT p.number, p.stream_id, p.last, p.last
FROM {p}streams s
JOIN {p}partitions p ON p.stream_id = s.id AND p.number BETWEEN $3 AND $4
WHERE s.name = $1 AND s.partitions = $2
ORDER BY p.number

-- name: places_at
SELECT p.number, p.stream_id, p.last, COALESCE(
    (SELECT e.sequence - 1 FROM {p}events e
     WHERE e.stream_id = p.stream_id AND e."partition" = p.number AND e.latest >= $5
     ORDER BY e.latest, e.sequence LIMIT 1),
    p.last)
FROM {p}streams s
JOIN {p}partitions p ON p.stream_id = s.id AND p.number BETWEEN $3 AND $4
WHERE s.name = $1 AND s.partitions = $2
ORDER BY p.number

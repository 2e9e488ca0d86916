-- Looking at a group: see inspect.rs and wake.rs.

-- name: group_info
SELECT g.id, g.max_attempts, g.ordered, p.last,
    COALESCE(
        (SELECT MIN(r.first) - 1 FROM {p}runs r
         WHERE r.group_id = g.id AND r."partition" = c."partition"),
        c."cursor"),
    COALESCE(
        (SELECT CAST(SUM(r.last - r.first + 1) AS CHAR(20)) FROM {p}runs r
         WHERE r.group_id = g.id AND r."partition" = c."partition"
            AND r.fence IS NOT NULL AND r.due > t.instant),
        '0'),
    COALESCE(
        (SELECT CAST(SUM(r.last - r.first + 1) AS CHAR(20)) FROM {p}runs r
         WHERE r.group_id = g.id AND r."partition" = c."partition"
            AND (r.fence IS NULL OR r.due <= t.instant)),
        '0'),
    (SELECT COUNT(*) FROM {p}dead d WHERE d.group_id = g.id AND d."partition" = c."partition")
FROM (SELECT {now $4} AS instant) AS t
CROSS JOIN {p}streams s
LEFT JOIN {p}groups g ON g.stream_id = s.id AND g.name = $3
LEFT JOIN {p}cursors c ON c.group_id = g.id
LEFT JOIN {p}partitions p ON p.stream_id = s.id AND p.number = c."partition"
WHERE s.name = $1 AND s.partitions = $2
ORDER BY c."partition"

-- name: find_dead
SELECT d.dead_at FROM {p}dead d
WHERE d.group_id = $1 AND d."partition" = $2 AND d.sequence = $3

-- name: dead_letters
SELECT d.dead_at, d.sequence, d."partition", d.attempt, d.reason, {event}
FROM {p}dead d
LEFT JOIN {p}events e
    ON e.stream_id = $1 AND e."partition" = d."partition" AND e.sequence = d.sequence
WHERE d.group_id = $2 AND d.dead_at >= $3
    AND (d.dead_at, d.sequence, d."partition") > ($3, $4, $5)
ORDER BY d.dead_at, d.sequence, d."partition" LIMIT $6

-- name: next_work
SELECT g.id, t.instant, MIN(
    CASE WHEN p.last > c."cursor" AND (g.ordered = 0 OR c.next_due = 9223372036854775807)
        THEN t.instant ELSE c.next_due END)
FROM (SELECT {now $4} AS instant) AS t
CROSS JOIN {p}streams s
LEFT JOIN {p}groups g ON g.stream_id = s.id AND g.name = $3
LEFT JOIN {p}cursors c ON c.group_id = g.id
LEFT JOIN {p}partitions p ON p.stream_id = s.id AND p.number = c."partition"
WHERE s.name = $1 AND s.partitions = $2
GROUP BY g.id, t.instant

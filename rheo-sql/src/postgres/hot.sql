-- The hot path, one statement a call. Each does the common case wholly or
-- nothing at all, and then the general way decides: see hot.rs.

-- name: hot_append
-- Appends events that carry no ids of their callers.
--   $1 text      the stream's name
--   $2 bigint    how many partitions it has
--   $3 bigint[]  per event, in the order given: the partition
--   $4 uuid[]    the id
--   $5 bigint[]  the timestamp
--   $6 text[]    the type
--   $7 text[]    the key, or null
--   $8 text[]    the metadata
--   $9 text[]    the payload
-- Returns (ordinal, sequence) of each event; nothing where there is no such stream.
--
-- `locked` takes the partitions in ascending order and shows their rows as they are once
-- the lock is held, whatever the statement's snapshot shows; everything is numbered from there.
--
-- The arrays stand in selects of their own to hide their lengths from the planner: it would
-- otherwise plan short ones anew at each call, which takes longer than the statement.
with locked as materialized (
    select stream_id, number, last, latest
    from {p}partitions
    where stream_id = (select id from {p}streams where name = $1 and partitions = $2)
      and number = any ($3)
    order by number
    for no key update
), placed as materialized (
    select l.stream_id, e.*,
           l.last + row_number() over earlier as sequence,
           greatest(l.latest, max(e.timestamp) over earlier) as latest
    from unnest((select $3::bigint[]), (select $4::uuid[]), (select $5::bigint[]), (select $6::text[]),
                (select $7::text[]), (select $8::text[]), (select $9::text[]))
         with ordinality as e (partition, id, timestamp, type, key, metadata, payload, ordinal)
    join locked l on l.number = e.partition
    window earlier as (partition by e.partition order by e.ordinal rows unbounded preceding)
), moved as (
    update {p}partitions p
    set last = ends.last, latest = ends.latest
    from (
        select stream_id, partition, max(sequence) as last, max(latest) as latest
        from placed
        group by stream_id, partition
    ) ends
    where p.stream_id = ends.stream_id and p.number = ends.partition
), stored as (
    insert into {p}events
        (stream_id, partition, sequence, timestamp, latest, id, type, key, metadata, payload)
    select stream_id, partition, sequence, timestamp, latest, id, type, key, metadata::jsonb, payload::jsonb
    from placed
)
select ordinal, sequence from placed order by ordinal

-- name: hot_claim
-- Claims new events, where that is all there is to do.
--   $1 text      the stream's name
--   $2 bigint    how many partitions it has
--   $3 text      the group's name
--   $4 bigint[]  the partitions asked for; null: all
--   $5 bigint    how many events at most
--   $6 bigint    the turn: which partition comes first; never negative
--   $7 uuid      the fence
--   $8 bigint    the lease, in microseconds
--   $9 bigint    now; null: the server's clock
-- Returns the events with `now` and `expires`. Returns nothing, and has done nothing, where
-- the group is missing or ordered, a partition asked for is due, or nothing new was found:
-- then the general way decides.
--
-- `picked` chooses partitions by what the snapshot shows, so that claims with different turns
-- go different ways. `locked` shows the chosen ones as they are once the lock is held, and
-- all is counted from there. What others took meanwhile is not taken again; an event that
-- the snapshot does not show lies above its `last`, and stays.
with chosen as materialized (
    select g.id, g.stream_id
    from {p}groups g
    join {p}streams s on s.id = g.stream_id
    where s.name = $1 and s.partitions = $2 and g.name = $3 and g.ordered = 0
), asked as materialized (
    select g.id as group_id, g.stream_id, c.partition, p.last,
           greatest(p.last - c.cursor, 0) as fresh, c.next_due,
           (row_number() over (order by c.partition) + $6) % count(*) over () as place
    from chosen g
    join {p}cursors c on c.group_id = g.id
    join {p}partitions p on p.stream_id = g.stream_id and p.number = c.partition
    where $4::bigint[] is null or c.partition = any ($4)
), picked as materialized (
    select *
    from (
        select *, sum(fresh) over (order by place) - fresh as before
        from asked
        where fresh > 0
    ) a
    where before < $5 and not exists (
        select from asked
        where next_due <= coalesce($9, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
    )
), locked as materialized (
    select k.group_id, k.stream_id, k.place, k.last, c.partition, c.cursor, c.next_due
    from picked k
    join {p}cursors c on c.group_id = k.group_id and c.partition = k.partition
    order by c.partition
    for no key update of c
), clock as materialized (
    select now, now + $8 as expires, due > now as early
    from (
        select coalesce($9, (extract(epoch from clock_timestamp()) * 1000000)::bigint) as now, due
        from (select min(next_due) as due from locked) l
    ) n
), taken as materialized (
    select group_id, stream_id, place, partition, cursor + 1 as first,
           (cursor + least(fresh, $5 - before))::bigint as last
    from (
        select *, sum(fresh) over (order by place) - fresh as before
        from (select *, greatest(last - cursor, 0) as fresh from locked) l
    ) f
    where fresh > 0 and before < $5 and (select early from clock)
), moved as (
    update {p}cursors c
    set cursor = t.last, next_due = least(c.next_due, (select expires from clock))
    from taken t
    where c.group_id = t.group_id and c.partition = t.partition
), leased as (
    insert into {p}runs (group_id, partition, first, last, attempt, due, fence)
    select group_id, partition, first, last, 1, (select expires from clock), $7
    from taken
)
select clock.now, clock.expires, e.*
from clock
cross join taken t
cross join lateral (
    select partition, sequence, id, timestamp, type, key, metadata::text, payload::text
    from {p}events
    where stream_id = t.stream_id and partition = t.partition
      and sequence between t.first and t.last
    order by sequence
    limit $5
) e
order by t.place, e.sequence

-- name: hot_ack
-- Ends leases of whole runs by ack, where their attempts need no note.
--   $1 text      the stream's name
--   $2 bigint    how many partitions it has
--   $3 text      the group's name
--   $4 bigint[]  per run: the partition
--   $5 bigint[]  its first sequence
--   $6 bigint[]  its last sequence
--   $7 uuid[]    its fence
-- Returns the ordinals of the runs that went. For each other one the general way decides.
--
-- It does not lock the cursors, so that acks neither wait for claims nor hold them up. Who
-- changes runs otherwise locks their rows, by partition and first sequence, before it looks.
--
-- The arrays stand in selects of their own to hide their lengths from the planner: it would
-- otherwise plan short ones anew at each call, which takes longer than the statement.
with asked as materialized (
    select g.id as group_id, a.*
    from {p}streams s
    join {p}groups g on g.stream_id = s.id
    cross join unnest((select $4::bigint[]), (select $5::bigint[]), (select $6::bigint[]), (select $7::uuid[]))
         with ordinality as a (partition, first, last, fence, ordinal)
    where s.name = $1 and s.partitions = $2 and g.name = $3 and g.ordered = 0
    order by a.partition, a.first
), ended as materialized (
    select r.*, a.ordinal
    from asked a
    cross join lateral (
        select group_id, partition, first
        from {p}runs
        where group_id = a.group_id and partition = a.partition and first = a.first
          and last = a.last and fence = a.fence and attempt = 1
          and first > (
              select start from {p}cursors
              where group_id = a.group_id and partition = a.partition
          )
        for update
    ) r
)
delete from {p}runs r
using ended e
where r.group_id = e.group_id and r.partition = e.partition and r.first = e.first
returning e.ordinal

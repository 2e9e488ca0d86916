-- What all functions share: how a request is checked, and how a group stands.
--
-- A group's open events are runs of neighbours that stand alike. A run is one
-- member of the sorted set `open`, scored by its first sequence, and is found
-- by when it is due in one of three more: `leased` by expiry, `delayed` by the
-- end of its delay, or `ready` by sequence once a claim has found it due.

-- Sequences and times as text: Lua itself would write 1e+15.
local function fmt(number)
    return string.format('%d', number)
end

-- The largest time, and the largest sequence, that a score keeps exactly.
local MOST = 2 ^ 53

-- The instant that judges, in microseconds: the one given, or the server's own.
local function now_of(given)
    if given ~= '' then
        return tonumber(given)
    end
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

local function no_stream()
    return redis.error_reply('NOSTREAM no such stream')
end

local function no_group()
    return redis.error_reply('NORHEOGROUP no such group')
end

-- Whether the partition is there, and of a stream with so many of them.
local function is_of_stream(meta, partitions)
    return redis.call('HGET', meta, 'partitions') == partitions
end

-- Tells those who wait on the stream. Their waiting is not worth a failure.
local function ring(channel)
    if channel ~= '' then
        redis.pcall('PUBLISH', channel, '')
    end
end

-- What a request on a group needs, or the error to answer. KEYS are those of
-- `Keys::group`; every such function has the partition count and the group's
-- name as its first arguments.
local function group_of(keys, args)
    if not is_of_stream(keys[2], args[1]) then
        return nil, no_stream()
    end
    local known = redis.call('HMGET', keys[3], 'max_attempts', 'ordered', 'start', 'cursor')
    if not known[1] then
        return nil, no_group()
    end
    return {
        log = keys[1], hash = keys[3], open = keys[4], leased = keys[5], delayed = keys[6],
        ready = keys[7], attempts = keys[8], dead = keys[9], graves = keys[10],
        name = args[2],
        max_attempts = tonumber(known[1]),
        ordered = known[2] == '1',
        start = tonumber(known[3]),
        cursor = tonumber(known[4]),
    }
end

-- '000' to '999', made when they are first needed: joining texts costs half as
-- much as writing out numbers.
local THOUSAND = {}

-- The entry ids from `first` to `last`, which lie in one thousand.
local function ids_between(first, last)
    if not THOUSAND[0] then
        for number = 0, 999 do
            THOUSAND[number] = string.format('%03d', number)
        end
    end
    local ids, low = {}, first % 1000
    local head = first >= 1000 and '0-' .. fmt((first - low) / 1000)
    for number = low, low + last - first do
        ids[number - low + 1] = head and head .. THOUSAND[number] or '0-' .. number
    end
    return ids
end

-- Calls `each` with the entry ids from `first` to `last`, so few at a time
-- that they fit into one call.
local function by_ids(first, last, each)
    while first <= last do
        local upto = math.min(last, first - first % 1000 + 999)
        each(ids_between(first, upto))
        first = upto + 1
    end
end

-- Takes events off the pending list.
local function take_off(group, first, last)
    by_ids(first, last, function(ids)
        redis.call('XACK', group.log, group.name, unpack(ids))
    end)
end

-- Puts events on the pending list of a consumer, with so many deliveries.
local function put_on(group, consumer, first, last, attempt)
    by_ids(first, last, function(ids)
        ids[#ids + 1] = 'RETRYCOUNT'
        ids[#ids + 1] = fmt(attempt)
        ids[#ids + 1] = 'FORCE'
        ids[#ids + 1] = 'JUSTID'
        redis.call('XCLAIM', group.log, group.name, consumer, '0', unpack(ids))
    end)
end

-- The lowest pending sequence that is not below this one.
local function pending_from(group, sequence)
    local found = redis.call('XPENDING', group.log, group.name, '0-' .. fmt(sequence), '+', '1')
    return found[1] and tonumber(string.sub(found[1][1], 3))
end

-- Sets the cursor, and with it what the server hands out next.
local function move_cursor(group, sequence)
    group.cursor = sequence
    redis.call('HSET', group.hash, 'cursor', fmt(sequence))
    redis.call('XGROUP', 'SETID', group.log, group.name, '0-' .. fmt(sequence),
        'ENTRIESREAD', fmt(sequence))
end

-- Runs.

local function run_of(member)
    local first, last, attempt, due, fence =
        string.match(member, '^(%d+) (%d+) (%d+) (%d+) (%S+)$')
    return {
        first = tonumber(first), last = tonumber(last),
        attempt = tonumber(attempt),
        -- When the lease expires or the delay ends; 0 where it waits for nothing.
        due = tonumber(due),
        -- Of the lease, expired or not; nil where it waits.
        fence = fence ~= '-' and fence or nil,
        member = member,
    }
end

-- Adds a run where nothing is open.
local function put(group, first, last, attempt, due, fence)
    local from = fmt(first)
    redis.call('ZADD', group.open, from, table.concat(
        {from, fmt(last), fmt(attempt), fmt(due), fence or '-'}, ' '))
    if fence then
        redis.call('ZADD', group.leased, fmt(due), from)
    elseif due > 0 then
        redis.call('ZADD', group.delayed, fmt(due), from)
    else
        redis.call('ZADD', group.ready, from, from)
    end
end

local function remove(group, run)
    redis.call('ZREM', group.open, run.member)
    local first = fmt(run.first)
    if redis.call('ZREM', run.fence and group.leased or group.delayed, first) == 0 then
        redis.call('ZREM', group.ready, first)
    end
end

-- Takes the events from `first` to `last` out of a run that holds them.
local function cut_out(group, run, first, last)
    remove(group, run)
    if run.first < first then
        put(group, run.first, first - 1, run.attempt, run.due, run.fence)
    end
    if last < run.last then
        put(group, last + 1, run.last, run.attempt, run.due, run.fence)
    end
end

-- The run that begins at or next below a sequence.
local function run_up_to(group, sequence)
    local found = redis.call('ZRANGE', group.open, fmt(sequence), '-inf', 'BYSCORE', 'REV',
        'LIMIT', '0', '1')
    return found[1] and run_of(found[1])
end

-- The lowest run that begins at or above a sequence.
local function run_from(group, sequence)
    local found = redis.call('ZRANGE', group.open, fmt(sequence), '+inf', 'BYSCORE',
        'LIMIT', '0', '1')
    return found[1] and run_of(found[1])
end

-- Attempts of events that are not open, where their place does not imply them:
-- none up to the group's start and above its cursor, one between.

local function implied(group, sequence)
    return sequence > group.start and sequence <= group.cursor and 1 or 0
end

local function put_attempts(group, first, last, attempt)
    local from = fmt(first)
    redis.call('ZADD', group.attempts, from,
        table.concat({from, fmt(last), fmt(attempt)}, ' '))
end

-- Takes out the attempts kept of a range, and returns them in order.
local function take_attempts(group, first, last)
    local members = redis.call('ZRANGE', group.attempts, '(' .. fmt(first), '-inf', 'BYSCORE',
        'REV', 'LIMIT', '0', '1')
    for _, member in ipairs(redis.call('ZRANGE', group.attempts, fmt(first), fmt(last),
        'BYSCORE')) do
        members[#members + 1] = member
    end
    local taken = {}
    for _, member in ipairs(members) do
        local from, to, attempt = string.match(member, '^(%d+) (%d+) (%d+)$')
        from, to, attempt = tonumber(from), tonumber(to), tonumber(attempt)
        if to >= first then
            redis.call('ZREM', group.attempts, member)
            if from < first then
                put_attempts(group, from, first - 1, attempt)
            end
            if last < to then
                put_attempts(group, last + 1, to, attempt)
            end
            taken[#taken + 1] =
                {first = math.max(from, first), last = math.min(to, last), attempt = attempt}
        end
    end
    return taken
end

-- Dead letters.

local function grave(at, sequence)
    return string.format('%020d:%020d', at, sequence)
end

-- Gives up events that are not open any more.
local function bury(group, first, last, attempt, reason, at)
    for sequence = first, last do
        redis.call('ZADD', group.dead, fmt(sequence),
            table.concat({fmt(sequence), fmt(attempt), fmt(at), reason}, ' '))
        redis.call('ZADD', group.graves, '0', grave(at, sequence))
    end
    take_off(group, first, last)
end

local function letter_of(member)
    local sequence, attempt, at, reason = string.match(member, '^(%d+) (%d+) (%d+) (.*)$')
    return {
        sequence = tonumber(sequence), attempt = tonumber(attempt), at = tonumber(at),
        reason = reason,
    }
end

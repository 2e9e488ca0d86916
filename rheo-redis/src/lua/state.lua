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

-- The greatest id that an entry of the log can have.
local LAST_ID = '0-18446744073709551615'

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

-- The sequence in an entry's id.
local function sequence_of(id)
    return tonumber(string.sub(id, 3))
end

-- What the server says of a log.
local function fact_of(log, name)
    local facts = redis.call('XINFO', 'STREAM', log)
    for at = 1, #facts, 2 do
        if facts[at] == name then
            return facts[at + 1]
        end
    end
end

-- The sequence of the last event that was ever added to a log.
local function end_of(log)
    return sequence_of(fact_of(log, 'last-generated-id'))
end

-- What a request on a group needs, or the error to answer. KEYS are those of
-- `Keys::group`; every such function has the partition count and the group's
-- name as its first arguments.
local function group_of(keys, args)
    local known = redis.call('HMGET', keys[3], 'partitions', 'max_attempts', 'ordered',
        'start', 'cursor')
    if known[1] ~= args[1] then
        return nil, is_of_stream(keys[2], args[1]) and no_group() or no_stream()
    end
    return {
        log = keys[1], hash = keys[3], open = keys[4], leased = keys[5], delayed = keys[6],
        ready = keys[7], attempts = keys[8], dead = keys[9], graves = keys[10],
        name = args[2],
        max_attempts = tonumber(known[2]),
        ordered = known[3] == '1',
        start = tonumber(known[4]),
        cursor = tonumber(known[5]),
    }
end

-- How much goes into one call: Lua hands on some thousand arguments at most.
local SLICE = 1000

-- Calls `each` with the items of a list, some at a time.
local function in_slices(list, each)
    for at = 1, #list, SLICE do
        each(unpack(list, at, math.min(at + SLICE - 1, #list)))
    end
end

-- The server's own group.

-- '000' to '999', made when they are first needed: joining texts costs half as
-- much as writing out numbers.
local THOUSAND = {}

-- Adds the entry ids from `first` to `last`, which lie in one thousand.
local function add_ids(ids, first, last)
    if not THOUSAND[0] then
        for number = 0, 999 do
            THOUSAND[number] = string.format('%03d', number)
        end
    end
    local low, size = first % 1000, #ids
    local head = first >= 1000 and '0-' .. fmt((first - low) / 1000)
    for number = low, low + last - first do
        size = size + 1
        ids[size] = head and head .. THOUSAND[number] or '0-' .. number
    end
end

-- Calls `each` with the entry ids of runs, so few at a time that they fit into
-- one call.
local function by_ids(runs, each)
    if #runs == 1 and runs[1].first == runs[1].last then
        return each({'0-' .. fmt(runs[1].first)})
    end
    local ids = {}
    for _, run in ipairs(runs) do
        local first = run.first
        while first <= run.last do
            local upto = math.min(run.last, first - first % 1000 + 999)
            add_ids(ids, first, upto)
            if #ids >= SLICE then
                each(ids)
                ids = {}
            end
            first = upto + 1
        end
    end
    if #ids > 0 then
        each(ids)
    end
end

-- Takes runs of events off the pending list.
local function take_off(group, runs)
    by_ids(runs, function(ids)
        redis.call('XACK', group.log, group.name, unpack(ids))
    end)
end

-- Puts runs of events on the pending list of a consumer, with as many
-- deliveries as they have attempts.
local function put_on(group, consumer, runs)
    local by_attempt = {}
    for _, run in ipairs(runs) do
        local alike = by_attempt[run.attempt] or {}
        alike[#alike + 1] = run
        by_attempt[run.attempt] = alike
    end
    for attempt, alike in pairs(by_attempt) do
        by_ids(alike, function(ids)
            for _, word in ipairs({'RETRYCOUNT', fmt(attempt), 'FORCE', 'JUSTID'}) do
                ids[#ids + 1] = word
            end
            redis.call('XCLAIM', group.log, group.name, consumer, '0', unpack(ids))
        end)
    end
end

-- The ids that are pending from a sequence on, and some more of each; so many
-- at most. Where the server has no such group, that is an error.
local function pending_from(group, sequence, count)
    return redis.call('XPENDING', group.log, group.name, '0-' .. fmt(sequence), LAST_ID,
        fmt(count))
end

-- Runs.

-- The time of what waits for nothing.
local AT_ONCE = -1 / 0

local function run_of(member)
    local first, last, attempt, due, fence =
        string.match(member, '^(%d+) (%d+) (%d+) (%S+) (%S+)$')
    return {
        first = tonumber(first), last = tonumber(last),
        attempt = tonumber(attempt),
        -- When the lease expires or the delay ends.
        due = tonumber(due) or AT_ONCE,
        -- Of the lease, expired or not; nil where it waits.
        fence = fence ~= '-' and fence or nil,
        member = member,
    }
end

-- Where a run is found when it is due, and by which score.
local function place_of(group, first, due, fence)
    if fence then
        return group.leased, fmt(due)
    elseif due > AT_ONCE then
        return group.delayed, fmt(due)
    end
    return group.ready, first
end

-- Adds a run where nothing is open. Without a fence it waits.
local function put(group, first, last, attempt, due, fence)
    local from = fmt(first)
    local place, score = place_of(group, from, due, fence)
    redis.call('ZADD', place, score, from)
    redis.call('ZADD', group.open, from, table.concat(
        {from, fmt(last), fmt(attempt), due > AT_ONCE and fmt(due) or '-', fence or '-'}, ' '))
end

-- Adds runs where nothing is open, that are due at the same time.
local function put_all(group, runs, due, fence)
    local place, found, open = nil, {}, {}
    local standing = ' ' .. (due > AT_ONCE and fmt(due) or '-') .. ' ' .. (fence or '-')
    for number, run in ipairs(runs) do
        local from = fmt(run.first)
        local score
        place, score = place_of(group, from, due, fence)
        found[2 * number - 1], found[2 * number] = score, from
        open[2 * number - 1] = from
        open[2 * number] = from .. ' ' .. fmt(run.last) .. ' ' .. fmt(run.attempt) .. standing
    end
    in_slices(found, function(...) redis.call('ZADD', place, ...) end)
    in_slices(open, function(...) redis.call('ZADD', group.open, ...) end)
end

local function remove(group, run)
    local first = fmt(run.first)
    if redis.call('ZREM', run.fence and group.leased or group.delayed, first) == 0 then
        redis.call('ZREM', group.ready, first)
    end
    redis.call('ZREM', group.open, run.member)
end

local function remove_all(group, runs)
    local firsts, members = {}, {}
    for number, run in ipairs(runs) do
        firsts[number], members[number] = fmt(run.first), run.member
    end
    for _, place in ipairs({group.leased, group.delayed, group.ready}) do
        in_slices(firsts, function(...) redis.call('ZREM', place, ...) end)
    end
    in_slices(members, function(...) redis.call('ZREM', group.open, ...) end)
end

-- Puts back what a run holds beside the events from `first` to `last`.
local function put_rest(group, run, first, last)
    if run.first < first then
        put(group, run.first, first - 1, run.attempt, run.due, run.fence)
    end
    if last < run.last then
        put(group, last + 1, run.last, run.attempt, run.due, run.fence)
    end
end

-- Takes the events from `first` to `last` out of a run that holds them.
local function cut_out(group, run, first, last)
    remove(group, run)
    put_rest(group, run, first, last)
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

-- Adds events to a list of runs in order, as one run with the events before
-- where they are neighbours of the same attempt.
local function add_run(runs, first, last, attempt)
    local before = runs[#runs]
    if before and before.last + 1 == first and before.attempt == attempt then
        before.last = last
    else
        runs[#runs + 1] = {first = first, last = last, attempt = attempt}
    end
end

-- Attempts of events that are not open, where their place does not imply them:
-- none up to the group's start and above its cursor, one between.

local function implied(group, sequence)
    return sequence > group.start and sequence <= group.cursor and 1 or 0
end

local function kept_of(member)
    local first, last, attempt = string.match(member, '^(%d+) (%d+) (%d+)$')
    return {first = tonumber(first), last = tonumber(last), attempt = tonumber(attempt)}
end

-- What is kept of the events that begin at or next below a sequence.
local function kept_up_to(group, sequence)
    return redis.call('ZRANGE', group.attempts, fmt(sequence), '-inf', 'BYSCORE', 'REV',
        'LIMIT', '0', '1')
end

-- Keeps attempts of runs.
local function put_attempts(group, runs)
    local members = {}
    for _, run in ipairs(runs) do
        local from = fmt(run.first)
        members[#members + 1] = from
        members[#members + 1] = from .. ' ' .. fmt(run.last) .. ' ' .. fmt(run.attempt)
    end
    in_slices(members, function(...) redis.call('ZADD', group.attempts, ...) end)
end

-- Keeps attempts, as one with those next to them where they are the same.
local function join_attempts(group, first, last, attempt)
    local neighbours = kept_up_to(group, first - 1)
    neighbours[#neighbours + 1] =
        redis.call('ZRANGE', group.attempts, fmt(last + 1), fmt(last + 1), 'BYSCORE')[1]
    for _, member in ipairs(neighbours) do
        local kept = kept_of(member)
        if kept.attempt == attempt and (kept.last + 1 == first or kept.first == last + 1) then
            redis.call('ZREM', group.attempts, member)
            first, last = math.min(first, kept.first), math.max(last, kept.last)
        end
    end
    put_attempts(group, {{first = first, last = last, attempt = attempt}})
end

-- Takes out the attempts kept of a range, and returns them in order.
local function take_attempts(group, first, last)
    local taken = {}
    local highest = kept_up_to(group, last)[1]
    if not highest or kept_of(highest).last < first then
        return taken
    end
    local members = kept_up_to(group, first - 1)
    repeat
        local gone, rest = {}, {}
        for _, member in ipairs(members) do
            local kept = kept_of(member)
            if kept.last >= first then
                gone[#gone + 1] = member
                add_run(taken, math.max(kept.first, first), math.min(kept.last, last),
                    kept.attempt)
                if kept.first < first then
                    add_run(rest, kept.first, first - 1, kept.attempt)
                end
                if last < kept.last then
                    add_run(rest, last + 1, kept.last, kept.attempt)
                end
            end
        end
        in_slices(gone, function(...) redis.call('ZREM', group.attempts, ...) end)
        put_attempts(group, rest)
        members = redis.call('ZRANGE', group.attempts, fmt(first), fmt(last), 'BYSCORE',
            'LIMIT', '0', fmt(SLICE))
    until #members == 0
    return taken
end

-- Dead letters.

-- A dead letter's place in time. Texts with times before 1970 come first, and
-- ascend too.
local function grave(at, sequence)
    local time = at < 0 and string.format('-%019d', math.max(at + 2 ^ 53, 0))
        or string.format('%020d', at)
    return time .. string.format(':%020d', sequence)
end

-- Gives up events of an open run.
local function bury(group, run, first, last, reason, at)
    local dead, graves = {}, {}
    local words = ' ' .. fmt(run.attempt) .. ' ' .. fmt(at) .. ' ' .. reason
    for sequence = first, last do
        local number = fmt(sequence)
        dead[#dead + 1] = number
        dead[#dead + 1] = number .. words
        graves[#graves + 1] = '0'
        graves[#graves + 1] = grave(at, sequence)
    end
    in_slices(dead, function(...) redis.call('ZADD', group.dead, ...) end)
    in_slices(graves, function(...) redis.call('ZADD', group.graves, ...) end)
    cut_out(group, run, first, last)
    take_off(group, {{first = first, last = last}})
end

local function letter_of(member)
    local sequence, attempt, at, reason = string.match(member, '^(%d+) (%d+) (-?%d+) (.*)$')
    return {
        sequence = tonumber(sequence), attempt = tonumber(attempt), at = tonumber(at),
        reason = reason, member = member,
    }
end

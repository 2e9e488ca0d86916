-- Claiming, in one step of three commands: `claim`, the server's own
-- XREADGROUP, and `grant`. Reading entries inside a function would cost twice
-- as much as all the rest. Where only new events are to be had, `claim` lets
-- the XREADGROUP have them, and `grant` leases what it moved to the pending
-- list. Else `claim` does all of it, and sees to it that XREADGROUP finds
-- nothing.

-- How many events a claim gives up at most, before it asks to be made again.
local MOST_BURIED = 10000
-- How many runs of a kind a claim finds due at most.
local MOST_FOUND_DUE = 10000

-- What `grant` has to do for the claim of which fence: the three run in one
-- step, so nobody else comes between. One that came to nothing leaves it behind.
local claiming = nil

local function then_grant(fence, finish)
    claiming = {fence = fence, finish = finish}
end

-- Tells the server's own group from where to read on. Where the server has no
-- such group, that is an error.
local function read_after(group, sequence)
    local text = fmt(sequence)
    local is_in_log = sequence > group.start or sequence <= added_to(group.log)
    if is_in_log then
        redis.call('XGROUP', 'SETID', group.log, group.name, '0-' .. text, 'ENTRIESREAD', text)
    else
        -- With the number of entries the server would tell a negative lag.
        redis.call('XGROUP', 'SETID', group.log, group.name, '0-' .. text)
    end
end

-- Sets the cursor, and with it what the server hands out next.
local function move_cursor(group, sequence)
    read_after(group, sequence)
    redis.call('HSET', group.hash, 'cursor', fmt(sequence))
    group.cursor = sequence
end

-- Lets the XREADGROUP of a claim that is refused read nothing.
local function read_nothing(log, name, fence)
    -- Where there is no such log or group, nothing is read anyway.
    for _, facts in ipairs(redis.pcall('XINFO', 'GROUPS', log)) do
        local group = {}
        for at = 1, #facts, 2 do
            group[facts[at]] = facts[at + 1]
        end
        if group.name == name then
            local how = {'SETID', log, name, group['last-delivered-id']}
            if group['entries-read'] then
                how[5], how[6] = 'ENTRIESREAD', group['entries-read']
            end
            redis.call('XGROUP', 'SETID', log, name, LAST_ID)
            then_grant(fence, function()
                redis.call('XGROUP', unpack(how))
                return {}
            end)
        end
    end
end

-- Makes ready what is due.
local function find_due(group, now)
    for _, timed in ipairs({group.leased, group.delayed}) do
        local due = math.min(redis.call('ZCOUNT', timed, '-inf', fmt(now)), MOST_FOUND_DUE)
        if due > 0 then
            local ready = {}
            for _, first in ipairs(redis.call('ZRANGE', timed, '0', fmt(due - 1))) do
                ready[#ready + 1], ready[#ready + 2] = first, first
            end
            in_slices(ready, function(...) redis.call('ZADD', group.ready, ...) end)
            redis.call('ZREMRANGEBYRANK', timed, '0', fmt(due - 1))
        end
    end
end

-- Whether the next events to hand out are new ones.
local function only_new(group, now)
    if group.ordered then
        return redis.call('EXISTS', group.open) == 0
    end
    find_due(group, now)
    return redis.call('EXISTS', group.ready) == 0
end

-- The next open run to hand out, from `next` on.
local function next_claimable(group, next, now)
    if group.ordered then
        local run = run_from(group, next)
        return run and run.due <= now and run
    end
    local ready = redis.call('ZRANGE', group.ready, fmt(next), '+inf', 'BYSCORE',
        'LIMIT', '0', '1')[1]
    while ready do
        local run = run_from(group, tonumber(ready))
        if run and fmt(run.first) == ready then
            return run
        end
        -- There is no such run: somebody deleted a key by hand.
        redis.call('ZREM', group.ready, ready)
        ready = redis.call('ZRANGE', group.ready, fmt(next), '+inf', 'BYSCORE',
            'LIMIT', '0', '1')[1]
    end
end

-- Leases the new events up to `last`, some of which may have been handed out
-- before they were made new again by a replay.
local function grant_new(group, last, lease)
    local again, granted = {}, {}
    local next = group.cursor + 1
    for _, kept in ipairs(take_attempts(group, next, last)) do
        if next < kept.first then
            add_run(granted, next, kept.first - 1, 1)
        end
        add_run(again, kept.first, kept.last, kept.attempt + 1)
        add_run(granted, kept.first, kept.last, kept.attempt + 1)
        next = kept.last + 1
    end
    if next <= last then
        add_run(granted, next, last, 1)
    end
    put_on(group, lease.consumer, again)
    for _, run in ipairs(granted) do
        put(group, run.first, run.last, run.attempt, lease.expires, lease.fence)
    end
    group.cursor = last
    redis.call('HSET', group.hash, 'cursor', fmt(last))
    return granted
end

-- The last event that an XREADGROUP with this limit moved to the pending list.
local function last_read(group, limit)
    local next = group.cursor + 1
    -- This one, where no entry is missing from the log.
    local likely = math.max(math.min(group.cursor + limit, redis.call('XLEN', group.log)), next)
    local read = pending_from(group, likely, 2)
    if #read ~= 1 or sequence_of(read[1][1]) ~= likely then
        -- What was pending before, taken by hand, is read again or lies above.
        read = pending_from(group, next, limit)
    end
    return read[1] and sequence_of(read[#read][1])
end

-- Hands out what is due, and gives up what has no attempts left. Returns the
-- runs, how many events may be added, from which sequence on, and whether some
-- of what is due was left for another claim.
local function grant_due(group, limit, now, lease)
    local taken, granted, left, next, buried = {}, {}, limit, 0, 0
    while left > 0 and buried < MOST_BURIED do
        local run = next_claimable(group, next, now)
        if not run then
            break
        end
        if run.fence and run.attempt >= group.max_attempts then
            local last = math.min(run.last, run.first + MOST_BURIED - 1)
            bury(group, run, run.first, last, string.format(
                'the lease of attempt %d of %d expired', run.attempt, group.max_attempts), now)
            buried = buried + last - run.first + 1
            next = last + 1
        else
            local last = math.min(run.last, run.first + left - 1)
            taken[#taken + 1] = run
            add_run(granted, run.first, last, run.attempt + 1)
            left = left - (last - run.first + 1)
            next = last + 1
        end
    end
    put_on(group, lease.consumer, granted)
    remove_all(group, taken)
    if #taken > 0 then
        local run = taken[#taken]
        put_rest(group, run, run.first, granted[#granted].last)
    end
    put_all(group, granted, lease.expires, lease.fence)
    return granted, left, next, buried >= MOST_BURIED
end

local function runs_answer(runs)
    local answer = {}
    for _, run in ipairs(runs) do
        answer[#answer + 1] = run.first
        answer[#answer + 1] = run.last
        answer[#answer + 1] = run.attempt
    end
    return answer
end

-- Claims without the help of XREADGROUP: what is due, then what is new.
local function claim_here(group, limit, now, lease)
    local unexpired = group.ordered and redis.call('ZRANGE', group.leased, '+inf',
        '(' .. fmt(now), 'BYSCORE', 'REV', 'LIMIT', '0', '1')[1]
    if unexpired then
        return {now, 0, {}, {}}
    end
    local granted, left, next, more = grant_due(group, limit, now, lease)
    local entries = {}
    local function add(found)
        for _, entry in ipairs(found) do
            entries[#entries + 1] = entry
        end
    end
    for _, run in ipairs(granted) do
        add(redis.call('XRANGE', group.log, '0-' .. fmt(run.first), '0-' .. fmt(run.last)))
    end
    local held_up = more or group.ordered and run_from(group, next)
    if left > 0 and not held_up then
        local read = redis.call('XREADGROUP', 'GROUP', group.name, lease.consumer,
            'COUNT', fmt(left), 'STREAMS', group.log, '>')
        add(read and read[1][2] or {})
        local last = last_read(group, left)
        for _, run in ipairs(last and grant_new(group, last, lease) or {}) do
            granted[#granted + 1] = run
        end
    end
    return {now, more and 1 or 0, runs_answer(granted), entries}
end

local function try_claim(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local limit, now = tonumber(args[3]), now_of(args[7])
    local lease = {consumer = args[4], fence = args[6], expires = now + tonumber(args[5])}
    -- Whatever was done to the server's own group by hand, or by the XREADGROUP
    -- of a claim that the server did not know because it had lost its functions:
    -- what it took is read again.
    read_after(group, group.cursor)
    if only_new(group, now) then
        then_grant(lease.fence, function()
            local last = last_read(group, limit)
            return last and grant_new(group, last, lease) or {}
        end)
        return {now}
    end
    local answer = claim_here(group, limit, now, lease)
    redis.call('XGROUP', 'SETID', group.log, group.name, LAST_ID)
    then_grant(lease.fence, function()
        read_after(group, group.cursor)
        return {}
    end)
    return answer
end

-- ARGV: partitions, group, limit, consumer, lease in microseconds, fence, now.
-- Answers {now} where XREADGROUP is to read and `grant` to lease; else
-- {now, whether to claim again, {first, last, attempt, …}, {entry, …}}.
local function claim(keys, args)
    claiming = nil
    local ran, answer = pcall(try_claim, keys, args)
    if not ran or answer.err then
        read_nothing(keys[1], args[2], args[6])
    end
    if not ran then
        error({err = answer})
    end
    return answer
end

-- KEYS and the first arguments as for `claim`, which ran just before, then its
-- fence. Answers {first, last, attempt, …} of what the XREADGROUP between them
-- read.
local function grant(_, args)
    local this = claiming
    claiming = nil
    if not this or this.fence ~= args[3] then
        return {}
    end
    return runs_answer(this.finish())
end

-- What is in the log can be consumed also where there is no memory left for more.
redis.register_function{
    function_name = 'LIB_claim', callback = claim, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_grant', callback = grant, flags = {'allow-oom'},
}

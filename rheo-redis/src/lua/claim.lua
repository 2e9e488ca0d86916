-- Claiming, in one step of three commands: `claim`, the server's own
-- XREADGROUP, and `grant`. Reading entries inside a function would cost twice
-- as much as all the rest. Where only new events are to be had, `claim` lets
-- the XREADGROUP have them, and `grant` leases what it moved to the pending
-- list. Else `claim` does all of it, and sees to it that XREADGROUP finds
-- nothing.

-- How many events a claim gives up at most, before it asks to be made again.
local MOST_BURIED = 10000
-- How many runs a claim finds due at most.
local MOST_FOUND_DUE = 10000

-- The claim whose `grant` is to come: the three run in one step, so nobody
-- else comes between.
local claiming = nil

-- An id above all others, from which on there is nothing to read.
local BEYOND_ALL = '0-18446744073709551615'

local function let_nothing_be_read(log, name)
    -- Where there is no such log or group, nothing is read anyway.
    redis.pcall('XGROUP', 'SETID', log, name, BEYOND_ALL)
end

-- Hands back what a XREADGROUP took outside a claim: one by hand, or one whose
-- claim the server did not know because it had lost its functions.
local function hand_back(group)
    local stray = pending_from(group, group.cursor + 1)
    if not stray then
        return
    end
    while stray do
        take_off(group, stray, stray)
        stray = pending_from(group, stray + 1)
    end
    move_cursor(group, group.cursor)
end

-- Makes ready what is due.
local function find_due(group, now)
    for _, timed in ipairs({group.leased, group.delayed}) do
        local due = redis.call('ZRANGE', timed, '-inf', fmt(now), 'BYSCORE',
            'LIMIT', '0', fmt(MOST_FOUND_DUE))
        for _, first in ipairs(due) do
            redis.call('ZREM', timed, first)
            redis.call('ZADD', group.ready, first, first)
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

-- The next open run to hand out; in an ordered group, from `next` on.
local function next_claimable(group, next, now)
    if group.ordered then
        local run = run_from(group, next)
        return run and run.due <= now and run
    end
    local first = redis.call('ZRANGE', group.ready, '0', '0')[1]
    return first and run_from(group, tonumber(first))
end

-- Leases events, together with the ones before where they stand alike.
local function add_grant(granted, first, last, attempt)
    local before = granted[#granted]
    if before and before.last + 1 == first and before.attempt == attempt then
        before.last = last
    else
        granted[#granted + 1] = {first = first, last = last, attempt = attempt}
    end
end

-- Leases the new events up to `last`, some of which may have been handed out
-- before they were made new again by a replay.
local function grant_new(group, last)
    local granted = {}
    local next = group.cursor + 1
    for _, kept in ipairs(take_attempts(group, next, last)) do
        if next < kept.first then
            add_grant(granted, next, kept.first - 1, 1)
        end
        add_grant(granted, kept.first, kept.last, kept.attempt + 1)
        put_on(group, claiming.consumer, kept.first, kept.last, kept.attempt + 1)
        next = kept.last + 1
    end
    if next <= last then
        add_grant(granted, next, last, 1)
    end
    for _, run in ipairs(granted) do
        put(group, run.first, run.last, run.attempt, claiming.expires, claiming.fence)
    end
    group.cursor = last
    redis.call('HSET', group.hash, 'cursor', fmt(last))
    return granted
end

-- The last event that XREADGROUP moved to the pending list.
local function last_read(group, limit)
    local full = group.cursor + limit
    local last = pending_from(group, full)
    if last then
        -- Beyond the limit there are some where entries are missing before.
        local beyond = pending_from(group, last + 1)
        while beyond do
            last = beyond
            beyond = pending_from(group, last + 1)
        end
        return last
    end
    last = pending_from(group, group.cursor + 1)
    while last and last + 1 < full do
        local middle = math.floor((last + full) / 2)
        local found = pending_from(group, middle)
        if found then
            last = found
        else
            full = middle
        end
    end
    return last
end

-- Hands out what is due, and gives up what has no attempts left. Returns the
-- runs, and whether some of what is due was left for another claim.
local function grant_due(group, limit, now)
    local granted, left, next, buried = {}, limit, 0, 0
    while left > 0 do
        local run = next_claimable(group, next, now)
        if not run then
            break
        end
        if run.fence and run.attempt >= group.max_attempts then
            local last = math.min(run.last, run.first + MOST_BURIED - 1)
            cut_out(group, run, run.first, last)
            bury(group, run.first, last, run.attempt, string.format(
                'the lease of attempt %d of %d expired', run.attempt, group.max_attempts), now)
            buried = buried + last - run.first + 1
            if last < run.last then
                find_due(group, now)
            end
            if buried >= MOST_BURIED then
                return granted, left, next, true
            end
        else
            local last = math.min(run.last, run.first + left - 1)
            cut_out(group, run, run.first, last)
            put_on(group, claiming.consumer, run.first, last, run.attempt + 1)
            add_grant(granted, run.first, last, run.attempt + 1)
            left = left - (last - run.first + 1)
            next = last + 1
        end
    end
    return granted, left, next, false
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
local function claim_here(group, limit, now)
    local unexpired = group.ordered and redis.call('ZRANGE', group.leased, '+inf',
        '(' .. fmt(now), 'BYSCORE', 'REV', 'LIMIT', '0', '1')[1]
    if unexpired then
        return {now, 0, {}, {}}
    end
    local granted, left, next, more = grant_due(group, limit, now)
    local entries = {}
    for _, run in ipairs(granted) do
        put(group, run.first, run.last, run.attempt, claiming.expires, claiming.fence)
        for _, entry in ipairs(redis.call('XRANGE', group.log, '0-' .. fmt(run.first),
            '0-' .. fmt(run.last))) do
            entries[#entries + 1] = entry
        end
    end
    local held_up = more or group.ordered and run_from(group, next)
    if left > 0 and not held_up then
        local read = redis.call('XREADGROUP', 'GROUP', group.name, claiming.consumer,
            'COUNT', fmt(left), 'STREAMS', group.log, '>')
        for _, entry in ipairs(read and read[1][2] or {}) do
            entries[#entries + 1] = entry
        end
        local last = last_read(group, left)
        for _, run in ipairs(last and grant_new(group, last) or {}) do
            granted[#granted + 1] = run
        end
    end
    return {now, more and 1 or 0, runs_answer(granted), entries}
end

-- ARGV: partitions, group, limit, consumer, lease in microseconds, fence, now.
-- Answers {now} where XREADGROUP is to read and `grant` to lease; else
-- {now, whether to claim again, {first, last, attempt, …}, {entry, …}}.
local function claim(keys, args)
    claiming = nil
    local group, refusal = group_of(keys, args)
    if refusal then
        let_nothing_be_read(keys[1], args[2])
        claiming = {refused = true}
        return refusal
    end
    local limit, now = tonumber(args[3]), now_of(args[7])
    claiming = {
        group = group, limit = limit, consumer = args[4], fence = args[6],
        expires = math.min(now + tonumber(args[5]), MOST),
    }
    hand_back(group)
    if only_new(group, now) then
        return {now}
    end
    local answer = claim_here(group, limit, now)
    claiming.done = true
    let_nothing_be_read(group.log, group.name)
    return answer
end

-- KEYS and the first arguments as for `claim`, which ran just before. Answers
-- {first, last, attempt, …} of what the XREADGROUP between them read.
local function grant(keys, args)
    local this = claiming
    if not this then
        return {}
    end
    local granted = {}
    if this.refused then
        local cursor = redis.call('HGET', keys[3], 'cursor')
        if cursor then
            redis.pcall('XGROUP', 'SETID', keys[1], args[2], '0-' .. cursor,
                'ENTRIESREAD', cursor)
        end
    elseif this.done then
        move_cursor(this.group, this.group.cursor)
    else
        local last = last_read(this.group, this.limit)
        granted = last and grant_new(this.group, last) or {}
    end
    claiming = nil
    return runs_answer(granted)
end

-- What is in the log can be consumed also where there is no memory left for more.
redis.register_function{
    function_name = 'LIB_claim', callback = claim, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_grant', callback = grant, flags = {'allow-oom'},
}

-- Looking at a group, which changes nothing.

-- How many runs one call looks at.
local PAGE = 1000

-- ARGV: partitions, group, now, and from which sequence to which to count: all
-- where the last is empty. Answers {max_attempts, ordered, frontier, leased,
-- waiting, dead letters, the next sequence to count from or nothing, the last}:
-- a group with many runs is counted in several calls, since nobody else is
-- served during one.
local function progress(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local now, last = now_of(args[3]), tonumber(args[5]) or group.cursor
    local lowest = run_from(group, 0)
    local frontier = lowest and lowest.first - 1 or group.cursor
    local leased, waiting, next = 0, 0, nil
    if args[5] == '' then
        local top = tonumber(redis.call('HGET', group.hash, 'top') or '0')
        waiting = math.max(top - group.cursor, 0)
    end
    local members = redis.call('ZRANGE', group.open, args[4], fmt(last), 'BYSCORE',
        'LIMIT', '0', fmt(PAGE))
    for number, member in ipairs(members) do
        local run = run_of(member)
        local length = run.last - run.first + 1
        if run.fence and run.due > now then
            leased = leased + length
        else
            waiting = waiting + length
        end
        next = number == PAGE and run.last + 1 or nil
    end
    return {group.max_attempts, group.ordered and 1 or 0, frontier, leased, waiting,
        redis.call('ZCARD', group.dead), next or false, last}
end

-- ARGV: partitions, group, sequence. Answers when that event was given up, or
-- nothing where it was not.
local function died(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local found = redis.call('ZRANGE', group.dead, args[3], args[3], 'BYSCORE')[1]
    return found and letter_of(found).at
end

-- ARGV: partitions, group, at, sequence, limit: the dead letters from that time
-- and, at the same time, that sequence on. Answers {sequence, attempt, at,
-- reason}, …, oldest first.
local function dead_letters(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local from = '[' .. grave(tonumber(args[3]), tonumber(args[4]))
    local graves = redis.call('ZRANGE', group.graves, from, '+', 'BYLEX', 'LIMIT', '0', args[5])
    local letters = {}
    for _, member in ipairs(graves) do
        local sequence = fmt(tonumber(string.sub(member, 22)))
        local found = redis.call('ZRANGE', group.dead, sequence, sequence, 'BYSCORE')[1]
        if found then
            local letter = letter_of(found)
            letters[#letters + 1] = {letter.sequence, letter.attempt, letter.at, letter.reason}
        end
    end
    return letters
end

-- Whether there are events above the cursor. As sequences have no gaps, a log
-- of so many entries has them; another can have them where some are missing.
local function has_new(group)
    return redis.call('XLEN', group.log) > group.cursor
        or redis.call('XRANGE', group.log, '0-' .. fmt(group.cursor + 1), '+',
            'COUNT', '1')[1] ~= nil
end

-- ARGV: partitions, group, now. Answers in how many microseconds there is
-- something to claim, or nothing where that is not known.
local function peek(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local now, due = now_of(args[3]), math.huge
    local lowest = group.ordered and run_from(group, 0)
    if lowest then
        local expiry = redis.call('ZRANGE', group.leased, '-1', '-1', 'WITHSCORES')[2]
        due = math.max(lowest.due, tonumber(expiry) or AT_ONCE)
    else
        if has_new(group) or redis.call('EXISTS', group.ready) == 1 then
            return 0
        end
        for _, timed in ipairs({group.leased, group.delayed}) do
            local first = redis.call('ZRANGE', timed, '0', '0', 'WITHSCORES')[2]
            due = math.min(due, tonumber(first) or due)
        end
    end
    return due < math.huge and math.max(due - now, 0)
end

redis.register_function{
    function_name = 'LIB_progress', callback = progress, flags = {'no-writes'},
}
redis.register_function{
    function_name = 'LIB_died', callback = died, flags = {'no-writes'},
}
redis.register_function{
    function_name = 'LIB_dead_letters', callback = dead_letters, flags = {'no-writes'},
}
redis.register_function{
    function_name = 'LIB_peek', callback = peek, flags = {'no-writes'},
}

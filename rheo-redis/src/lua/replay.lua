-- Replay: events become claimable again, and keep their attempts.

-- Takes out the open runs of a range, and returns what they hold of it, in order.
local function take_open(group, first, last)
    local taken = {}
    local below = run_up_to(group, first - 1)
    local runs = below and below.last >= first and {below} or {}
    repeat
        remove_all(group, runs)
        for _, run in ipairs(runs) do
            put_rest(group, run, first, last)
            taken[#taken + 1] = {
                first = math.max(run.first, first), last = math.min(run.last, last),
                attempt = run.attempt,
            }
        end
        runs = redis.call('ZRANGE', group.open, fmt(first), fmt(last), 'BYSCORE',
            'LIMIT', '0', fmt(SLICE))
        for number, member in ipairs(runs) do
            runs[number] = run_of(member)
        end
    until #runs == 0
    return taken
end

-- Takes the dead letters of a range off the list, and returns them in order.
local function take_dead(group, first, last)
    local taken = {}
    repeat
        local members = redis.call('ZRANGE', group.dead, fmt(first), fmt(last), 'BYSCORE',
            'LIMIT', '0', fmt(SLICE))
        local graves = {}
        for number, member in ipairs(members) do
            local letter = letter_of(member)
            graves[number] = grave(letter.at, letter.sequence)
            add_run(taken, letter.sequence, letter.sequence, letter.attempt)
        end
        in_slices(members, function(...) redis.call('ZREM', group.dead, ...) end)
        in_slices(graves, function(...) redis.call('ZREM', group.graves, ...) end)
    until #members == 0
    return taken
end

-- Adds events of which nothing is written down, with the attempts that their
-- place implies: the start lies between those skipped and those acked.
local function add_implied(runs, group, first, last)
    if first <= math.min(last, group.start) then
        add_run(runs, first, math.min(last, group.start), implied(group, first))
        first = group.start + 1
    end
    if first <= last then
        add_run(runs, first, last, implied(group, first))
    end
end

-- Takes out all that is known of a range that was handed out or skipped.
-- Returns its attempts in order, without a gap, and those of its events that
-- were open.
local function take_all(group, first, last)
    local open = take_open(group, first, last)
    local known = take_attempts(group, first, last)
    for _, runs in ipairs({open, take_dead(group, first, last)}) do
        for _, run in ipairs(runs) do
            known[#known + 1] = run
        end
    end
    table.sort(known, function(one, other) return one.first < other.first end)

    local all, next = {}, first
    for _, run in ipairs(known) do
        add_implied(all, group, next, run.first - 1)
        add_run(all, run.first, run.last, run.attempt)
        next = run.last + 1
    end
    add_implied(all, group, next, last)
    return all, open
end

-- Whether nothing is written down of the events of a range.
local function is_plain(group, first, last)
    local open, kept = run_up_to(group, last), kept_up_to(group, last)[1]
    return (not open or open.last < first) and (not kept or kept_of(kept).last < first)
        and redis.call('ZCOUNT', group.dead, fmt(first), fmt(last)) == 0
end

-- Reopens all events from `first` to the cursor: the cursor goes back.
local function rewind(group, first)
    local top = redis.call('HGET', group.hash, 'top') or '0'
    redis.call('HSET', group.hash, 'top', fmt(math.max(tonumber(top), group.cursor)))
    local all, open = take_all(group, first, group.cursor)
    take_off(group, open)
    local handed_out = {}
    for _, run in ipairs(all) do
        if run.attempt > 0 then
            handed_out[#handed_out + 1] = run
        end
    end
    put_attempts(group, handed_out)
    move_cursor(group, first - 1)
end

-- Reopens ranges below the cursor: they come onto the pending list again.
local function reopen(group, ranges)
    local plain = is_plain(group, ranges[1].first, ranges[#ranges].last)
    local waiting = {}
    for _, range in ipairs(ranges) do
        if plain then
            add_implied(waiting, group, range.first, range.last)
        else
            for _, run in ipairs((take_all(group, range.first, range.last))) do
                add_run(waiting, run.first, run.last, run.attempt)
            end
        end
    end
    put_on(group, group.name, waiting)
    put_all(group, waiting, AT_ONCE)
end

-- ARGV: partitions, group, the channel to ring on, then first and last of each
-- range, ascending.
local function replay(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    -- Whether the server has its own group, before anything is changed.
    pending_from(group, 0, 1)
    local last, ranges = math.min(group.cursor, end_of(group.log)), {}
    for at = 4, #args, 2 do
        local range = {
            first = math.max(tonumber(args[at]), 1), last = math.min(tonumber(args[at + 1]), last),
        }
        if range.first <= range.last then
            ranges[#ranges + 1] = range
        end
    end
    local highest = ranges[#ranges]
    if highest and highest.last == group.cursor then
        rewind(group, highest.first)
        ranges[#ranges] = nil
    end
    if #ranges > 0 then
        reopen(group, ranges)
    end
    ring(args[3])
    return redis.status_reply('OK')
end

redis.register_function('LIB_replay', replay)

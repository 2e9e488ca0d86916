-- Replay: events become claimable again, and keep their attempts.

-- Takes out all that is known of a range that was handed out or skipped, and
-- returns its attempts in order, without a gap.
local function take_all(group, first, last)
    local known = take_attempts(group, first, last)
    local run = run_up_to(group, last)
    while run and run.last >= first do
        local from, to = math.max(run.first, first), math.min(run.last, last)
        cut_out(group, run, from, to)
        known[#known + 1] = {first = from, last = to, attempt = run.attempt, is_open = true}
        run = from > 0 and run_up_to(group, from - 1)
    end
    for _, member in ipairs(redis.call('ZRANGE', group.dead, fmt(first), fmt(last), 'BYSCORE')) do
        local letter = letter_of(member)
        redis.call('ZREM', group.dead, member)
        redis.call('ZREM', group.graves, grave(letter.at, letter.sequence))
        known[#known + 1] =
            {first = letter.sequence, last = letter.sequence, attempt = letter.attempt}
    end
    table.sort(known, function(one, other) return one.first < other.first end)

    local all, next = {}, first
    local function add_implied(upto)
        -- The start lies between events that were skipped and events that were acked.
        while next <= upto do
            local same = next <= group.start and math.min(upto, group.start) or upto
            all[#all + 1] = {first = next, last = same, attempt = implied(group, next)}
            next = same + 1
        end
    end
    for _, piece in ipairs(known) do
        add_implied(piece.first - 1)
        all[#all + 1] = piece
        next = piece.last + 1
    end
    add_implied(last)
    return all
end

-- Reopens all events from `first` to the cursor: the cursor goes back.
local function rewind(group, first)
    local top = redis.call('HGET', group.hash, 'top') or '0'
    redis.call('HSET', group.hash, 'top', fmt(math.max(tonumber(top), group.cursor)))
    for _, piece in ipairs(take_all(group, first, group.cursor)) do
        if piece.is_open then
            take_off(group, piece.first, piece.last)
        end
        if piece.attempt > 0 then
            put_attempts(group, piece.first, piece.last, piece.attempt)
        end
    end
    move_cursor(group, first - 1)
end

-- Reopens events below the cursor: they come onto the pending list again.
local function reopen(group, first, last)
    local waiting = {}
    for _, piece in ipairs(take_all(group, first, last)) do
        if not piece.is_open then
            put_on(group, group.name, piece.first, piece.last, piece.attempt)
        end
        add_grant(waiting, piece.first, piece.last, piece.attempt)
    end
    for _, run in ipairs(waiting) do
        put(group, run.first, run.last, run.attempt, 0)
    end
end

-- ARGV: partitions, group, the channel to ring on, then first and last of each
-- range.
local function replay(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local info = redis.call('XINFO', 'STREAM', group.log)
    local end_of_log
    for at = 1, #info, 2 do
        if info[at] == 'last-generated-id' then
            end_of_log = tonumber(string.sub(info[at + 1], 3))
        end
    end
    for at = #args - 1, 4, -2 do
        local first, last = math.max(tonumber(args[at]), 1), tonumber(args[at + 1])
        last = math.min(last, group.cursor, end_of_log)
        if first <= last then
            if last == group.cursor then
                rewind(group, first)
            else
                reopen(group, first, last)
            end
        end
    end
    ring(args[3])
    return redis.status_reply('OK')
end

redis.register_function('LIB_replay', replay)

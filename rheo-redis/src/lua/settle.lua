-- Settling and renewing: the token decides, whatever the time.

local STALE, RECEIPT_MISMATCH = 1, 2

-- Goes through leases of one claim on neighbouring events: calls `change` with
-- what is leased so, cut out of its run, and notes in `refused` what is not.
local function by_stretch(group, item, refused, change)
    local at = item.first
    while at <= item.last do
        local run = run_up_to(group, at)
        local is_held = run and run.last >= at
        local upto = item.last
        if is_held then
            upto = math.min(upto, run.last)
        else
            local above = run_from(group, at)
            upto = above and math.min(upto, above.first - 1) or upto
        end
        if not is_held or run.fence ~= item.fence then
            refused[#refused + 1] = {item.number, at, upto, STALE}
        elseif not item.own_receipt then
            refused[#refused + 1] = {item.number, at, upto, RECEIPT_MISMATCH}
        else
            cut_out(group, run, at, upto)
            change(at, upto, run.attempt)
        end
        at = upto + 1
    end
end

-- Keeps the attempts of acked events.
local function finish(group, first, last, attempt)
    take_off(group, first, last)
    local skipped = math.min(last, group.start)
    if first <= skipped and attempt ~= 0 then
        put_attempts(group, first, skipped, attempt)
    end
    local rest = math.max(first, skipped + 1)
    if rest <= last and attempt ~= 1 then
        put_attempts(group, rest, last, attempt)
    end
end

-- What becomes of leased events, by the first letter of the outcome.
local outcomes = {
    ack = function(group, first, last, attempt)
        finish(group, first, last, attempt)
    end,
    reject = function(group, first, last, attempt, item, now)
        bury(group, first, last, attempt, item.reason, now)
    end,
    retry = function(group, first, last, attempt, item, now)
        if attempt >= group.max_attempts then
            bury(group, first, last, attempt, item.reason, now)
        else
            local due = item.after > 0 and math.min(now + item.after, MOST) or 0
            put(group, first, last, attempt, due)
        end
    end,
    release = function(group, first, last, attempt)
        local uncounted = math.max(attempt - 1, 0)
        put(group, first, last, uncounted, 0)
        -- It stays with its consumer, whoever that is, until the next claim.
        local held = redis.call('XPENDING', group.log, group.name, '0-' .. fmt(first),
            '0-' .. fmt(first), '1')[1]
        if held then
            put_on(group, held[2], first, last, uncounted)
        end
    end,
}

-- ARGV: partitions, group, now, the channel to ring on, then for each stretch
-- of leases: first, last, fence, whether the receipts are theirs, outcome,
-- microseconds to wait, reason. Answers {stretch, first, last, refusal} for
-- what is refused.
local function settle(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local now, refused, reopens = now_of(args[3]), {}, false
    for at = 5, #args, 7 do
        local item = {
            number = (at - 5) / 7,
            first = tonumber(args[at]), last = tonumber(args[at + 1]), fence = args[at + 2],
            own_receipt = args[at + 3] == '1', outcome = args[at + 4],
            after = tonumber(args[at + 5]), reason = args[at + 6],
        }
        by_stretch(group, item, refused, function(first, last, attempt)
            outcomes[item.outcome](group, first, last, attempt, item, now)
        end)
        -- In an ordered group the end of a lease lets others in.
        reopens = reopens or group.ordered or item.outcome == 'retry' or item.outcome == 'release'
    end
    if reopens then
        ring(args[4])
    end
    return refused
end

-- ARGV: partitions, group, now, lease in microseconds, then for each stretch:
-- first, last, fence, whether the receipts are theirs. Answers {the new
-- expiry, {stretch, first, last, refusal}, …}.
local function renew(keys, args)
    local group, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local expires = math.min(now_of(args[3]) + tonumber(args[4]), MOST)
    local answer = {expires}
    for at = 5, #args, 4 do
        local item = {
            number = (at - 5) / 4,
            first = tonumber(args[at]), last = tonumber(args[at + 1]), fence = args[at + 2],
            own_receipt = args[at + 3] == '1',
        }
        by_stretch(group, item, answer, function(first, last, attempt)
            put(group, first, last, attempt, expires, item.fence)
        end)
    end
    return answer
end

-- What is in the log can be consumed also where there is no memory left for more.
redis.register_function{
    function_name = 'LIB_settle', callback = settle, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_renew', callback = renew, flags = {'allow-oom'},
}

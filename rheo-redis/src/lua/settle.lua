-- Settling and renewing: the token decides, whatever the time.

local STALE, RECEIPT_MISMATCH = 1, 2

-- Goes through leases of one claim on neighbouring events: calls `change` with
-- the run that holds them so, and notes in `refused` what is not leased so.
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
            change(run, at, upto)
        end
        at = upto + 1
    end
end

-- What becomes of leased events of a run, by the outcome.
local outcomes = {
    ack = function(group, run, first, last)
        cut_out(group, run, first, last)
        take_off(group, {{first = first, last = last}})
        -- Attempts are kept where the place implies others.
        local skipped = math.min(last, group.start)
        if first <= skipped and run.attempt ~= 0 then
            join_attempts(group, first, skipped, run.attempt)
        end
        local rest = math.max(first, skipped + 1)
        if rest <= last and run.attempt ~= 1 then
            join_attempts(group, rest, last, run.attempt)
        end
    end,
    reject = function(group, run, first, last, item)
        bury(group, run, first, last, item.reason, now_of(item.now))
    end,
    retry = function(group, run, first, last, item)
        if run.attempt >= group.max_attempts then
            bury(group, run, first, last, item.reason, now_of(item.now))
        else
            cut_out(group, run, first, last)
            local due = item.after > 0 and now_of(item.now) + item.after or AT_ONCE
            put(group, first, last, run.attempt, due)
        end
    end,
    release = function(group, run, first, last)
        local uncounted = math.max(run.attempt - 1, 0)
        -- It stays with its consumer, whoever that is, until the next claim.
        local held = pending_from(group, first, 1)[1]
        if held and sequence_of(held[1]) <= last then
            put_on(group, held[2], {{first = first, last = last, attempt = uncounted}})
        end
        cut_out(group, run, first, last)
        put(group, first, last, uncounted, AT_ONCE)
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
    local refused, reopens = {}, false
    for at = 5, #args, 7 do
        local item = {
            number = (at - 5) / 7,
            first = tonumber(args[at]), last = tonumber(args[at + 1]), fence = args[at + 2],
            own_receipt = args[at + 3] == '1', outcome = args[at + 4],
            after = tonumber(args[at + 5]), reason = args[at + 6], now = args[3],
        }
        by_stretch(group, item, refused, function(run, first, last)
            outcomes[item.outcome](group, run, first, last, item)
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
    local expires = now_of(args[3]) + tonumber(args[4])
    local answer = {expires}
    for at = 5, #args, 4 do
        local item = {
            number = (at - 5) / 4,
            first = tonumber(args[at]), last = tonumber(args[at + 1]), fence = args[at + 2],
            own_receipt = args[at + 3] == '1',
        }
        by_stretch(group, item, answer, function(run, first, last)
            cut_out(group, run, first, last)
            put(group, first, last, run.attempt, expires, item.fence)
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

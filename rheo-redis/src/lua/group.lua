-- Groups: how they come, go and begin anew, in each partition.
--
-- Partition 0 decides whether a group is there. While one is being created, it
-- holds in the field `pending` where the group begins in each partition, so
-- that whoever misses the group in another can make it there. KEYS are those
-- of `Keys::group`; ARGV begins with partitions and group, as in `group_of`.

-- Deletes how a group stands, and leaves its settings.
local function forget_work(keys)
    redis.call('UNLINK', unpack(keys, 4, 3 + #GROUP_PARTS))
end

-- How many events were ever added to a log.
local function added_to(log)
    return fact_of(log, 'entries-added')
end

-- Makes the server's own group anew, to begin after `start`.
local function start_native(log, name, start)
    local how = {log, name, '0-' .. start}
    -- Beyond the log's end the server would take it for a negative lag.
    if tonumber(start) <= added_to(log) then
        how[#how + 1] = 'ENTRIESREAD'
        how[#how + 1] = start
    end
    redis.call('XGROUP', 'DESTROY', log, name)
    redis.call('XGROUP', 'CREATE', unpack(how))
end

-- Makes a group of which nothing is left, of a stream with so many partitions.
-- `rules` are max_attempts and ordered.
local function start_group(keys, partitions, name, made, rules, start)
    local log, hash = keys[1], keys[3]
    start_native(log, name, start)
    redis.call('UNLINK', hash)
    forget_work(keys)
    redis.call('HSET', hash, 'partitions', partitions, 'made', made,
        'max_attempts', rules[1], 'ordered', rules[2], 'start', start, 'cursor', start)
    redis.call('SADD', log .. ':groups', name)
end

-- Of partition 0. ARGV: partitions, group, max_attempts, ordered, and where the
-- group begins: in this partition, and in all of them.
local function enter_group(keys, args)
    local meta, hash = keys[2], keys[3]
    if not is_of_stream(meta, args[1]) then
        return no_stream()
    end
    if redis.call('EXISTS', hash) == 1 then
        return redis.error_reply('EXISTS the name is taken')
    end
    local last = redis.call('HMGET', meta, 'made', 'counter')
    local made = next_made(math.max(last[1], last[2] or 0))
    start_group(keys, args[1], args[2], made, {args[3], args[4]}, args[5])
    redis.call('HSET', meta, 'counter', made)
    if args[1] ~= '1' then
        redis.call('HSET', hash, 'pending', args[6])
    end
    return redis.status_reply('OK')
end

-- Of partition 0. Answers {made of the stream, made, max_attempts, ordered,
-- pending}, the last one empty where nothing is.
local function find_group(keys, args)
    local _, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local found = redis.call('HMGET', keys[3], 'made', 'max_attempts', 'ordered', 'pending')
    return {redis.call('HGET', keys[2], 'made'), found[1], found[2], found[3], found[4] or ''}
end

-- Whether the stream is still the one that the group belongs to.
local function is_same_stream(meta, made)
    return redis.call('HGET', meta, 'made') == made
end

-- Of any other partition. ARGV: partitions, group, made of the stream, made,
-- max_attempts, ordered, and where the group begins.
local function make_group(keys, args)
    local meta, hash, made = keys[2], keys[3], args[4]
    if not is_same_stream(meta, args[3]) or is_late(hash, hash, made) then
        return 0
    end
    start_group(keys, args[1], args[2], made, {args[5], args[6]}, args[7])
    return 1
end

-- Of partition 0. ARGV: partitions, group, made. The group is made everywhere.
local function finish_group(keys, args)
    local hash = keys[3]
    if redis.call('HGET', hash, 'made') ~= args[3] then
        return 0
    end
    return redis.call('HDEL', hash, 'pending')
end

-- ARGV: partitions, group, made of the stream, made, the channel to ring on.
-- Answers 1, or 0 where it was not this group that was there.
local function drop_group(keys, args)
    local log, meta, hash, made = keys[1], keys[2], keys[3], args[4]
    if not is_same_stream(meta, args[3]) then
        return 0
    end
    local there = redis.call('HGET', hash, 'made')
    if there and tonumber(there) > tonumber(made) then
        return 0
    end
    remember_dropped(hash, made)
    -- Where the log is gone, so is the server's own group.
    redis.pcall('XGROUP', 'DESTROY', log, args[2])
    redis.call('UNLINK', hash)
    forget_work(keys)
    redis.call('SREM', log .. ':groups', args[2])
    ring(args[5])
    return there == made and 1 or 0
end

-- ARGV: partitions, group, where it begins anew, the channel to ring on.
local function reset_group(keys, args)
    local _, refusal = group_of(keys, args)
    if refusal then
        return refusal
    end
    local hash = keys[3]
    local kept = redis.call('HMGET', hash, 'made', 'max_attempts', 'ordered', 'pending')
    start_group(keys, args[1], args[2], kept[1], {kept[2], kept[3]}, args[3])
    if kept[4] then
        redis.call('HSET', hash, 'pending', kept[4])
    end
    ring(args[4])
    return redis.status_reply('OK')
end

-- KEYS: log, meta. ARGV: partitions.
local function list_groups(keys, args)
    if not is_of_stream(keys[2], args[1]) then
        return no_stream()
    end
    return redis.call('SMEMBERS', keys[1] .. ':groups')
end

redis.register_function('LIB_enter_group', enter_group)
redis.register_function('LIB_make_group', make_group)
redis.register_function{
    function_name = 'LIB_find_group', callback = find_group, flags = {'no-writes'},
}
redis.register_function{
    function_name = 'LIB_list_groups', callback = list_groups, flags = {'no-writes'},
}
-- What frees memory works where there is none left.
redis.register_function{
    function_name = 'LIB_finish_group', callback = finish_group, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_drop_group', callback = drop_group, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_reset_group', callback = reset_group, flags = {'allow-oom'},
}

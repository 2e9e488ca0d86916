-- Streams: the catalog of them, and the partitions that each consists of.
--
-- The catalog is a hash of a stream's name to the text "made partitions state
-- index". The number `made` is greater for each stream than for all before it,
-- so that it tells streams of one name apart. Under the empty name, which no
-- stream has, the catalog keeps the last such number.
--
-- The catalog and the partitions lie in different slots, so that creating and
-- deleting take several calls and can be cut off between them. Whoever finds a
-- stream half created or half deleted makes all the calls once more: what was
-- done already, or has been overtaken by a newer stream, is not done again.

-- How long a partition or a group remembers that it was dropped, in seconds:
-- longer than a call can be on its way.
local REMEMBERED = '3600'

-- The number after `last`. The time is in it so that also a server that lost
-- the last number gives none twice.
local function next_made(last)
    return fmt(math.max(last + 1, now_of('')))
end

-- Remembers that what has this key was dropped, up to this number.
local function remember_dropped(key, made)
    redis.call('SET', key .. ':dropped', made, 'EX', REMEMBERED)
end

-- Whether one of this number was dropped already, or is there, or a newer one.
-- `hash` tells which is there.
local function is_late(key, hash, made)
    local there = redis.call('HGET', hash, 'made') or 0
    local dropped = redis.call('GET', key .. ':dropped') or 0
    return tonumber(made) <= math.max(there, dropped)
end

-- Takes the names out of a set, and calls `each` with them, some at a time.
local function drain(set, each)
    local names = redis.call('SPOP', set, '1000')
    while #names > 0 do
        each(names)
        names = redis.call('SPOP', set, '1000')
    end
end

-- A name as one word of a key, as in keys.rs.
local function word(name)
    return (string.gsub(name, '[%%{}/:]', function(character)
        return string.format('%%%02x', string.byte(character))
    end))
end

-- The keys that hold how a group stands, beside its hash.
local GROUP_PARTS = {'open', 'leased', 'delayed', 'ready', 'attempts', 'dead', 'graves'}

-- Deletes all that a partition has. Its groups are named in the set `groups`,
-- the keys of its indexes in the set `by`.
local function forget_partition(log, meta)
    drain(log .. ':groups', function(groups)
        for _, group in ipairs(groups) do
            local hash = log .. ':group:' .. word(group)
            redis.call('UNLINK', hash)
            for _, part in ipairs(GROUP_PARTS) do
                redis.call('UNLINK', hash .. ':' .. part)
            end
        end
    end)
    drain(log .. ':by', function(indexes)
        redis.call('UNLINK', unpack(indexes))
    end)
    redis.call('UNLINK', log, meta, log .. ':ids')
end

-- KEYS: the catalog. ARGV: name, partitions, index. Enters a stream that is
-- being made, and answers its entry.
local function enter_stream(keys, args)
    local catalog, name = keys[1], args[1]
    if redis.call('HEXISTS', catalog, name) == 1 then
        return redis.error_reply('EXISTS the name is taken')
    end
    local made = next_made(redis.call('HGET', catalog, '') or 0)
    local entry = table.concat({made, args[2], 'making', args[3]}, ' ')
    redis.call('HSET', catalog, '', made, name, entry)
    return entry
end

-- KEYS: the catalog. ARGV: name, the entry as it was, and as it is to be, empty
-- where it is to go. Answers 1, or 0 where the entry is another by now.
local function turn_stream(keys, args)
    local catalog, name, before, after = keys[1], args[1], args[2], args[3]
    if redis.call('HGET', catalog, name) ~= before then
        return 0
    elseif after == '' then
        redis.call('HDEL', catalog, name)
    else
        redis.call('HSET', catalog, name, after)
    end
    return 1
end

-- KEYS: log, meta. ARGV: partitions, made, index.
local function make_partition(keys, args)
    local log, meta, made, index = keys[1], keys[2], args[2], args[3]
    if is_late(log, meta, made) then
        return 0
    end
    forget_partition(log, meta)
    -- An empty log comes into being with a group, and stays without it.
    redis.call('XGROUP', 'CREATE', log, 'rheo', '0', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', log, 'rheo')
    redis.call('HSET', meta, 'partitions', args[1], 'made', made)
    if index ~= '' then
        redis.call('HSET', meta, 'index', index)
    end
    return 1
end

-- KEYS: log, meta. ARGV: made, the channel to ring on.
local function drop_partition(keys, args)
    local log, meta, made = keys[1], keys[2], args[1]
    local there = redis.call('HGET', meta, 'made') or 0
    if tonumber(there) > tonumber(made) then
        return 0
    end
    forget_partition(log, meta)
    remember_dropped(log, made)
    ring(args[2])
    return 1
end

redis.register_function('LIB_enter_stream', enter_stream)
redis.register_function('LIB_make_partition', make_partition)
-- What frees memory works where there is none left.
redis.register_function{
    function_name = 'LIB_turn_stream', callback = turn_stream, flags = {'allow-oom'},
}
redis.register_function{
    function_name = 'LIB_drop_partition', callback = drop_partition, flags = {'allow-oom'},
}

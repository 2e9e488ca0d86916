-- The log of a partition: adding to it, and finding places in it.

-- The metadata fields that make up the lineage.
local LINEAGE = {'correlation_id', 'causation_id', 'producer', 'schema', 'schema_version'}

local function is_before(time, other)
    return tonumber(time) < tonumber(other)
end

-- The entry of the event that a given id stands for already.
local function stored_as(log, ids, id)
    local sequence = redis.call('HGET', ids, id)
    if sequence then
        local entry_id = '0-' .. sequence
        return redis.call('XRANGE', log, entry_id, entry_id)[1]
    end
end

-- Adds an event where the partition had one with a later timestamp before.
local function add_late(log, latest, id, at, kind, key, metadata, payload)
    local fields = {'id', id, 'at', at, 'type', kind}
    if key then
        fields[7], fields[8] = 'key', key
    end
    for _, field in ipairs({'metadata', metadata, 'payload', payload, 'latest', latest}) do
        fields[#fields + 1] = field
    end
    return redis.call('XADD', log, '0-*', unpack(fields))
end

local function index_by(log, field, value, sequence)
    local by = log .. ':by:' .. field .. ':' .. word(value)
    redis.call('ZADD', by, sequence, sequence)
    redis.call('SADD', log .. ':by', by)
end

-- Makes an event known to those indexes that the stream has.
local function index(log, indexes, sequence, kind, key, metadata)
    if string.find(indexes, 'type', 1, true) then
        index_by(log, 'type', kind, sequence)
    end
    if key and string.find(indexes, 'key', 1, true) then
        index_by(log, 'key', key, sequence)
    end
    if metadata ~= '{}' and string.find(indexes, 'lineage', 1, true) then
        local fields = cjson.decode(metadata)
        for _, field in ipairs(LINEAGE) do
            if type(fields[field]) == 'string' then
                index_by(log, field, fields[field], sequence)
            end
        end
    end
end

-- What arguments an event has, by the character that tells. A part that it does
-- not have is as in the event before, but for the key: without, it has none.
local SHAPES = {}
for bits = 0, 31 do
    SHAPES[64 + bits] = {
        at = bits % 2 >= 1,
        kind = bits % 4 >= 2,
        metadata = bits % 8 >= 4,
        key = bits % 16 >= 8,
        -- Its id is one that its caller gave.
        given = bits >= 16,
    }
end

-- KEYS: log, meta, ids. ARGV: partitions, channel, a character for each event,
-- then of each event its id and payload, and as its character says timestamp,
-- type, metadata and key. Answers the last sequence that was added, or 0. Where
-- events were there already, it stands first in a list in which the number in
-- the call and the entry of each of those follow.
--
-- Most of its time is that of taking and handing on arguments and answers:
-- hence what is left out, and XADD twice with all of its arguments.
local function append(keys, args)
    local call, byte = redis.call, string.byte
    local log, meta, ids = keys[1], keys[2], keys[3]
    local known = call('HMGET', meta, 'partitions', 'latest', 'index')
    local latest, indexes = known[2], known[3]
    if known[1] ~= args[1] then
        return no_stream()
    end
    local shapes, place = args[3], 4
    local at, kind, metadata, entry_id
    local there = {}
    for number = 1, #shapes do
        local shape = SHAPES[byte(shapes, number)]
        local id, payload, key = args[place], args[place + 1], nil
        place = place + 2
        if shape.at then
            at, place = args[place], place + 1
        end
        if shape.kind then
            kind, place = args[place], place + 1
        end
        if shape.metadata then
            metadata, place = args[place], place + 1
        end
        if shape.key then
            key, place = args[place], place + 1
        end
        local entry = shape.given and stored_as(log, ids, id)
        if entry then
            there[#there + 1], there[#there + 2] = number, entry
        else
            if latest and at ~= latest and is_before(at, latest) then
                entry_id = add_late(log, latest, id, at, kind, key, metadata, payload)
            elseif key then
                latest = at
                entry_id = call('XADD', log, '0-*', 'id', id, 'at', at, 'type', kind,
                    'key', key, 'metadata', metadata, 'payload', payload)
            else
                latest = at
                entry_id = call('XADD', log, '0-*', 'id', id, 'at', at, 'type', kind,
                    'metadata', metadata, 'payload', payload)
            end
            if shape.given then
                call('HSET', ids, id, string.sub(entry_id, 3))
            end
            if indexes then
                index(log, indexes, string.sub(entry_id, 3), kind, key, metadata)
            end
        end
    end
    local last = 0
    if entry_id then
        last = tonumber(string.sub(entry_id, 3))
        if latest ~= known[2] then
            call('HSET', meta, 'latest', latest)
        end
        ring(args[2])
    end
    if #there == 0 then
        return last
    end
    table.insert(there, 1, last)
    return there
end
redis.register_function('LIB_append', append)

-- The greatest timestamp up to and including that of an entry.
local function latest_up_to(entry)
    local at, latest
    for field = 1, #entry[2], 2 do
        local name, value = entry[2][field], entry[2][field + 1]
        if name == 'at' then
            at = value
        elseif name == 'latest' then
            latest = value
        end
    end
    return latest or at
end

-- The sequence before the first event at or after an instant, of a log that
-- ends with `last`.
local function before_instant(log, instant, last)
    local low, high = 1, last + 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        local entry = redis.call('XRANGE', log, '0-' .. fmt(middle), '+', 'COUNT', '1')[1]
        if entry and is_before(latest_up_to(entry), instant) then
            low = tonumber(string.sub(entry[1], 3)) + 1
        else
            high = middle
        end
    end
    return low - 1
end

-- KEYS: log, meta. ARGV: partitions, an instant or nothing. Answers the last
-- sequence, the one before the first event at or after the instant (the last
-- where there is none), and the stream's indexes.
local function seek(keys, args)
    local log, instant = keys[1], args[2]
    local known = redis.call('HMGET', keys[2], 'partitions', 'latest', 'index')
    local latest, indexes = known[2], known[3]
    if known[1] ~= args[1] then
        return no_stream()
    end
    local last = end_of(log)
    local before = last
    if instant ~= '' and latest and not is_before(latest, instant) then
        before = before_instant(log, instant, last)
    end
    return {last, before, indexes or ''}
end
redis.register_function({function_name = 'LIB_seek', callback = seek, flags = {'no-writes'}})

# Runs all nodes of a cluster, in the directory that it is called in.
#
#   redis_cluster.sh SERVER NODE...
#
# A node is PORT:ANNOUNCED:BUS: where it listens, where it tells clients to find
# it, and where the other nodes find it. Each has a directory named like its
# port. The first time, all of them are told of each other, and share the slots.
server=$1
shift

count=0 first=0
for node; do
  count=$((count + 1)) last=$((16384 * count / $# - 1))
  port=${node%%:*} rest=${node#*:}
  id=$(printf '%040d' "$port")
  table="$table$id 127.0.0.1:${rest%:*}@${rest#*:} MYSELFmaster - 0 0 $count connected $first-$last
"
  first=$((last + 1))
done

for node; do
  port=${node%%:*} rest=${node#*:}
  if mkdir "$port" 2>/dev/null; then
    id=$(printf '%040d' "$port")
    printf '%svars currentEpoch %d lastVoteEpoch 0\n' "$table" "$count" |
      sed "/^$id/s/MYSELF/myself,/; s/MYSELF//" >"$port/nodes.conf"
  fi
  # Without replicas nobody can take over for a node that is slow to answer, so
  # the others are patient with it.
  "$server" --dir "$port" --port "$port" --bind 127.0.0.1 --save '' \
    --appendonly yes --appendfsync always \
    --cluster-enabled yes --cluster-node-timeout 5000 --cluster-port "${rest#*:}" \
    --cluster-announce-ip 127.0.0.1 --cluster-announce-port "${rest%:*}" &
done
wait

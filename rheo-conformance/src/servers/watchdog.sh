# Runs a server until it is told to end it, or until nobody is left who could
# tell, however the test ended.
#
#   watchdog.sh HOME CONTAINER COMMAND [ARGUMENT]...
#
# HOME is the server's directory, CONTAINER its container's name, or empty.
# Standard output stays open while any process of the server lives.
home=$1 container=$2
shift 2
"$@" 3>&1 >>"$home/log" 2>&1 &
server=$!
exec >/dev/null 2>&1

# A line, or the end: the server is killed, with its children where they can be found.
read -r line
[ -z "$container" ] || docker kill "$container"
kill -9 "$server" $(cat "/proc/$server/task/"*/children)
wait "$server"

# Another line: it will be started again, under another watchdog.
read -r line && exit
[ -z "$container" ] || docker rm --force --volumes "$container"
rm -rf "$home"

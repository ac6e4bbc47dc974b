# tests/fleet.sh, sourced by tests of the fleet as `source tests/fleet.sh BUILD NAME`: a NATS server on loopback in a
# folder of its own, which goes with all processes when the test ends. Skips where there is no nats-server.
set -uo pipefail
tarn=$1/tarn
test_name=$2
skip() { echo "$test_name: skipped, $*"; exit 77; }
command -v nats-server >/dev/null || skip "nats-server is not installed"
[[ $("$tarn" fleet status nats://127.0.0.1:1 2>&1) != *"has no NATS"* ]] || skip "built without NATS"
work=$(mktemp -d)
server=
tuner=
worker=()
# Numbers of processes come again: only what this shell still runs is killed.
alive() { jobs -pr | grep -qx -- "$1"; }
end() { # PROCESS…
  local p
  for p in "$@"; do
    ! alive "$p" || kill -9 "$p"
    wait "$p"
  done 2>/dev/null
}
stop_all() { end $(jobs -pr); }
trap 'stop_all; rm -rf "$work"' EXIT
fail() { echo "$test_name: $*" >&2; tail -n 5 "$work"/*.err >&2; exit 1; }

port=-1
host=127.0.0.1
url=
start_server() { # [LINES OF CONFIGURATION]
  rm -f "$work"/*.ports
  printf 'listen: "%s:%s"\nports_file_dir: "%s"\n%s\n' "$host" "$port" "$work" \
    "${1:-jetstream { store_dir: \"$work/js\" \}}" >"$work/server.conf"
  nats-server -c "$work/server.conf" >>"$work/server.log" 2>&1 &
  server=$!
  for ((i = 0; i < 200; i++)); do
    [ ! -s "$work/nats-server_$server.ports" ] || break
    sleep 0.05
  done
  port=$(sed -n "s/.*$host:\([0-9]*\).*/\1/p" "$work/nats-server_$server.ports" | head -n 1)
  [ -n "$port" ] || fail "nats-server does not start: $(tail -n 3 "$work/server.log")"
  url=nats://$host:$port
}
end_server() { end "$server"; server=; }
number() { sed -n "s/.*\"$2\": *\([0-9.e+-]*\).*/\1/p" "$1" | head -n 1; } # FILE KEY

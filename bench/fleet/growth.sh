#!/usr/bin/env bash
# bench/fleet/growth.sh BUILD [JOBS] [WORKERS]: what a job of a fleet costs, with a NATS server of its own on loopback
# (docs/fleet.md#growth). Its files lie in TMPDIR.
set -euo pipefail
build=$1 jobs=${2:-100000} workers=${3:-200}
cmake --build "$build" --target growth >/dev/null
work=$(mktemp -d)
printf 'listen: "127.0.0.1:-1"\nports_file_dir: "%s"\njetstream { store_dir: "%s/js" }\n' "$work" "$work" >"$work/server.conf"
nats-server -c "$work/server.conf" >"$work/server.log" 2>&1 &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$work"' EXIT
until [ -s "$work/nats-server_$server.ports" ]; do sleep 0.1; done
port=$(sed -n 's/.*127.0.0.1:\([0-9]*\).*/\1/p' "$work/nats-server_$server.ports")
"$build/bin/growth" "nats://127.0.0.1:$port" "$work/growth.db" "$jobs" "$workers" "$server"
awk '/VmRSS/ { printf "server: %.0f MiB of memory, ", $2 / 1024 }' "/proc/$server/status"
du -sm "$work/js" | awk '{ print $1 " MiB on its disk" }'

#!/usr/bin/env bash
# tests/fleet_hosts.sh BUILD: a worker on another machine, which is a network namespace, whose link goes down and
# comes back while it works. Skipped without nats-server, and where no namespaces can be made.
source tests/fleet.sh "$1" fleet_hosts
[ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v unshare >/dev/null || skip "needs root, ip and unshare"

# ---- the other machine ----
near=tarn$$a far=tarn$$b
unshare -n sleep 300 2>/dev/null &
other=$!
trap 'ip link del $near 2>/dev/null; stop_all; rm -rf "$work"' EXIT
sleep 0.3
ip link add "$near" type veth peer name "$far" netns $other 2>/dev/null || skip "no namespaces of networks here"
there() { nsenter -n -t $other "$@"; }
ip addr add 10.213.7.1/30 dev "$near" && ip link set "$near" up || fail "the link"
there ip addr add 10.213.7.2/30 dev "$far" && there ip link set "$far" up || fail "the link's other end"

host=10.213.7.1
start_server
tune() { # DB
  timeout 100 "$tarn" tune examples/digits/digits.onnx --shape n=1 --hw x86-64-v3 --price analytic --trials 120 --fleet "$url" \
    --insecure --silence 1 --db "$1" -o "$work/price" --json >"$1.json" 2>>"$work/tune.err"
}
start_worker() { # INDEX COMMAND…
  local i=$1
  shift
  "$@" "$tarn" worker --fleet "$url" --insecure --hw x86-64-v3 --simulate --pace 0.05 --silence 1 --name "w$i" \
    >"$work/w$i.out" 2>"$work/w$i.err" &
  worker[$i]=$!
}
there "$tarn" worker --fleet "$url" --hw x86-64-v3 --simulate 2>"$work/said.err" && fail "in the clear to another machine"
grep -q "give tls:// or --tlsca FILE, or --insecure" "$work/said.err" || fail "not refused: $(cat "$work/said.err")"

start_worker 0 nsenter -n -t $other
tune "$work/calm.db" || fail "a worker on another machine"
start_worker 1 env
tune "$work/wild.db" &
tuner=$!
sleep 0.8
ip link set "$near" down
sleep 3
ip link set "$near" up
wait $tuner || fail "a link that goes down"
tuner=
for db in calm wild; do "$tarn" tune --db "$work/$db.db" --export "$work/$db.txt" >/dev/null || fail "export"; done
cmp -s "$work/calm.txt" "$work/wild.txt" || fail "a link that goes down changes what is stored"
for ((i = 0; i < 100; i++)); do # it comes back by itself
  there "$tarn" fleet status "$url" --insecure --json >"$work/status" 2>"$work/said.err" && break
  sleep 0.2
done
[ "$(grep -c '"name": *"w[01]"' "$work/status")" -ge 1 ] || fail "status from another machine: $(cat "$work/status")"
exit 0

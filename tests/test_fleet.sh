#!/usr/bin/env bash
# tests/test_fleet.sh BUILD [--all]: workers and tuners over a NATS server of this test's own. Workers, the tuner and
# the server are killed at random, and the store must hold what it holds without. Skipped without nats-server.
all=${2:-}
source tests/fleet.sh "$1" test_fleet

# ---- workers and tuners ----
printf 'def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }\n' >"$work/mm.tc"
model=(examples/digits/digits.onnx --shape n=1)
pace=0.02
silence=1
start_worker() { # INDEX
  "$tarn" worker --fleet "$url" --hw x86-64-v3 --simulate --pace "$pace" --silence "$silence" --name "w$1" \
    >>"$work/w$1.out" 2>>"$work/w$1.err" &
  worker[$1]=$!
}
start_tuner() { # DB ARGUMENTS…
  local db=$1
  shift
  "$tarn" tune "$@" --hw x86-64-v3 --price analytic --fleet "$url" --silence "$silence" --db "$db" -o "$work/price" --json \
    >"$db.json" 2>>"$work/tuner.err" &
  tuner=$!
}
end_workers() { end "${worker[@]}"; worker=(); }

kills=0
kill_some() { # DB ARGUMENTS…, until the tuner has ended by itself
  local next_server=$((kills + 10)) victim i
  start_tuner "$@"
  while :; do
    sleep "$gap"
    if ! alive "$tuner"; then
      wait "$tuner" && break
      if tail -n 1 "$work/tuner.err" | grep -q "no server answers"; then # started while the server was
        start_tuner "$@"
        continue
      fi
      fail "the tuner ends: $(tail -n 1 "$work/tuner.err")"
    fi
    ((most-- > 0)) || continue
    victim=$((RANDOM % 20))
    if ((victim < tuners)); then
      end "$tuner"
      start_tuner "$@"
    else
      i=$((victim % 4))
      end "${worker[$i]}"
      start_worker "$i"
    fi
    kills=$((kills + 1))
    if ((restarts > 0 && kills >= next_server)); then
      next_server=$((kills + 10)) restarts=$((restarts - 1))
      end_server
      sleep 0.3
      start_server
    fi
  done
  tuner=
}
# What a store holds after a search with kills is what it holds after one without.
compare() { # SEED ARGUMENTS…
  local seed=$1 i
  shift
  [ -z "$server" ] || end_server
  rm -rf "$work"/*.db* "$work/js" # what late workers answer to a search before does not count
  start_server
  for i in 0 1 2 3; do start_worker $i; done
  start_tuner "$work/calm.db" "$@" --seed "$seed"
  wait "$tuner" || fail "tune: $(tail -n 1 "$work/tuner.err")"
  tuner=
  kill_some "$work/wild.db" "$@" --seed "$seed"
  end_workers
  for ((i = 0; i < 20; i++)); do # all is answered: the same searches take what came late, or was a dead tuner's
    for db in calm wild; do
      start_tuner "$work/$db.db" "$@" --seed "$seed"
      wait "$tuner" || fail "the same search again: $(tail -n 1 "$work/tuner.err")"
      tuner=
    done
    "$tarn" fleet status "$url" --json >"$work/status" || fail "fleet status"
    [ "$(number "$work/status" answers)" != 0 ] || break
    sleep 0.5
  done
  [ "$(number "$work/status" answers)" = 0 ] || fail "answers are left behind"
  [ "$(number "$work/wild.db.json" trials)" = "$(number "$work/calm.db.json" trials)" ] || fail "the same search has other trials"
  for db in calm wild; do
    "$tarn" fleet status --db "$work/$db.db" --json >"$work/$db.sum" || fail "fleet status --db"
    "$tarn" tune --db "$work/$db.db" --export "$work/$db.txt" >/dev/null || fail "export"
  done
  [ "$(number "$work/wild.sum" asked)" = "$(number "$work/wild.sum" answered)" ] || fail "jobs without an answer"
  for key in asked failed; do # a job may be set aside by chance, and be tried once more
    [ "$(($(number "$work/calm.sum" $key) - $(number "$work/calm.sum" aside)))" = \
      "$(($(number "$work/wild.sum" $key) - $(number "$work/wild.sum" aside)))" ] ||
      fail "kills change the jobs: $(cat "$work/calm.sum" "$work/wild.sum")"
  done
  cmp -s "$work/calm.txt" "$work/wild.txt" || fail "kills change what the store holds: $(diff "$work/calm.txt" "$work/wild.txt" | head -n 4 | cut -c 1-200)"
  for key in best trials kernels; do
    [ "$(number "$work/calm.db.json" $key)" = "$(number "$work/wild.db.json" $key)" ] || fail "kills change \"$key\""
  done
}

RANDOM=7
if [ "$all" = --all ]; then
  gap=0.7 most=1000 tuners=4 restarts=2 pace=0.02
  compare 1 "${model[@]}" --spread --every --per-kernel 500 --trials 2000
  ((kills >= 20)) || fail "only $kills kills"
  echo "2000 jobs, $kills kills"
  kills=0
  for ((seed = 2; kills < 1000; seed++)); do
    gap=0.3 most=1000 tuners=1 restarts=2 pace=0.1
    compare $seed "${model[@]}" --trials 400
  done
  echo "$kills kills"
else
  gap=0.3 most=12 tuners=5 restarts=1 pace=0.02 silence=0.6
  compare 1 "${model[@]}" --trials 160
  ((kills >= 6)) || fail "only $kills kills"
fi
exit 0

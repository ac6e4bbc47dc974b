#!/usr/bin/env bash
# tests/test_fleet_lines.sh BUILD [--all]: what a fleet says when something is wrong, in one line, and what it makes of messages
# that nobody should send. Skipped without nats-server.
source tests/fleet.sh "$1" test_fleet_lines

printf 'def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }\n' >"$work/mm.tc"
model=("$work/mm.tc" --shape M=64 --shape K=48 --shape N=32)
silence=0.5
tune() { # DB ARGUMENTS…
  local db=$1
  shift
  timeout 60 "$tarn" tune "${model[@]}" --hw x86-64-v3 --price analytic --silence $silence --db "$db" -o "$work/price" "$@"
}
start_worker() { # INDEX ARGUMENTS…
  local i=$1
  shift
  "$tarn" worker --hw x86-64-v3 --simulate --silence $silence --name "w$i" "$@" >"$work/w$i.out" 2>>"$work/w$i.err" &
  worker[$i]=$!
}
end_worker() { end "${worker[$1]}"; }
says() { # STATUS WORDS COMMAND…: one line that begins with "tarn: " and has the words
  local status=$1 words=$2 rc
  shift 2
  "$@" >"$work/out" 2>"$work/said.err"
  rc=$?
  [ "$rc" = "$status" ] || fail "$*: ends with $rc, not $status"
  [ "$(wc -l <"$work/said.err")" = 1 ] && grep -q "^tarn: .*$words" "$work/said.err" || fail "$*: no line with \"$words\""
}
# Says what it is told to the server, without any client.
send() { # SUBJECT TEXT [LOGIN]
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'CONNECT {"verbose":false%s}\r\nPUB %s %d\r\n%s\r\nPING\r\n' "${3:-}" "$1" "${#2}" "$2" >&3
  while read -r -t 5 -u 3 line; do [[ $line != PONG* ]] || break; done
  exec 3>&-
}

# ---- before anything is connected ----
says 2 "tls:// or --tlsca FILE, or --insecure" tune "$work/no.db" --fleet nats://192.0.2.1
says 2 "tls:// or --tlsca" "$tarn" worker --fleet nats://127.0.0.1.example.org --simulate
says 2 "nats://HOST or tls://HOST is expected" "$tarn" fleet status http://localhost
says 2 "usage" "$tarn" worker
says 3 "no server answers" tune "$work/no.db" --fleet nats://127.0.0.1:1
says 3 "no-such-file" tune "$work/no.db" --fleet nats://127.0.0.1:1 --creds "$work/no-such-file"
says 3 "no-such-model" "$tarn" tune "$work/no-such-model.tc" --fleet nats://127.0.0.1:1 --db "$work/no.db"
[ ! -e "$work/no.db" ] || fail "a store is left behind where nothing was measured"

# ---- passwords ----
start_server "jetstream { store_dir: \"$work/locked\" }
authorization { user: board, password: secret }"
says 3 "wrong user, password or credentials" "$tarn" fleet status "nats://board:guess@127.0.0.1:$port"
! grep -q guess "$work/said.err" || fail "a message shows a password"
"$tarn" fleet status "nats://board:secret@127.0.0.1:$port" >"$work/out" || fail "the right password is refused"
end_server
start_server "# no JetStream"
says 3 "nats-server needs --jetstream\|JetStream" "$tarn" fleet status "$url"
end_server

start_server
says 2 "numbers as 0-3,8" "$tarn" worker --fleet "$url" --simulate --cores 3-1
says 2 "letters, digits" "$tarn" worker --fleet "$url" --simulate --name a.b

# ---- messages that nobody should send ----
start_worker 0 --fleet "$url" --idle 20
tune "$work/a.db" --trials 24 --fleet "$url" --json >"$work/a.json" || fail "tune"
"$tarn" fleet status "$url" --json >"$work/status" || fail "status"
hw=$(sed -n 's/.*"hw": *"\([0-9a-f]\{16\}\)".*/\1/p' "$work/status" | head -n 1)
[ -n "$hw" ] || fail "status shows no queue"
name=0123456789abcdef0123456789abcdef
store=$(strings -n 16 "$work/a.db" 2>/dev/null | grep -xE '[0-9a-f]{16}' | head -n 1)
send "tarn.7.job.$hw.aa.$name" '(job 7 (name "'$name'") (store "aa") (threads 1) (seed 1) (marks) (kernel "(kernel") (schedule "x"))'
send "tarn.7.job.$hw.ab.$name" '(job 7 (name "'
send "tarn.7.job.$hw.ac.$name" '(job 8 (name "'$name'"))'
send "tarn.7.job.$hw.af.$name" ""
send "tarn.7.job.$hw.ad.$name" "$(head -c 600000 /dev/zero | tr '\0' x)"
[ -n "$store" ] || fail "the store has no name"
send "tarn.7.answer.$store.$name" '(answer 7 (name "'$name'") (seconds 1e-30) (calibration 0) (marks) (worker "x") (reason ""))'
send "tarn.7.answer.$store.0$name" '(answer 7'
send '$KV.tarn-workers.liar' '(worker 7 (name "liar")'
send '$KV.tarn-workers.silent' ''
"$tarn" tune --db "$work/a.db" --export "$work/before.txt" >/dev/null
tune "$work/a.db" --trials 40 --fleet "$url" --json >"$work/b.json" || fail "tune after malformed messages"
[ "$(number "$work/b.json" trials)" = 40 ] || fail "malformed messages: $(cat "$work/b.json")"
for ((i = 0; i < 100; i++)); do
  "$tarn" fleet status "$url" --json >"$work/status" || fail "status after malformed messages"
  [ "$(number "$work/status" dropped)" != 3 ] || break
  sleep 0.2
done
[ "$(number "$work/status" dropped)" = 3 ] || fail "malformed jobs are not counted: $(cat "$work/status")"
grep -q "a malformed job is dropped" "$work/w0.err" || fail "malformed jobs are not told"
! "$tarn" tune --db "$work/a.db" --export /dev/stdout | grep -q 'e-30' || fail "an answer to no question is stored"
kill -TERM "${worker[0]}"
wait "${worker[0]}" || fail "a worker does not end on SIGTERM"
grep -q "3 malformed" "$work/w0.out" || fail "the worker's report: $(cat "$work/w0.out")"

# ---- workers of another version, and none ----
send '$KV.tarn-workers.old' '(worker 5 (name "old") (hw "x") (program "0.0.9") (marks) (done 0) (failed 0) (drifted 0) (dropped 0) (calibration 0) (at-first 0) (job ""))'
tune "$work/v.db" --trials 1 --fleet "$url" >"$work/out" 2>"$work/v.err" &
tuner=$!
for ((i = 0; i < 300; i++)); do
  ! grep -qs "has this tuner's version" "$work/v.err" || break
  sleep 0.2
done
grep -q "^tarn: no worker has this tuner's version" "$work/v.err" || fail "nothing is said of workers of another version"

# ---- a job that ends workers: three, then it is set aside; tried once more, and then it counts as failed ----
until_status() { # CONDITION…, of what fleet status says
  for ((k = 0; k < 100; k++)); do
    "$tarn" fleet status "$url" --json >"$work/status"
    ! eval "$@" || return 0
    sleep 0.1
  done
  fail "not so: $*: $(cat "$work/status")"
}
at_least() { [ "$(number "$work/status" "$1")" -ge "$2" ]; } # KEY NUMBER
handed=0
for i in 1 2 3 4 5 6; do
  start_worker $i --fleet "$url" --pace 30
  until_status at_least busy 1 '&&' at_least again $((i - 1)) '&&' at_least handed_out $((handed + i / 4))
  ((i > 1)) || handed=$(number "$work/status" handed_out)
  end_worker $i
done
start_worker 7 --fleet "$url"
wait "$tuner" || fail "tune with a job that ends workers"
tuner=
"$tarn" fleet status "$url" >"$work/status"
[ "$(grep -c "^set aside .*: it ended 3 workers" "$work/status")" = 2 ] || fail "no job is set aside twice: $(cat "$work/status")"
"$tarn" fleet status --db "$work/v.db" --json >"$work/sum"
[ "$(number "$work/sum" aside)" = 2 ] && [ "$(number "$work/sum" failed)" = 2 ] || fail "the store: $(cat "$work/sum")"

# ---- tuners that share a store ----
tune "$work/s.db" --trials 40 --fleet "$url" --json >"$work/s1.json" &
one=$!
tune "$work/s.db" --trials 40 --fleet "$url" --json -o "$work/price2" >"$work/s2.json" &
two=$!
tune "$work/s.db" --trials 40 --seed 5 --fleet "$url" --json -o "$work/price3" >"$work/s3.json" || fail "the third tuner"
wait $one || fail "the first tuner"
wait $two || fail "the second tuner"
[ "$(number "$work/s1.json" best)" = "$(number "$work/s2.json" best)" ] || fail "two tuners of one search differ"
"$tarn" fleet status --db "$work/s.db" --json >"$work/sum"
[ "$(number "$work/sum" asked)" = "$(number "$work/sum" answered)" ] || fail "tuners of one store: $(cat "$work/sum")"
"$tarn" fleet status --db "$work/s.db" --html "$work/page.html" >/dev/null && grep -q '<td>' "$work/page.html" || fail "the page"

# ---- a killed server that has kept acknowledgements and not the removals, or has lost what is acknowledged: jobs that a store
# asks for again get their answers ----
end_worker 7
"$tarn" tune "${model[@]}" --hw x86-64-v3 --price analytic --silence $silence --trials 24 --fleet "$url" --db "$work/r.db" \
  -o "$work/price" >"$work/out" 2>>"$work/tune.err" &
tuner=$! # the program itself, to be stopped
until_status at_least queued 1
kill -STOP "$tuner"
mkdir "$work/asked" && cp "$work"/r.db* "$work/asked"
start_worker 7 --fleet "$url"
until_status at_least answers 1
end_server
msgs=$(echo "$work"/js/jetstream/*/streams/tarn-answers-7/msgs)
cp -r "$msgs" "$work/msgs"
end "$tuner"
start_server
tune "$work/r.db" --trials 24 --fleet "$url" --json >"$work/r1.json" || fail "after a killed tuner"
end_server
rm -r "$msgs" "$work"/r.db* && mv "$work/msgs" "$msgs" && mv "$work/asked"/* "$work"
start_server
tune "$work/r.db" --trials 24 --fleet "$url" --json >"$work/r2.json" || fail "with messages that are acknowledged"
[ "$(number "$work/r1.json" best)" = "$(number "$work/r2.json" best)" ] || fail "messages that are acknowledged change what is found"
until_status '!' at_least answers 1

# ---- an accelerator, by its simulator ----
mkdir "$work/s" && cp examples/digits/held_images.npy "$work/s"
"$tarn" quantize examples/digits/digits.onnx -i "$work/s" -o "$work/q.onnx" --shape n=359 --hw vta-pynq >/dev/null 2>&1 || fail "quantize"
"$tarn" worker --fleet "$url" --hw vta-pynq --simulate --name vta >"$work/vta.out" 2>"$work/vta.err" &
worker[5]=$!
timeout 60 "$tarn" tune "$work/q.onnx" --shape n=1 --hw vta-pynq --trials 60 --fleet "$url" --db "$work/q.db" -o "$work/price4" --json \
  >"$work/q.json" || fail "tune for an accelerator"
[ "$(number "$work/q.json" failed)" = 0 ] && [ "$(number "$work/q.json" kernels)" -ge 3 ] || fail "an accelerator: $(cat "$work/q.json")"
end_worker 5

# ---- a GPU, by the executor that stands for a driver ----
if [ "${2:-}" = --all ] && [ -e "$1/fake_cuda" ]; then
  LD_LIBRARY_PATH=$1/fake_cuda "$tarn" worker --fleet "$url" --hw cuda-sm80 --name gpu >"$work/gpu.out" 2>"$work/gpu.err" &
  worker[9]=$!
  timeout 200 "$tarn" tune "$work/mm.tc" --shape M=16 --shape K=12 --shape N=8 --hw cuda-sm80 --price analytic --trials 6 \
    --fleet "$url" --db "$work/gpu.db" -o "$work/price5" --json >"$work/gpu.json" 2>>"$work/tune.err" || fail "tune for a GPU"
  [ "$(number "$work/gpu.json" failed)" = 0 ] && [ "$(number "$work/gpu.json" trials)" -ge 3 ] || fail "a GPU: $(cat "$work/gpu.json")"
  end_worker 9
fi

# ---- clocks that jump by hours and weeks every second, of the tuner and of a worker ----
end_worker 7
clock=$PWD/$1/jumping_clock/libjumping_clock.so
[[ $1 != /* ]] || clock=$1/jumping_clock/libjumping_clock.so
if [ -e "$clock" ] && LD_PRELOAD=$clock "$tarn" --version >/dev/null 2>&1; then # not where a sanitizer wants to be first
  LD_PRELOAD=$clock start_worker 8 --fleet "$url" --pace 0.1
  LD_PRELOAD=$clock tune "$work/jumps.db" --trials 40 --seed 9 --fleet "$url" --json >"$work/j1.json" 2>"$work/jumps.err" ||
    fail "clocks that jump"
  LD_PRELOAD=$clock "$tarn" fleet status "$url" >"$work/status" && ! grep -q "heard -" "$work/status" || fail "status: $(cat "$work/status")"
  end_worker 8
fi
start_worker 7 --fleet "$url"
if [ -e "$work/j1.json" ]; then
  tune "$work/still.db" --trials 40 --seed 9 --fleet "$url" --json >"$work/j2.json" || fail "without jumps"
  for db in jumps still; do "$tarn" tune --db "$work/$db.db" --export "$work/$db.txt" >/dev/null || fail "export"; done
  cmp -s "$work/jumps.txt" "$work/still.txt" || fail "clocks that jump change what is stored"
fi

# ---- full disks: one line, and the same command goes on ----
(trap '' XFSZ; ulimit -f 64; says 3 "full\|I/O\|too large" tune "$work/f.db" --trials 120 --fleet "$url") || exit 1
tune "$work/f.db" --trials 120 --fleet "$url" --json >"$work/f1.json" || fail "after a full disk"
tune "$work/g.db" --trials 120 --fleet "$url" --json >"$work/f2.json" || fail "without a full disk"
[ "$(number "$work/f1.json" best)" = "$(number "$work/f2.json" best)" ] || fail "a full disk changes the result"
end_server
sleep 1
kill -TERM "${worker[7]}"
for ((i = 0; i < 100; i++)); do
  alive "${worker[7]}" || break
  sleep 0.1
done
! alive "${worker[7]}" || fail "a worker does not end on SIGTERM while there is no server"
start_server "jetstream { store_dir: \"$work/small\", max_file_store: 200KB }"
model=(examples/digits/digits.onnx --shape n=1)
says 3 "the server has no room left" tune "$work/h.db" --spread --every --per-kernel 500 --trials 2000 --fleet "$url"
end_server

# ---- credentials: users who may say no more than docs/fleet.md says that they need ----
if command -v openssl >/dev/null && command -v python3 >/dev/null; then
  mkdir "$work/creds" && python3 tests/nats_creds.py "$work/creds" || fail "nats_creds.py"
  start_server "jetstream { store_dir: \"$work/owned\" }
$(cat "$work/creds/operator.conf")"
  says 3 "wrong user, password or credentials" "$tarn" fleet status "$url"
  says 3 "wrong user, password or credentials" "$tarn" fleet status "$url" --creds "$work/creds/stranger.creds"
  sed -e 's/^\(SU...\)A/\1B/' -e t -e 's/^\(SU...\)./\1A/' "$work/creds/tuner.creds" >"$work/creds/broken.creds"
  says 3 "" "$tarn" fleet status "$url" --creds "$work/creds/broken.creds"
  start_worker 6 --fleet "$url" --creds "$work/creds/worker.creds"
  model=("$work/mm.tc" --shape M=64 --shape K=48 --shape N=32)
  tune "$work/i.db" --trials 24 --fleet "$url" --creds "$work/creds/tuner.creds" --json >"$work/i.json" || fail "tune with credentials"
  [ "$(number "$work/i.json" trials)" = 24 ] && [ "$(number "$work/i.json" failed)" = 0 ] || fail "credentials: $(cat "$work/i.json")"
  "$tarn" fleet status "$url" --creds "$work/creds/worker.creds" >"$work/status" && grep -q '^  w6' "$work/status" ||
    fail "status with credentials: $(cat "$work/status")"
  says 3 "ermission" tune "$work/k.db" --trials 4 --fleet "$url" --creds "$work/creds/worker.creds"
  end_worker 6
  end_server
fi

# ---- TLS ----
if command -v openssl >/dev/null; then
  for ca in right wrong; do
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=localhost" -addext "subjectAltName=DNS:localhost" \
      -keyout "$work/$ca.key" -out "$work/$ca.pem" 2>/dev/null || fail "openssl"
  done
  start_server "jetstream { store_dir: \"$work/tls\" }
tls { cert_file: \"$work/right.pem\", key_file: \"$work/right.key\" }"
  "$tarn" fleet status "tls://localhost:$port" --tlsca "$work/right.pem" >"$work/out" 2>"$work/tls.err" || fail "TLS"
  says 3 "" "$tarn" fleet status "tls://localhost:$port" --tlsca "$work/wrong.pem"
  says 3 "" "$tarn" fleet status "nats://localhost:$port"
  end_server
fi
exit 0

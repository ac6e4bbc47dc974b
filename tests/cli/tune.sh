#!/usr/bin/env bash
# tune --import and --export: measurements as text, into a store and out of it; those that ship can be read.
source tests/cli/lib.sh "$1"

for file in tune/prices/*.measured.xz; do
  name=$(basename "$file" .measured.xz)
  xz -dc "$file" >"$work/$name" || fail "$file cannot be unpacked"
  [ "$(head -n 1 "$work/$name")" = "tarn-measurements 6" ] || fail "$file holds other measurements than this program's"
  [ -e "tune/prices/$name.hw" ] && [ -e "tune/prices/$name.price" ] || fail "$file without a description and a price"
  [ "$(sed -n 's/^hw //p' "$work/$name")" = "$(sed -n 's/^hw //p; /^$/q' "tune/prices/$name.price")" ] ||
    fail "$file is of other hardware than the price"
done
try 0 tune --import "$work/sapphirerapids" --db "$work/a.db" --json
is measurements "$(grep -c '^[0-9]' "$work/sapphirerapids")"
try 0 tune --export "$work/again" --db "$work/a.db"
cmp "$work/sapphirerapids" "$work/again" || fail "what was imported is not exported"
try 0 tune --import "$work/again" --export "$work/third" --db "$work/b.db"
cmp "$work/again" "$work/third" || fail "one command does not do both"

refused 3 "no such file" -- tune --export "$work/x" --db "$work/none.db"
refused 3 "none" -- tune --import "$work/none" --db "$work/c.db"
echo tarn-measurements 5 >"$work/old"
refused 3 "old:1: " "tarn-measurements 6" -- tune --import "$work/old" --db "$work/d.db"
[ ! -e "$work/none.db" ] && [ ! -e "$work/c.db" ] || fail "a store is left behind"
refused 2 usage -- tune --train-only --export "$work/x"

# What was measured within the limit of time is kept, and learned from.
try 0 tune tests/data/onnx/gemm.onnx --trials 4 --seconds 60 --threads 1 --db "$work/s.db" -o "$work/s.price" --json
[ "$(value measured)" -ge 1 ] || fail "nothing is measured"
try 0 tune --export "$work/s.measured" --db "$work/s.db"
[ "$(grep -c '^[0-9]' "$work/s.measured")" -ge 1 ] || fail "what was measured is not kept"

# Killed, it leaves no folders in /tmp.
left() { compgen -G "/tmp/tarn-measure-$1-*" >/dev/null; }
"$tarn" tune tests/data/onnx/gemm.onnx --db "$work/k.db" -o "$work/k.price" >"$work/out" 2>&1 &
killed=$!
for ((i = 0; i < 600; i++)); do left $killed && break || sleep 0.1; done
left $killed || fail "nothing is measured: $(cat "$work/out")"
kill -KILL $killed
wait $killed 2>/dev/null
for ((i = 0; i < 300; i++)); do left $killed && sleep 0.1 || break; done
left $killed && fail "killed, it leaves $(compgen -G "/tmp/tarn-measure-$killed-*")"
finish

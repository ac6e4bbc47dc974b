#!/usr/bin/env bash
# Every command tells what it takes.
source tests/cli/lib.sh "$1"

try 0 --help
commands=$(awk '/^  [a-z]/ { print $1 }' "$work/out")
for want in compile inspect run check bench kernel explore extract rules proof sim quantize hw tune worker fleet completion; do
  grep -qx "$want" <<<"$commands" || fail "tarn --help does not list $want"
done
for c in $commands; do
  try 0 "$c" --help && cp "$work/out" "$work/help"
  [ ! -s "$work/err" ] || fail "tarn $c --help: something on standard error"
  head -1 "$work/out" | grep -q "^usage: tarn $c " || fail "tarn $c --help: $(head -1 "$work/out")"
  awk 'length > 120 { bad = 1 } END { exit bad }' "$work/out" || fail "tarn $c --help: long lines"
  try 0 help "$c" && { diff "$work/help" "$work/out" || fail "tarn help $c: not what --help says"; }
  try 0 "$c" -h && { diff "$work/help" "$work/out" || fail "tarn $c -h: not what --help says"; }
  refused 2 -- "$c" --no-such-option
  refused 2 usage -- "$c" a b c d e
  awk -v ss=".SS $c" '/^\.S[SH]/ { on = $0 == ss } on' docs/tarn.1 | sed 's/\\-/-/g' >"$work/manual"
  grep -q "^example: tarn $c " "$work/help" || fail "tarn $c --help: no example"
  grep -q "^\.B tarn $c" "$work/manual" || fail "the manual page does not describe $c"
  for o in $(grep -oE '^  (-., )?--[a-z-]+' "$work/help" | grep -oE -- '--[a-z-]+'); do
    [ "$o" = --json ] || grep -qE -- "^\.B .*$o( |$)" "$work/manual" || fail "the manual page does not describe tarn $c $o"
  done
done
if grep -qx tune <<<"$commands"; then
  for x in 0 1.5; do refused 2 "within: above 0 to 1" -- tune --train-only --within $x; done
fi
refused 2 nonsense -- nonsense
refused 2 nonsense -- help nonsense
try 0 -h && grep -q '^usage: tarn COMMAND' "$work/out" || fail "-h"
try 2
try 0 --version
grep -qE '^tarn [0-9]+\.[0-9]+\.[0-9]+$' "$work/out" || fail "--version"
finish

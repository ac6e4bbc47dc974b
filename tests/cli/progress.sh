#!/usr/bin/env bash
# What takes longer than two seconds shows a line on a terminal: stage, count, seconds. Nowhere else.
source tests/cli/lib.sh "$1"

long=("$tarn" rules check --only fusion --samples 1000000000 --seconds 3 --json)
seen() { # TERM: what a terminal gets, a line for each time that it was drawn
  TERM=$1 script -qec "${long[*]} >/dev/null" /dev/null </dev/null | tr '\r' '\n'
}
seen xterm >"$work/seen" || true
grep -qE '^checking rules, [0-9]+ of [0-9]+ rules, [23] s' "$work/seen" || fail "no stage, count and seconds: $(cat "$work/seen")"
! grep -q ', [01] s' "$work/seen" || fail "something is shown before two seconds"
grep -v '^$' "$work/seen" | tail -n 1 | grep -q $'^\e\\[K' || fail "the line stays: $(cat -v "$work/seen")"
seen dumb >"$work/seen" || true
! grep -q 'checking rules,' "$work/seen" || fail "a terminal that cannot move is drawn on"
"${long[@]}" >/dev/null 2>"$work/err" </dev/null || true
! grep -q 'checking rules,' "$work/err" || fail "a file is drawn into"
finish

#!/usr/bin/env bash
# The demo says what it should: all samples right, the same accuracy before and after, fewer kernels, a chain that holds.
source tests/cli/lib.sh "$1"

bash examples/digits/run.sh "$build" >"$work/said" 2>&1 || fail "the demo fails"
cat "$work/said"
[ "$(wc -l <"$work/said")" -le 32 ] || fail "more than a screen"
before=$(awk '/as the model says, no rules/ { print $7 }' "$work/said")
after=$(awk '/with all rules/ { print $4 }' "$work/said")
[ "$after" -lt "$before" ] || fail "$before kernels before, $after after"
grep -q 'all but the family fusion' "$work/said" || fail "no family made a difference"
grep -q 'the model  *(map ' "$work/said" && grep -q '= epilogue  *(epi ' "$work/said" && grep -q ': ok: [0-9]* steps hold' "$work/said" || fail "no chain"
accuracy=$(sed -n 's/.*reference interpreter \([0-9.]*\) %, compiled \([0-9.]*\) %.*/\1 \2/p' "$work/said")
awk '{ exit !($1 >= 98 && $1 == $2) }' <<<"$accuracy" || fail "accuracy: $accuracy"
right=0
for d in 0 1 2 3 4 5 6 7 8 9; do ! grep -q "$d.pgm: $d (" "$work/said" || right=$((right + 1)); done
[ $right = 10 ] || fail "$right of 10 samples right"

# A whole network: fewer kernels, less traffic, the same values.
python3 examples/networks/demo.py "$build" dcgan >"$work/network" 2>&1 || fail "the demo of networks fails: $(tail -n 3 "$work/network")"
cat "$work/network"
figures() { sed -n "s/^  $1  *\([0-9]*\)  *\([0-9.]*\) MB .*/\1 \2/p" "$work/network"; } # LABEL: kernels and megabytes
read -r plain plain_mb < <(figures 'as the model says, no rules')
read -r ruled ruled_mb < <(figures 'with the rules (reassoc)')
awk "BEGIN { exit !($ruled < $plain && $ruled_mb < $plain_mb) }" || fail "$plain kernels, $plain_mb MB before; $ruled, $ruled_mb after"
grep -q '= epilogue  *(epi ' "$work/network" || fail "no chain of the network"
for i in 0 1 2; do try 0 check "$build/demo-networks/dcgan.$i"; done
finish

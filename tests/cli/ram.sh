#!/usr/bin/env bash
# A budget of memory: the program that fits, a table of several, and one line where nothing fits.
source tests/cli/lib.sh "$1"

compiled() { # NAME WORDS…
  local name=$1
  shift
  try 0 compile $digits --shape n=16 --numerics exact --hw x86-64-v3 --price analytic -o "$work/$name" --json "$@"
}
compiled free
most=$(value memory.workspace)
budget=$((most * 2 / 3))
compiled small --ram "${most},$budget"
is ram.0.workspace "$most"
is ram.1.budget "$budget"
[ "$(value memory.workspace)" -le "$budget" ] || fail "the workspace is beyond the budget"
[ "$(value ram.1.workspace)" = "$(value memory.workspace)" ] || fail "the table says something else"
grep "WORKSPACE $(value memory.workspace)$" "$work/small/model.h" >/dev/null || fail "model.h says something else"
for name in free small; do try 0 run "$work/$name" --seed 3 -o "$work/$name.out"; done
cmp "$work"/free.out/*.npy "$work"/small.out/*.npy || fail "the results differ"
try 0 check "$work/small"

try 0 compile $digits --shape n=16 --ram "1M,$((budget / 1024))K" -o "$work/table"
grep 'budget *workspace' "$work/err" >/dev/null || fail "no table"
refused 4 "at most 16 bytes" "too many" "at kernel" -- compile $digits --shape n=16 --ram 16 -o "$work/none"
[ ! -e "$work/none/model.so" ] || fail "a program that does not fit is left"
for word in 1Q K -1 "" 1M, 99999999999999999999 9999999999999M; do
  refused 2 "--ram" "bytes are expected" -- compile $digits --shape n=16 --ram "$word" -o "$work/none"
done
refused 2 "several sizes" -- compile $digits --shape n=1..16 --ram 1M -o "$work/none"
refused 2 "cuda-sm80" -- compile $digits --shape n=16 --hw cuda-sm80 --ram 1M -o "$work/none"
finish

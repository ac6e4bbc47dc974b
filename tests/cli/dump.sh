#!/usr/bin/env bash
# compile --dump, and docs/convolution.md, which shows what it prints.
source tests/cli/lib.sh "$1"

dump() { try 0 compile $digits --shape n=1 --hw x86-64-v3 --price analytic --threads 1 -o "$work/digits" "$@"; }
dump --dump terms,form,phases,graph,schedules,plan
[ "$(grep -c '^;; ' "$work/out")" = 6 ] || fail "$last: six headings are expected"
cp "$work/out" "$work/all"
awk '$0 == "```text" { on = 1; next } $0 == "```" { on = 0 } on' docs/convolution.md >"$work/shown"
[ "$(wc -l <"$work/shown")" -ge 12 ] || fail "docs/convolution.md shows no output"
while IFS= read -r line; do
  grep -qF -- "$line" "$work/all" || fail "docs/convolution.md shows what is not printed: ${line:0:100}"
done <"$work/shown"

# Each by itself, and nothing else on standard output.
for one in terms form phases graph schedules plan; do
  dump --dump $one
  [ "$(grep '^;; ' "$work/out")" = ";; $one" ] || fail "--dump $one prints $(grep '^;; ' "$work/out")"
done
dump
[ ! -s "$work/out" ] || fail "without --dump something is printed"
refused 2 "terms, form" -- compile $digits --shape n=1 --dump plans -o "$work/x"

# A kernel's signature and schedule are taken by tarn kernel, which gives the same plan.
awk '/^;; schedules/ { on = 1 } on && /^\(kernel/ { print; exit }' "$work/all" >"$work/sig"
try 0 kernel "$work/sig" --hw x86-64-v3 --price analytic --top 0
grep -qF "(accumulators 12 lanes 8" "$work/out" || fail "tarn kernel plans another tile"
finish

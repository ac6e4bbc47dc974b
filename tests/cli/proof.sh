#!/usr/bin/env bash
# Proofs: what compile explains is checked by code of its own; a step that is changed, swapped or left out is found.
source tests/cli/lib.sh "$1"

try 0 compile $digits -o "$work/d" --shape n=1 --threads 1 --explain "$work/proof"
try 0 proof check "$work/proof" --json
is schema 1
is ok true
is bad null
steps=$(value steps)
[ "$steps" -gt 20 ] || fail "only $steps steps"
for rule in hoist epilogue; do value rules.$rule >/dev/null; done
try 0 proof check "$work/proof" --replay --json
is ok true
[ "$(value replayed)" -gt 0 ] || fail "nothing was evaluated"
try 0 proof check "$work/proof"
grep -q "^ok: $steps steps hold" "$work/out" || fail "the text says $(head -n 1 "$work/out")"

# Rows of a kernel whose results are all 0 are no constant before the indices are known: they may be out of range.
echo '(compute (map (mod $0 $0)) (nth 1 (tuple (input x ((2 3) (4)) i32)
  (gather 0 (compute (map (mod $0 $0)) (access 1 (const i32 ((2) (4)) 3 1 4 1 5 9 2 6))) (input i ((3 1) ()) i64)))))' >"$work/rows.term"
try 0 compile "$work/rows.term" -o "$work/rows" --explain "$work/chain"
grep -q "rule literals" "$work/chain" && fail "indices behind a constant are not checked"
try 0 proof check "$work/chain"

wrong() { # WHAT: $work/bad must be refused
  cmp -s "$work/proof" "$work/bad" && fail "$1: nothing was changed"
  "$tarn" proof check "$work/bad" --json >"$work/out" 2>"$work/err"
  case $? in
  1) is ok false ;;
  3) says bad: ;;
  *) fail "$1: not found" ;;
  esac
}
sed 's/rule epilogue/rule inline/' "$work/proof" >"$work/bad" && wrong "another rule"
sed '0,/rule epilogue/{/rule epilogue/d}' "$work/proof" >"$work/bad" && wrong "a step left out"
sed '0,/(max /s//(min /' "$work/proof" >"$work/bad" && wrong "another function"
sed '0,/0\.00001/s//0.00002/' "$work/proof" >"$work/bad" && wrong "another constant"
awk '/rule epilogue/ && !done { sub(/<-/, "->") || sub(/->/, "<-"); done = 1 } { print }' "$work/proof" >"$work/bad" && wrong "a step turned round"
head -c 3000 "$work/proof" >"$work/bad" && wrong "half a proof"
: >"$work/bad" && wrong "no proof"
echo 'nonsense' >"$work/bad" && wrong "nonsense"
refused 2 usage -- proof burn "$work/proof"

# A proof of one's own rule needs that rule.
echo '(family mine (rule twice (compute (map (add $0 $0)) ?x) => (compute (map (mul $0 2.0)) ?x)))' >"$work/my.rules"
try 0 explore --rules "$work/my.rules" --prove '(compute (map (add $0 $0)) (input x ((3) ()) f32))' \
  '(compute (map (mul $0 2)) (input x ((3) ()) f32))' --explain "$work/own"
try 0 proof check "$work/own" --rules "$work/my.rules" --replay
try 1 proof check "$work/own"
finish

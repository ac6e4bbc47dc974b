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

# What is said of a constant that is too long to be written is the model's, or it is assumed.
values() { awk -v n="$1" -v m="$2" 'BEGIN { for (i = 0; i < n; i++) printf " %d", (i * 37) % m }'; }
gathered() { # M: a table of numbers below M, through bytes
  echo "(compute (map (add \$0 \$1)) (compute (map (cast i32 \$0)) (compute (map (cast u8 \$0)) (gather 0
    (const i32 ((512 4) ())$(values 2048 "$1")) (input i ((8) ()) i64)))) (input x ((8 4) ()) i32))"
}
gathered 256 >"$work/bytes.term"
gathered 799 >"$work/more.term"
for name in bytes more; do try 0 compile "$work/$name.term" -o "$work/$name" --explain "$work/$name.chain"; done
grep -q 'rule recast' "$work/bytes.chain" || fail "recast is not used"
hash() { grep -o 'hash "[^"]*"' "$work/$1.chain" | head -n 1; }
try 0 proof check "$work/bytes.chain" --strict --model "$work/bytes.term"
try 1 proof check "$work/bytes.chain" --strict
grep -q 'step 10: the constant [0-9a-f]* lies between 0 and 255' "$work/out" || fail "the range is not assumed"
try 0 proof check "$work/bytes.chain"
sed "s/$(hash bytes)/$(hash more)/" "$work/bytes.chain" >"$work/forged"
try 1 proof check "$work/forged" --strict --replay --model "$work/more.term"
grep -q 'the elements of c lie between 0 and 798, not 0 and 255' "$work/out" || fail "a wrong range"
try 1 proof check "$work/forged" --strict
sed 's/range 0 255/range 0 798/' "$work/forged" >"$work/forged.2"
try 1 proof check "$work/forged.2" --strict --model "$work/more.term"
grep -q 'WRONG at step 10' "$work/out" || fail "not found at its step"

# A proof of one's own rule needs that rule.
echo '(family mine (rule twice (compute (map (add $0 $0)) ?x) => (compute (map (mul $0 2.0)) ?x)))' >"$work/my.rules"
try 0 explore --rules "$work/my.rules" --prove '(compute (map (add $0 $0)) (input x ((3) ()) f32))' \
  '(compute (map (mul $0 2)) (input x ((3) ()) f32))' --explain "$work/own"
try 0 proof check "$work/own" --rules "$work/my.rules" --replay
try 1 proof check "$work/own"
finish

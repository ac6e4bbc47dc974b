#!/usr/bin/env bash
# tarn equal: proved, different, unknown; terms and models.
source tests/cli/lib.sh "$1"
x='(input x ((2 3) ()) f32)'

try 0 equal "(transpose (1 0) (transpose (1 0) $x))" "$x" --explain "$work/chain"
grep -q '^equal: proved' "$work/out" || fail "not proved"
try 0 proof check "$work/chain" --replay
try 0 equal $digits $digits --shape n=1 --explain "$work/chain"
try 1 equal "(compute reduceMax (access 1 $x))" "(compute reduceSum (access 1 $x))"
grep -q '^different: element' "$work/out" && grep -q '^  x = ' "$work/out" || fail "no inputs that differ"
try 1 equal "$x" "(transpose (1 0) $x)"
grep -q 'another type' "$work/out" || fail "types"
try 4 equal "(compute (map (mul \$0 (add \$0 1))) $x)" "(compute (map (add (mul \$0 \$0) \$0)) $x)"
grep -q '^unknown' "$work/out" || fail "not unknown"
refused 3 -- equal "(transpose" "$x"
finish

#!/usr/bin/env bash
# tarn equal: proved, different, unknown; terms and models.
source tests/cli/lib.sh "$1"
x='(input x ((2 3) ()) f32)'

try 0 equal "(transpose (1 0) (transpose (1 0) $x))" "$x" --explain "$work/chain"
grep -q '^equal: proved' "$work/out" || fail "not proved"
try 0 proof check "$work/chain" --replay
try 0 equal $digits $digits --shape n=1 --explain "$work/chain"
# What equal proves holds strictly, and the proof has the values that it needs.
numbers() { # ROWS COLUMNS STEP-OF-A-ROW STEP-OF-A-COLUMN
  awk -v r="$1" -v c="$2" -v a="$3" -v b="$4" \
    'BEGIN { for (i = 0; i < r; i++) for (j = 0; j < c; j++) printf " %d", (a * i + b * j) % 97 }'
}
large() { echo "(const f32 (($1 $2) ())$(numbers "$@"))"; }
held() { # A B: proved, whichever is asked first
  echo "$1" >"$work/a.term"
  echo "$2" >"$work/b.term"
  for pair in "a b" "b a"; do
    set -- $pair
    try 0 equal "$work/$1.term" "$work/$2.term" --explain "$work/chain"
    try 0 proof check "$work/chain" --strict --replay
    try 0 proof check "$work/chain" --strict --model "$work/$1.term"
    try 1 proof check "$work/chain" --strict --model "$work/$2.term"
  done
}
held "(compute (map (add \$0 \$1)) (transpose (1 0) $(large 64 60 5 7)) (input x ((60 64) ()) f32))" \
  "(compute (map (add \$0 \$1)) $(large 60 64 7 5) (input x ((60 64) ()) f32))"
held "(concat 0 (input x ((2 32) ()) f32) (concat 0 $(large 40 32 5 7) $(large 40 32 3 8)))" \
  "(concat 0 (input x ((2 32) ()) f32) (const f32 ((80 32) ())$(numbers 40 32 5 7)$(numbers 40 32 3 8)))"
held "(compute (map (mul \$0 \$1)) (compute (map (exp \$0)) (slice 0 0 40 $(large 60 64 5 7))) (input x ((40 64) ()) f32))" \
  "(compute (map (mul \$0 \$1)) (compute (map (exp \$0)) $(large 40 64 5 7)) (input x ((40 64) ()) f32))"
try 1 equal "(compute reduceMax (access 1 $x))" "(compute reduceSum (access 1 $x))"
grep -q '^different: element' "$work/out" && grep -q '^  x = ' "$work/out" || fail "no inputs that differ"
try 1 equal "$x" "(transpose (1 0) $x)"
grep -q 'another type' "$work/out" || fail "types"
try 4 equal "(compute (map (mul \$0 (add \$0 1))) $x)" "(compute (map (add (mul \$0 \$0) \$0)) $x)"
grep -q '^unknown' "$work/out" || fail "not unknown"
refused 3 -- equal "(transpose" "$x"
finish

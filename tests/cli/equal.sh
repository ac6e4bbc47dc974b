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
# What differs only for large, negative or equal values, with few numbers that show it.
lo="(compute (map (max \$0 0)) $x)"
apart() { # A B [OPTIONS]
  try 1 equal "$@"
  grep -q '^different: element' "$work/out" || fail "not different: $*"
}
apart "$lo" "(compute (map (min (max \$0 0) 60)) $x)"
apart "$lo" "(compute (map (min (max \$0 0) 1e30)) $x)"
apart "$lo" "(compute (map (max \$0 -50)) $x)"
apart "(compute (map (select (lt \$0 1) \$0 1)) $x)" "(compute (map (select (le \$0 1) \$0 2)) $x)"
apart "(compute (map (sqrt (add (mul \$0 \$0) 1e-5))) $x)" "(compute (map (sqrt (add (mul \$0 \$0) 1e-6))) $x)"
ones=$(grep -c . <<<"$(sed -n 's/^  x = //p' "$work/out" | tr ' ' '\n' | grep -vx 0)")
[ "$ones" -le 2 ] || fail "a witness of $ones numbers other than 0"
# Equal in real arithmetic, not to the bit.
try 0 equal "(compute (map (mul (mul \$0 0.3) (erf \$0))) $x)" "(compute (map (mul (mul \$0 (erf \$0)) 0.3)) $x)"
[ "$(cat "$work/out")" = "equal: proved" ] || fail "more than a verdict"
apart "(compute (map (mul (mul \$0 0.3) (erf \$0))) $x)" "(compute (map (mul (mul \$0 (erf \$0)) 0.3)) $x)" --numerics exact
refused 2 -- equal "$x" "$x" --numerics approx
# Where it is unknown: by node, with the parts as files, which are unknown again.
cat >"$work/a.tc" <<'EOF'
def f(float(N) X) -> (T, Y) {
  T(i) = exp(X(i)) * 2
  Y(i) = T(i) * (T(i) + 1)
}
EOF
sed 's/T(i) \* (T(i) + 1)/T(i) * T(i) + T(i)/; s/exp(X(i)) \* 2/2 * exp(X(i))/' "$work/a.tc" >"$work/b.tc"
try 4 equal "$work/a.tc" "$work/b.tc" --shape N=8 --parts "$work/part"
grep -q 'first node not proved of B: Y' "$work/out" || fail "no node is named"
grep -q '1 of 2 pairs' "$work/out" || fail "T is not proved"
try 4 equal "$work/part-a.tarn" "$work/part-b.tarn"
try 4 equal "$work/a.tc" "$work/b.tc" --shape N=8 --json
is verdict unknown
try 1 equal "$x" "(transpose (1 0) $x)"
grep -q 'another type' "$work/out" || fail "types"
try 4 equal "(compute (map (mul \$0 (add \$0 1))) $x)" "(compute (map (add (mul \$0 \$0) \$0)) $x)"
grep -q '^unknown' "$work/out" || fail "not unknown"
refused 3 -- equal "(transpose" "$x"
finish

#!/usr/bin/env bash
# Growth of e-graphs against exact counts: matches, e-nodes and e-classes after each iteration, which do not depend on
# the engine. Then goals, proofs and files.
source tests/cli/lib.sh "$1"
at=bench/egraph

# counts RULES TERM OPTIONS: "matches nodes classes" for each iteration
counts() {
  local rules=$1 term=$2 n i paths=()
  shift 2
  try 0 explore --free --rules $at/$rules.rules $at/$term.term --count-matches --cost none --json "$@" || return
  n=$(value 'iterations.#')
  for ((i = 0; i < n; i++)); do paths+=(iterations.$i.matches iterations.$i.nodes iterations.$i.classes); done
  "$json" "${paths[@]}" <"$work/out" | paste -sd ' \n' - | paste -d ' ' - - - 2>/dev/null | xargs -n 3
}
# expect WHAT "M…" "N…" "C…" -- counts' arguments
expect() {
  local what=$1 want got
  want=$(paste -d ' ' <(tr ' ' '\n' <<<"$2") <(tr ' ' '\n' <<<"$3") <(tr ' ' '\n' <<<"$4"))
  shift 5
  got=$(counts "$@")
  [ "$got" = "$want" ] || { fail "$what"; diff <(echo "$want") <(echo "$got") | head -6; }
}

expect assoc7 "11 47 229 897 3187 8259 11682 12138" "29 79 276 803 1652 1943 1939 1939" \
  "18 38 108 210 273 176 127 127" -- ac assoc7
is stop saturated
expect assoc8 "13 57 313 1505 6683 23492 45072 52666 52670" "34 96 382 1434 3929 5871 6090 6058 6058" \
  "21 46 153 419 738 579 272 255 255" -- ac assoc8
expect assoc9 "15 67 398 2321 12592 58074 152056 220964 223290" "39 113 490 2293 8233 16282 19202 18669 18669" \
  "24 54 199 736 1766 1962 921 511 511" -- ac assoc9
m="20 64 129 268 627 1495 3453"
n="69 118 208 389 784 1576 3160"
c="50 71 116 197 361 666 1347"
expect "pure, ten iterations" "$m 7797 23804 117203" "$n 8113 28303 136446" "$c 3576 12445 58464" -- pure math7 --iters 10
expect "pure, backoff" "$m 2441 3250 2704 1119 1215 1309 1309 7088 4190 2610 1858 1916 1943" \
  "$n 5676 10234 13106 13386 13666 13958 13958 20755 22690 23653 24075 24248 24329" \
  "$c 2713 5559 7190 7375 7559 7757 7757 11374 12457 13028 13301 13416 13470" -- \
  pure math7 --iters 20 --scheduler backoff
expect "pure, two threads" "$m" "$n" "$c" -- pure math7 --iters 7 --threads 2

# Limits are hard and leave a result.
try 0 explore --free --rules $at/pure.rules $at/math7.term --nodes 5000 --json
is stop nodes
[ "$(value nodes)" -le 5000 ] || fail "more e-nodes than the limit"
is 'best.#' 7
is best.0.cost 4
is best.6.cost 15

# Goals and proofs; 1 when the saturated graph says no, 4 when a limit struck first.
try 0 explore --free --rules $at/ac.rules $at/assoc7.term --goal "(+ (+ (+ (+ (+ (+ 7 6) 5) 4) 3) 2) 1)" --json
is goal true
is stop goal
try 1 explore --free --rules $at/ac.rules --prove "(+ a b)" "(+ a c)" --json
is proof.found false
try 4 explore --free --rules $at/pure.rules --iters 2 --prove "(* a (+ b c))" "(+ c d)"
try 0 explore --free --rules $at/pure.rules --prove "(+ a (+ b 0))" "(+ b a)" --json --explain "$work/chain"
is proof.found true
is 'proof.steps.#' 2
is proof.steps.1.term "(+ b a)"
grep -q '(step zero-add forward (+ b a))' "$work/chain" || fail "--explain writes no chain"

# Equal input, equal bytes; the written graph is one that extract reads.
for k in 1 2; do
  try 0 explore --free --rules $at/ac.rules $at/assoc7.term --egraph "$work/e$k.json" --dot "$work/e$k.dot"
done
cmp "$work/e1.json" "$work/e2.json" && cmp "$work/e1.dot" "$work/e2.dot" || fail "two runs write different graphs"
grep -q '^digraph' "$work/e1.dot" || fail "--dot"
try 0 extract "$work/e1.json" --method tree --json
is tree_cost 13
try 0 extract "$work/e1.json" --method exact --json -o "$work/selection"
is dag_cost 13
is optimal true
"$json" 'choices.#' <"$work/selection" >/dev/null || fail "extract -o writes no selection"
mkdir "$work/graphs"
cp "$work/e1.json" "$work/graphs"
try 0 extract --compare "$work/graphs" --methods tree,greedy --json
is 'results.#' 2
is results.1.dag_cost 13

try 0 explore --free --rules $at/ac.rules $at/assoc7.term --html "$work/page.html"
page "$work/page.html" 1939 'Stopped: saturated'

# Typed terms.
echo '(transpose (1 0) (transpose (1 0) (input x ((4 8) ()) f32)))' >"$work/t.term"
try 0 explore "$work/t.term" --json
is 'best.#' 1
try 0 explore "$work/t.term" --kernel --egraph "$work/t.json" --json
try 0 extract "$work/t.json" --json
finish

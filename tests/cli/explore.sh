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

# Rules whose file declares analyses: constants folded and pruned, free variables, fresh names, what must hold.
last() { counts "$@" | tail -n 1; } # the last row
expect "math, six iterations" "95 363 1206 2636 7581 28944" "137 321 611 1420 3643 10397" "53 100 194 438 1176 3939" -- \
  math math7 --iters 6
expect "five, ten iterations" "26 86 208 307 472 604 847 1198 4502 35376" "38 65 85 120 148 185 211 472 2089 14191" \
  "16 16 20 27 32 35 37 112 536 4096" -- math five --iters 10
expect "harder" "33 105 330 723 1125 920 1293 0" "42 87 165 259 211 276 409 409" "18 30 60 75 41 54 90 90" -- \
  math harder --iters 60 --scheduler backoff --goal "(* x (- (* 3 x) 14))"
is goal true
row() { local got; got=$(last "${@:3}"); [ "$got" = "$2" ] || fail "$1: $got, expected $2"; }
row "ints, eight iterations" "299888 211705 86108" math ints --iters 8
row "five, backoff" "14030 45188 7012" math five --iters 40 --scheduler backoff
# The goal may hold variables; the e-graphs of lambda terms are to be within a tenth of these.
near() { # WHAT ITERATIONS NODES CLASSES LEAST -- counts' arguments
  local n
  try 0 explore --free --rules $at/lambda.rules $at/$1.term --iters 60 --scheduler backoff --goal "$6" --json || return
  n=$(value 'iterations.#')
  [ "$n" = "$2" ] || fail "$1: the goal is there in iteration $n, expected $2"
  awk -v a="$(value nodes)" -v b="$3" -v c="$(value classes)" -v d="$4" \
    'BEGIN { exit !(a <= 1.1 * b && b <= 1.1 * a && c <= 1.1 * d && d <= 1.1 * c) }' || fail "$1: sizes"
  is goal true
  is best.0.cost "$5"
  prove_best lambda "$1" --iters "$2" --scheduler backoff
}
# What a file's first term became is proved, and the chain is checked by terms alone.
prove_best() { # RULES TERM OPTIONS
  local rules=$at/$1.rules best
  best=$(value best.0.term)
  try 0 explore --free --rules "$rules" --prove "$(sed 's/;.*//' "$at/$2.term" | tr -s ' \n' '  ')" "$best" --cost none \
    --explain "$work/chain" "${@:3}" && try 0 proof check "$work/chain" --free --rules "$rules"
}
near compose 18 284 61 6 '(lam ?x (+ (var ?x) 7))'
near if-elim 5 19 8 5 '(+ (var a) (var b))'
near fib 57 14582 4996 1 3
near repeat 59 32636 6825 6 '(lam ?x (+ (var ?x) 2))'
# A rule of two roots; terms that are given to be equal.
row contrapositive "0 14 6" prop contrapositive --no-rules chain --goal "(-> (~ y) (~ x))"
row chain "34 31 12" prop chain --iters 20

# Conditional rules and folded constants are proved, step by step.
try 0 explore --free --rules $at/math.rules --prove "(/ (* 6 x) (+ 1 2))" "(* x 2)" --json --iters 12
is proof.found true
[[ $(value 'proof.steps.#') -le 6 ]] || fail "a proof of $(value 'proof.steps.#') steps"
grep -q '"rule": "analysis"' "$work/out" || fail "no constant was folded in the proof"
try 1 explore --free --rules $at/ac.rules --prove "(+ a b)" "(+ a a)"
# A phase that names what is not there is refused; what was left out is known.
printf '(rule up (f ?x) => (g ?x)) (rule down (g ?x) => (f ?x))\n(phases (one (up)) (two (downn)))' >"$work/p.rules"
try 3 explore --free --rules "$work/p.rules" --prove "(f a)" "(g a)"
grep -q "p.rules:2:25: no rule or family is called downn" "$work/err" || fail "a phase of nothing: $(cat "$work/err")"
sed -i s/downn/down/ "$work/p.rules"
try 0 explore --free --rules "$work/p.rules" --prove "(f a)" "(g a)" --no-rules down
grep -q warning "$work/err" && fail "a warning of what is in a phase: $(cat "$work/err")"
# A rule in no phase is named, at either level.
sed -i 's/ (two (down))//' "$work/p.rules"
try 0 explore --free --rules "$work/p.rules" --prove "(f a)" "(g a)"
grep -q "p.rules:1: no phase names rule down or its family p; it runs before the first" "$work/err" || fail "no word of a rule in no phase"
printf '(phases (one (a)) (two (zz)))\n(family a (rule r (squeeze ?i ?x) => ?x))(family b (rule s (squeeze ?i ?x) => ?x))' >"$work/p.rules"
try 3 explore examples/rules/product.term --only-rules "$work/p.rules"
grep -q "p.rules:1:24: no rule or family is called zz" "$work/err" || fail "a typed phase of nothing: $(cat "$work/err")"
sed -i 's/ (two (zz))//' "$work/p.rules"
try 0 explore examples/rules/product.term --only-rules "$work/p.rules"
grep -q "p.rules:2: no phase names rule s or its family b" "$work/err" || fail "no word of a typed rule in no phase"
# The chain is checked without the e-graph; each of these is not it any more.
try 0 explore --free --rules $at/math.rules --prove "(/ (* 6 x) (+ 1 2))" "(* x 2)" --iters 12 --explain "$work/chain"
try 0 proof check "$work/chain" --free --rules $at/math.rules --json
is ok true
for edit in s/div-canon/comm-mul/ s/forward/backward/ 's/(\* x 2)/(* x 3)/' 's/ 6 / 7 /' /pow-recip/d 3d s/analysis/given-not/ 's/(+ 1 2)/(+ 2 1)/2'; do
  sed "$edit" "$work/chain" >"$work/tampered"
  cmp -s "$work/chain" "$work/tampered" || try 1 proof check "$work/tampered" --free --rules $at/math.rules
done
try 0 explore --free --rules $at/math.rules --prove "(d x (- (pow x 3) (* 7 (pow x 2))))" "(* x (- (* 3 x) 14))" --iters 12 --explain "$work/chain"
try 0 proof check "$work/chain" --free --rules $at/math.rules
# What a step takes for granted is said; what its terms decide is not; what they contradict is wrong.
assumes() { # CODE "WHAT…" RULES PROOF
  local rules=$at/$3.rules
  [ -e "$rules" ] || rules=$work/$3.rules
  echo "$4" >"$work/chain"
  try "$1" proof check "$work/chain" --free --rules "$rules" --json || return
  local n got=
  n=$("$json" 'assumed.#' <"$work/out" 2>"$work/none") || n=0
  for ((i = 0; i < ${n:-0}; i++)); do got+="$(value assumed.$i);"; done
  [ "$got" = "$2" ] || fail "$4 assumes $got, expected $2"
}
echo '(rule r (f ?x ?y) => b :if (acyclic ?y ?x))' >"$work/acyclic.rules"
assumes 0 "(not (eq x 0));" math "(proof (pow x 0) (step pow0 forward 1))"
assumes 0 "" math "(proof (pow (+ 2 3) 0) (step pow0 forward 1))"
assumes 1 "" math "(proof (pow (- 3 3) 0) (step pow0 forward 1))"
assumes 0 "(not (same y x));" math "(proof (d x y) (step d-constant forward 0))"
assumes 0 "" math "(proof (d x x) (step d-variable forward 1))"
assumes 1 "" math "(proof (d x x) (step d-constant forward 0))"
assumes 0 "(not (same x y));" lambda "(proof (let x 3 (lam y (var x))) (step let-lam-diff forward (lam y (let x 3 (var x)))))"
assumes 0 "(not (same x y));(not (in y free (var z)));" lambda \
  "(proof (let x (var z) (lam y (var x))) (step let-lam-diff forward (lam y (let x (var z) (var x)))))"
assumes 1 "" acyclic "(proof (f (g a) a) (step r forward b))"
assumes 0 "(acyclic (g a) a);" acyclic "(proof (f a (g a)) (step r forward b))"
assumes 1 "" lambda "(proof (let x 3 (lam y (var x))) (step let-lam-rename forward (lam _1 (let x 3 (let y (var _1) (var x))))))"
# What a condition asks to be equal is a lemma, which the checker wants before the step; without it, it is assumed.
prove_if() { # TERM LEAST: then the lemma's first step is gone, its rule another, the lemma behind the proof, the lemma gone
  try 0 explore --free --rules $at/lambda.rules --scheduler backoff --prove "$1" "$2" --cost none --explain "$work/if" --json || return
  [ "$(value 'proof.lemmas.#')" -ge 1 ] || fail "no lemma for if-elim"
  try 0 proof check "$work/if" --free --rules $at/lambda.rules --json
  ! grep -q '(equal' "$work/out" || fail "(equal …) is assumed: $(cat "$work/out")"
  sed '0,/(step/{/(step/d}' "$work/if" >"$work/tampered"
  try 1 proof check "$work/tampered" --free --rules $at/lambda.rules
  sed 's/let-add/let-eq/' "$work/if" >"$work/tampered"
  try 1 proof check "$work/tampered" --free --rules $at/lambda.rules
  { sed -n '/^(proof/,$p' "$work/if"; sed '/^(proof/,$d' "$work/if"; } >"$work/tampered"
  try 3 proof check "$work/tampered" --free --rules $at/lambda.rules
  assumes 0 "(equal $3);" lambda "$(sed -n '/^(proof/,$p' "$work/if")"
}
prove_if "(if (= (var a) (var b)) (+ (var a) (var a)) (+ (var a) (var b)))" "(+ (var a) (var b))" \
  "(let a (var b) (+ (var a) (var a))) (let a (var b) (+ (var a) (var b)))"
# A fresh name is none that was read, also where the graph would have taken it.
echo '(rule ab (lam ?x ?b) => (lam (:fresh _) (sub ?x (:fresh _) ?b)))' >"$work/ab.rules"
echo '(pair (lam a (f a _1)) (lam a (f a _2)))' >"$work/ab.term"
try 0 explore --free --rules "$work/ab.rules" "$work/ab.term" --iters 1 --cost none --egraph "$work/ab.json"
[ "$(grep -o '"_[0-9]*"' "$work/ab.json" | sort -u | wc -l)" = 4 ] || fail "a fresh name is not new"
# The other roots of a rule are proved; what was given is said, and counts with --strict.
printf '%s\n' '(rule base (and (= ?t true) (= ?t (edge ?a ?b))) => (and (= ?t (path ?a ?b))))' \
  '(rule step (and (= ?t true) (= ?t (path ?a ?b)) (= ?t (edge ?b ?c))) => (and (= ?t (path ?a ?c))))' >"$work/path.rules"
printf '(:equal (edge %s) true)\n' "1 2" "2 3" "3 4" "4 1" >"$work/path.term"
try 0 explore --free --rules "$work/path.rules" "$work/path.term" --prove "(path 2 1)" true --explain "$work/path"
try 0 proof check "$work/path" --free --rules "$work/path.rules" --json
[ "$(value 'assumed.#')" = 3 ] || fail "more is assumed than was given: $(cat "$work/out")"
is assumed.0 "(given (edge 2 3) true)"
try 1 proof check "$work/path" --free --rules "$work/path.rules" --strict
assumes 0 "(= true (path 4 ...));(= true (edge ... 1));" path "(proof (path 4 1) (step step backward true))"
# That the first root equals its least term, when nothing else is to be proved.
try 0 explore --free --rules $at/math.rules $at/harder.term --iters 4 --explain "$work/chain" --json
grep -qF "(proof $(head -1 $at/harder.term | sed 's/;.*//')" "$work/chain" || fail "--explain of the least term"
try 0 proof check "$work/chain" --free --rules $at/math.rules
# A rule may hide what it matched, or take terms out of the graph.
printf '%s\n' '(rule shift (* ?x 2) => (shift ?x 1) :subsume true)' '(rule swap (* ?a ?b) => (* ?b ?a))' >"$work/hide.rules"
echo '(* a 2)' >"$work/hide.term"
try 0 explore --free --rules "$work/hide.rules" "$work/hide.term" --cost "shift=9" --json --egraph "$work/hide.json"
is best.0.term "(* 2 a)"
grep -q '"op":"\*".*"subsumed":true' "$work/hide.json" || fail "a rule does not subsume what it matched"
try 0 explore --free --rules "$work/hide.rules" "$work/hide.term" --no-rules swap --cost "shift=9" --json
is best.0.term "(shift a 1)"
printf '%s\n' '(rule step (state (s ?n)) => (:add (state ?n)))' '(rule forget (and (= ?x (state (s ?n))) (= ?y (state ?n))) => (:delete (state (s ?n))))' >"$work/delete.rules"
echo '(state (s (s (s z))))' >"$work/delete.term"
try 0 explore --free --rules "$work/delete.rules" "$work/delete.term" --cost none --egraph "$work/delete.json"
[ "$(grep -o '"op":"state"' "$work/delete.json" | wc -l)" = 1 ] || fail "a rule does not delete terms"
printf '(rule r ?x => (f ?x) :demand always :subsume true)' >"$work/hide.rules"
try 3 explore --free --rules "$work/hide.rules" "$work/hide.term" && says hide.rules "no node that could be subsumed"
# Rows of operands may be split in several ways.
echo '(rule sort (sum ?*xs ?x ?y ?*ys) => (sum ?*xs ?y ?x ?*ys))' >"$work/sort.rules"
try 0 explore --free --rules "$work/sort.rules" --prove "(sum a b c d)" "(sum d c b a)" --explain "$work/chain"
try 0 proof check "$work/chain" --free --rules "$work/sort.rules" --strict
# A long chain takes what its steps change: terms are named where all of them would be too much.
count() { for ((i = 0; i < $1; i++)); do printf '(+ a '; done; printf b; printf ')%.0s' $(seq $1); }
printf '(rule z (z ?x) => (s ?x))\n(rule s (+ a ?x) => (+ ?x a))\n' >"$work/long.rules"
try 0 explore --free --rules "$work/long.rules" --prove "$(count 400)" "$(count 400 | sed 's/(+ a /(+ /g; s/)/ a)/g')" --explain "$work/chain" --iters 3 --nodes 100000
[ "$(wc -c <"$work/chain")" -lt 100000 ] || fail "a chain of $(wc -c <"$work/chain") bytes"
grep -q '^(node %1 ' "$work/chain" || fail "a long chain names no terms"
try 0 proof check "$work/chain" --free --rules "$work/long.rules" --strict
# Long chains are short ones in the end: at most so many steps, each of which holds.
proved() { # MOST RULES A B OPTIONS
  local most=$1 rules=$at/$2.rules
  try 0 explore --free --rules "$rules" --prove "$3" "$4" --cost none --json --explain "$work/chain" "${@:5}" || return
  [ "$(value 'proof.steps.#')" -le "$most" ] || fail "a proof of $(value 'proof.steps.#') steps"
  try 0 proof check "$work/chain" --free --rules "$rules"
}
proved 7 ac "(+ 1 (+ 2 (+ 3 (+ 4 (+ 5 (+ 6 (+ 7 (+ 8 9))))))))" "(+ (+ (+ (+ (+ (+ (+ (+ 1 2) 3) 4) 5) 6) 7) 8) 9)"
proved 19 ac "(+ 1 (+ 2 (+ 3 (+ 4 (+ 5 (+ 6 (+ 7 (+ 8 9))))))))" "(+ 9 (+ 8 (+ 7 (+ 6 (+ 5 (+ 4 (+ 3 (+ 2 1))))))))"
proved 17 math "(* (+ x y) (+ x y))" "(+ (* x x) (+ (* 2 (* x y)) (* y y)))" --iters 10
proved 45 math "(d x (- (pow x 3) (* 7 (pow x 2))))" "(* x (- (* 3 x) 14))" --iters 12
# Conditions that hold because of what a class is known to be: the chain shows it.
proved 1000 lambda "$(sed 's/;.*//' $at/fib.term | tr -s ' \n' '  ')" 3 --iters 60 --scheduler backoff

# Two values in one class: which rule did it, and a chain from the one value to the other that the checker passes.
conflict() { # VALUE VALUE CULPRIT TERM RULES
  printf '(analysis v constant ((+ ?a ?b) (add ?a ?b)) ((* ?a ?b) (mul ?a ?b)))\n%s' "$5" >"$work/c.rules"
  echo "$4" >"$work/c.term"
  rm -f "$work/chain"
  try 3 explore --free --rules "$work/c.rules" "$work/c.term" --cost none --json --explain "$work/chain" || return
  grep -q "made equal by $3" "$work/err" || fail "conflict: $(cat "$work/err")"
  is stop conflict
  is conflict.from "$1"
  [ "$(value "conflict.steps.$(($(value 'conflict.steps.#') - 1)).term")" = "$2" ] || fail "conflict: the chain does not end in $2"
  try 0 proof check "$work/chain" --free --rules "$work/c.rules"
  sed 's/backward/forward/' "$work/chain" >"$work/tampered"
  try 1 proof check "$work/tampered" --free --rules "$work/c.rules"
}
conflict 8 14 good "(double (+ 3 4))" "(rule bad (double ?x) => (+ ?x 1)) (rule good (double ?x) => (* 2 ?x))"
conflict 1 2 congruence "(p (f a) (f b))" "(rule one (f a) => 1) (rule two (f b) => 2) (rule same (p ?x (f ?y)) => (q a b)) (rule q a => b)"
conflict 5 4 congruence "(+ a 1)" "(rule three a => 3) (rule five (+ a 1) => 5)"
printf 'set cost none\nrules %s\n(+ a 1)\nrun\n' "$work/c.rules" >"$work/session"
"$tarn" explore --free - <"$work/session" >"$work/out" 2>"$work/err" && fail "a session with a conflict ends with 0"
grep -q "in conflict in" "$work/out" || fail "a session does not explain a conflict: $(cat "$work/out" "$work/err")"

# wrong WORD… : the rules on standard input are refused, with file, line and reason.
wrong() {
  cat >"$work/w.rules"
  try 3 explore --free --rules "$work/w.rules" $at/assoc7.term && says w.rules: "$@"
}
wrong ":1:" "?b is not bound" <<<'(rule r (f ?a) => (g ?b))'
wrong ":2:" "matches every term" <<<$'; a comment\n(rule r ?a => (+ ?a 0))'
wrong ":1:" "never ends" "(h ?x)" <<<'(rule r (f ?x) => (g (f (h ?x))))'
wrong ":1:" "never ends" <<<'(rule r (f ?x ?y) => (f ?y (h ?x)))'
echo '(rule r (f ?x) => (g (f (h ?x))))(rule s (h (h ?x)) => ?x)' >"$work/w.rules" # not obviously endless
try 0 explore --free --rules "$work/w.rules" $at/assoc7.term
wrong ":1:" "same" <<<'(rule r (f ?x) => (f ?x))'
wrong ":1:" "no (analysis" <<<'(rule r (f ?x) => ?x :if (constant ?x))'
wrong ":1:" "no function or predicate is called wide" <<<'(rule r (f ?x) => ?x :if (wide ?x))'
wrong ":1:" "same has 2 arguments" <<<'(rule r (f ?x) => ?x :if (same ?x))'
wrong ":2:" "there is a rule r already" <<<$'(rule r (f ?x) => ?x)\n(rule r (g ?x) => ?x)'
wrong ":1:" ":if, :when" <<<'(rule r (f ?x) => ?x :where (?y 1))'
wrong ":2:" "an analysis of constants already" <<<$'(analysis a constant)\n(analysis b constant)'
wrong ":1:" "of sets" <<<$'(rule r (f ?x) => ?x :if (in ?x free ?x))'
wrong ":1:" "true and false" <<<$'(analysis a constant ((< ?a ?b) (truth (lt ?a ?b))))'

# Rules on demand fire where something asks for them; phases come one after the other.
cat >"$work/d.rules" <<'R'
(rule split ?x => (half (double ?x)) :demand (want ?x))
(rule up (f ?x) => (g ?x))
(rule again (g ?x) => (f (s ?x)) :grows true)
(rule down (s (s ?x)) => ?x)
(phases (one (up)) (two (again) :iterations 1) (three (up down)))
R
echo '(pair (f a) (f b) (want b))' >"$work/d.term"
try 0 explore --free --rules "$work/d.rules" "$work/d.term" --json --egraph "$work/d.json"
is stop saturated
grep -q '"half"' "$work/d.json" || fail "a rule on demand did not fire"
[ "$(grep -c '"op": *"double"' "$work/d.json")" = 1 ] || fail "a rule on demand fired elsewhere"
is rules.2.applied 2

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
# And one that explore goes on with: as if it had not been written down in between; where it does not hold, file and reason.
graph() { # TEXT: a graph of another program
  echo "$1" >"$work/other.json"
}
try 0 explore --free --rules $at/pure.rules $at/math7.term --iters 7 --egraph "$work/seven.json"
try 0 explore --free --rules $at/pure.rules "$work/seven.json" --iters 2 --json
is iterations.0.nodes 8113
is iterations.1.nodes 28303
is iterations.1.classes 12445
is 'best.#' 7
graph '{"root_eclasses": ["two"], "class_data": {}, "nodes": {"n1": {"children": ["n0"], "eclass": "two", "op": "f"}, "n0": {"op": "a", "children": [], "eclass": "one", "cost": 2},
  "n2": {"op": "b", "eclass": "two"}, "n3": {"op": "g", "children": ["n3"], "eclass": "three"}}}'
try 0 explore --free --rules $at/ac.rules "$work/other.json" --prove "(f a)" b --json --explain "$work/chain"
is nodes 3
is best.0.term b
is proof.steps.0.rule given
cp "$work/err" "$work/left"
try 0 proof check "$work/chain" --free --rules $at/ac.rules --json
is assumed.0 "(given (f a) b)"
grep -q "1 e-nodes of no finite term" "$work/left" || fail "a cycle is left out silently"
bad_graph() { # REASON TEXT
  graph "$2"
  try 3 explore --free --rules $at/ac.rules "$work/other.json" && says other.json "$1"
}
bad_graph "node a: child x is not a node" '{"nodes": {"a": {"op": "f", "children": ["x"], "eclass": "1"}}}'
bad_graph "node a: defined twice" '{"nodes": {"a": {"op": "f", "eclass": "1"}, "a": {"op": "g", "eclass": "1"}}}'
bad_graph "node a: no eclass" '{"nodes": {"a": {"op": "f"}}}'
bad_graph ":2: " $'{"nodes":\n {"a" {"op": "f", "eclass": "1"}}}'
bad_graph "without a term" '{"nodes": {"a": {"op": "f", "children": ["a"], "eclass": "1"}}, "root_eclasses": ["1"]}'
graph '{"nodes": {"a": {"op": "a", "eclass": "r", "subsumed": true}, "b": {"op": "(b)", "eclass": "r", "children": ["c"]}, "c": {"op": "c", "eclass": "c"}}, "root_eclasses": ["r"]}'
try 0 explore --free --rules $at/ac.rules "$work/other.json" --json --egraph "$work/again.json"
is best.0.cost 2
grep -q '"subsumed":true' "$work/again.json" || fail "a subsumed e-node is lost"
try 0 extract "$work/again.json" --method exact --json
is dag_cost 2
bad_graph "no nodes" '{}'
graph '{"nodes": {"a": {"op": "f", "eclass": "1"}}}'
try 0 explore --free --rules $at/ac.rules "$work/other.json"
mkdir "$work/graphs"
cp "$work/e1.json" "$work/graphs"
try 0 extract --compare "$work/graphs" --methods tree,greedy --json
is 'results.#' 2
is results.1.dag_cost 13

try 0 explore --free --rules $at/ac.rules $at/assoc7.term --html "$work/page.html"
page "$work/page.html" 1939 'Stopped: saturated'
# A reason goes through the whole graph: of a large one only so many are worked out.
try 0 explore --free --rules $at/pure.rules $at/math7.term --nodes 200000 --html "$work/page.html"
page "$work/page.html" 'Reasons stand beside the first 155 e-nodes'

# Typed terms.
echo '(transpose (1 0) (transpose (1 0) (input x ((4 8) ()) f32)))' >"$work/t.term"
try 0 explore "$work/t.term" --json
is 'best.#' 1
try 0 explore "$work/t.term" --kernel --egraph "$work/t.json" --json
try 0 extract "$work/t.json" --json

# Products become calls of a described accelerator's units, where that is explored.
echo '(compute (red (sum i32) (mul (cast i32 $0) (cast i32 $1)) (tuple 2))
  (cartProd (access 1 (input x ((7 40) ()) i8)) (access 1 (input w ((20 40) ()) i8))))' >"$work/u.term"
try 0 explore "$work/u.term" --kernel --hw vta-pynq --egraph "$work/u.json" --json
grep -q 'call vta-pynq.gemm' "$work/u.json" || fail "no call of a unit"

# Two e-graphs of one term: what both say, and what either says.
echo '(+ (f a) (+ b c))' >"$work/m.term"
echo '(rule one (f ?x) => (g ?x)) (rule comm (+ ?a ?b) => (+ ?b ?a))' >"$work/ma.rules"
echo '(rule two (f ?x) => (h ?x)) (rule comm (+ ?a ?b) => (+ ?b ?a))' >"$work/mb.rules"
echo '(rule none (never ?x) => ?x)' >"$work/none.rules"
for k in a b; do try 0 explore --free --rules "$work/m$k.rules" "$work/m.term" --egraph "$work/$k.json"; done
ops() { grep -o '"op":"[^"]*"' "$1" | sort | uniq -c | tr -d ' "op:\n'; }
try 0 explore --free --rules "$work/none.rules" "$work/a.json" --meet "$work/b.json" --egraph "$work/meet.json"
try 0 explore --free --rules "$work/none.rules" "$work/a.json" "$work/b.json" --egraph "$work/both.json"
[ "$(ops "$work/meet.json")" = 4+1a1b1c1f ] || fail "meet: $(ops "$work/meet.json")"
[ "$(ops "$work/both.json")" = 4+1a1b1c1f1g1h ] || fail "union: $(ops "$work/both.json")"
refused 2 -- explore "$work/a.json" --meet "$work/b.json"
refused 3 -- explore --free --rules "$work/none.rules" "$work/a.json" --meet "$work/m.term"

# Why a term is there: from what was given, by rules that each made what the next one matched. Each is a step that the
# checker passes, and what comes next stands in what was made, up to what is known to be equal.
cat >"$work/x.rules" <<'R'
(rule comm (+ ?a ?b) => (+ ?b ?a))
(rule dist (* ?a (+ ?b ?c)) => (+ (* ?a ?b) (* ?a ?c)))
(rule two (* 2 ?x) => (<< ?x 1))
(rule drop (- ?a ?a) => 0)
R
echo '(f (* 2 (+ (- a a) (* 2 y))))' >"$work/x.term"
try 0 explore --free --rules "$work/x.rules" "$work/x.term" --existence '(<< 0 1)' --json
is existence.0.left '(* 2 (+ (- a a) (* 2 y)))'
is existence.1.rule dist; is existence.1.right '(+ (* 2 (- a a)) (* 2 (* 2 y)))'
is existence.2.rule two; is existence.2.left '(* 2 (- a a))'; is existence.2.right '(<< (- a a) 1)'
is existence.3.left '(<< (- a a) 1)'
for i in 1 2; do
  value existence.$i.left >"$work/left"; value existence.$i.right >"$work/right"; value existence.$i.rule >"$work/rule"
  echo "(proof $(cat "$work/left") (step $(cat "$work/rule") forward $(cat "$work/right")))" >"$work/proof$i"
done
for i in 1 2; do try 0 proof check "$work/proof$i" --free --rules "$work/x.rules" --strict; done
try 0 explore --free --rules "$work/x.rules" "$work/x.term" --existence '(* 2 y)' --json && is existence.1.rule null
try 1 explore --free --rules "$work/x.rules" "$work/x.term" --existence '(g y)'
try 4 explore --free --rules "$work/x.rules" "$work/x.term" --existence '(<< 0 1)' --iters 1
refused 2 --existence -- explore examples/rules/product.term --existence a
# A long one, in a graph with analyses, conditions and several roots: it is found, and begins with what was given.
try 0 explore --free --rules bench/egraph/math.rules bench/egraph/math7.term --iters 5 --existence '(* ?a (pow ?b 3))' --json
value existence.0.rule | grep -q null || fail "the existence begins with a rule"
finish

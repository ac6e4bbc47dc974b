#!/usr/bin/env bash
# rules list and check: keys, families, files of one's own, a wrong rule shown small, conditions that are needed.
source tests/cli/lib.sh "$1"

try 0 rules list --json
n=$(value 'rules.#')
[ "$n" -ge 100 ] || fail "only $n rules are shipped"
for key in name family level class conditions file line; do value rules.0.$key >/dev/null; done
try 0 rules list
[ "$(wc -l <"$work/out")" = "$n" ] || fail "list and list --json differ"
try 0 rules list --only fusion --text
grep -q '^(rule epilogue' "$work/out" || fail "--text does not print rules"
try 0 rules list --free bench/egraph/ac.rules --json
is rules.0.level free

# A right rule, a wrong one, one that claims too much, one with a condition that is not needed.
cat >"$work/my.rules" <<'R'
(family mine
  (rule right (transpose ?p (transpose ?q ?x)) => ?x :if (identity-perm (compose-perm ?p ?q)))
  (rule wrong (transpose ?p (transpose ?q ?x)) => ?x :if (identity-perm ?q)))
R
try 1 rules check "$work/my.rules" --json
is ok false
is rules.0.name right
is rules.0.ok true
is rules.0.class exact
is rules.0.counterexample null
[ "$(value rules.0.samples)" -ge 100 ] || fail "fewer than 100 instances"
is rules.1.ok false
grep -q 'transpose' <<<"$(value rules.1.counterexample)" || fail "no counterexample"
try 1 rules check "$work/my.rules"
grep -q '^WRONG wrong' "$work/out" && grep -q '^1 of 2 rules hold' "$work/out" || fail "the text does not say which rule is wrong"
try 0 rules check "$work/my.rules" --only right --mutate --json
is rules.0.deleted '(identity-perm (compose-perm ?p ?q))'
echo '(rule idle (squeeze ?i (insertAxis ?i ?x)) => ?x :if (<= 0 ?i))' >"$work/idle.rules"
try 0 rules check "$work/idle.rules" --samples 20
try 1 rules check "$work/idle.rules" --samples 20 --mutate
cat >"$work/sum.rules" <<'R'
(rule regroup :class-is-missing)
R
refused 3 sum.rules:1 -- rules check "$work/sum.rules"
echo '(rule back (compute (map (add $0 (add $1 $2))) ?a ?b ?c) => (compute (map (add (add $0 $1) $2)) ?a ?b ?c))' >"$work/sum.rules"
try 1 rules check "$work/sum.rules" --samples 50 --json
is rules.0.class exact
is rules.0.class_found reassoc
sed -i 's/)$/ :class reassoc)/' "$work/sum.rules"
try 0 rules check "$work/sum.rules" --samples 50

# The same seed, the same samples.
for k in 1 2; do try 1 rules check "$work/my.rules" --seed 9 --json && cp "$work/out" "$work/$k"; done
cmp "$work/1" "$work/2" || fail "two checks with one seed differ"

# Rules over access patterns in a compile: counted, proved, named where they did nothing.
pooled=examples/rules/pooled
try 0 compile $pooled.onnx -o "$work/plain" --json
flop=$(value program.0.flop)
try 0 compile $pooled.onnx -o "$work/pooled" --rules $pooled.rules --explain "$work/chain" --json
[ "$(value program.0.flop)" -lt $((flop / 50)) ] || fail "pool-first changes nothing"
is surface.stop saturated
at=$(($(value 'rule_counts.#') - 1))
is rule_counts.$at.trust sampled
is rule_counts.$at.replayed 1
is rule_counts.$at.not_replayed 0
grep -q '^rule pool-first: only sampled, not proved for all sizes; evaluated in 1 of its 1' "$work/err" || fail "that pool-first is not proved is not said"
grep -q '^rule pool-first: 1 matches, 1 applied, in the chosen program' "$work/err" || fail "pool-first is not counted"
try 0 check "$work/pooled"
try 0 proof check "$work/chain" --replay --rules $pooled.rules --json
is rules.pool-first 1
try 0 compile $pooled.onnx -o "$work/pooled" --rules exploratory --rules $pooled.rules --json
[ "$(value 'rule_counts.#')" -gt 40 ] || fail "a shipped family does not take part"
try 0 check "$work/pooled"
try 0 compile $pooled.onnx -o "$work/pooled" --only-rules $pooled.rules
try 0 check "$work/pooled"
try 0 compile $pooled.onnx -o "$work/pooled" --rules $pooled.rules --numerics exact
grep -q "rule pool-first ($pooled.rules:3) did nothing: its class is reassoc, and --numerics is exact" "$work/err" || fail "no reason: class"
{
  echo '(rule wide (compute reduceSum ?x) => (compute reduceSum (pad 0 0 0 1 ?x)) :demand nothing-has-it)'
  echo '(rule none (squeeze ?i ?x) => ?x)'
  echo '(rule other (compute reduceMax ?x) => (compute reduceMin ?x))'
  echo '(family k :level kernel (rule low (transpose ?p (nest ?k ?*xs)) => (nest ?k ?*xs)))'
} >"$work/idle.rules"
try 0 compile $pooled.onnx -o "$work/pooled" --rules "$work/idle.rules"
for why in "wide .*:demand is nothing-has-it" "none .*has no .squeeze" "other .*fails at each" "low .*has no .transpose.*before the first phase"; do
  grep -qE "warning: rule $why" "$work/err" || fail "no reason: $why"
done
# A rule that is right for the sizes that are tried first, and wrong in this program: its steps are evaluated there.
echo '(rule drop-far (compute reduceSum ?x) => (compute reduceSum (slice (ns ?x) 0 (min (dim ?x (ns ?x)) 40) ?x)) :if (= (nc ?x) 1))' >"$work/far.rules"
sums() { echo "(program (inputs (x ((3) ($1)) f32)) (outputs (y (compute reduceSum (input x ((3) ($1)) f32)))))" >"$work/sums.tarn"; }
sums 64
refused 1 "far.rules:1: rule drop-far is wrong in this program: its sides have different values: element" \
  -- compile "$work/sums.tarn" -o "$work/far" --rules "$work/far.rules"
try 1 rules check "$work/far.rules" --json
grep -qE 'element \([0-9 ]*\): left .*, right .* \(bits' <<<"$(value rules.0.counterexample)" || fail "the counterexample shows no values that differ"
sums 32
try 0 compile "$work/sums.tarn" -o "$work/far" --rules "$work/far.rules"
# A rule that makes its own left side again ends by the limits.
cat >"$work/again.rules" <<'R'
(family again :level kernel
  (rule again (for (?*o) (then ?g (sum ((k ?K)) ?e)))
    => (for (?*o) (then ?g (sum ((p 1)) (for (?*o (p 1)) (sum ((k ?n)) ?e))))) :where (?n (- ?K (/ ?K 50))) :class reassoc))
R
try 0 compile "$work/sums.tarn" -o "$work/far" --rules "$work/again.rules" --json
is stop nodes
try 0 check "$work/far"
# A wrong rule is refused with its place and the reason.
bad() { echo "$1" >"$work/bad.rules"; shift; refused 3 bad.rules:1 "$@" -- compile $pooled.onnx -o "$work/none" --rules "$work/bad.rules"; }
bad '(rule a (compute reduceSum ?x) => (compute reduceSum ?y))' '?y is not bound'
bad '(rule a (compute reduceSum ?x) => (transpose ?x ?x))' 'a term; a list of integers is needed'
bad '(rule a (compute reduceSum ?x) => (sum ?x))' 'no operator is called sum'
bad '(rule a (compute reduceSum ?x) => ?x :class close)' 'expected exact, reassoc or approx'
bad '(rule a (compute reduceSum (access 1 (transpose ?p ?x))) => (compute reduceSum (access 1 ?x)))' 'rule a' types '(48)' '(256)'
refused 2 neither nonsense -- compile $pooled.onnx -o "$work/none" --rules nonsense

refused 2 "no family or rule" -- compile $digits -o "$work/none" --shape n=1 --no-rules nonsense
refused 2 nonsense -- rules learn-nonsense
refused 2 interpretation -- rules check --free bench/egraph/ac.rules
finish

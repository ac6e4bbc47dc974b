#!/usr/bin/env bash
# Inputs that nest deeply, on a small stack: no answer depends on how much of it there is.
source tests/cli/lib.sh "$1"
ulimit -s 192
nested() { # N HEAD LEAF TAIL
  awk -v n="$1" -v a="$2" -v b="$3" -v c="$4" 'BEGIN { for (i = 0; i < n; i++) printf "%s", a; printf "%s", b; for (i = 0; i < n; i++) printf "%s", c; print "" }'
}
echo '(rule c (f ?x ?y) => (f ?y ?x))' >"$work/f.rules"
nested 9000 "(f a " b ")" >"$work/t.term"
try 0 explore --free --rules "$work/f.rules" "$work/t.term" --iters 2 --html "$work/h" --dot "$work/d" --egraph "$work/e.json" --json
is nodes 18002
try 0 extract "$work/e.json" --method exact --json
is dag_cost 9002
try 0 explore --free --rules "$work/f.rules" --prove "$(nested 3000 "(f a " b ")")" "$(nested 3000 "(f " b " a)")" --iters 3 --explain "$work/p"
try 0 proof check "$work/p" --free --rules "$work/f.rules" --strict
[ "$(wc -c <"$work/p")" -lt 600000 ] || fail "the proof takes $(wc -c <"$work/p") bytes"
# Patterns and expressions are read by recursion: they may nest 200 deep.
echo "(rule r $(nested 9000 "(f " "?x" ")") => ?x)" >"$work/r.rules"
try 3 explore --free --rules "$work/r.rules" "$work/t.term" && says "r.rules:1:" "nested more than 200 deep"
echo "(analysis v constant) (rule r (g ?x) => ?x :if $(nested 9000 "(not " "(eq ?x 0)" ")"))" >"$work/r.rules"
try 3 explore --free --rules "$work/r.rules" "$work/t.term" && says "r.rules:1:" "nested more than 200 deep"
nested 100000 '[' '' ']' | sed 's/^/{"x":/; s/$/,"nodes":{}}/' >"$work/b.json"
try 3 extract "$work/b.json" && says b.json "nested too deeply"
# Chains of a hundred thousand classes, listed from either end: the memory is that of the chain.
chain() { # N
  awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%s\"n%d\":{\"op\":\"f\",\"eclass\":\"c%d\",\"children\":[%s]}\n", i ? "," : "", i, i, i + 1 < n ? "\"n" (i + 1) "\"" : "" }'
}
chain 100000 >"$work/lines"
{ echo '{"nodes":{'; cat "$work/lines"; echo '},"root_eclasses":["c0"]}'; } >"$work/root.json"
{ echo '{"nodes":{'; sed 's/^,//' "$work/lines" | tac | sed '2,$s/^/,/'; echo '},"root_eclasses":["c0"]}'; } >"$work/leaf.json"
most=1500000
! sanitized "$tarn" || most=unlimited # their own memory alone is more
for method in tree greedy exact worst random; do
  for order in root leaf; do
    (ulimit -v $most; try 0 extract "$work/$order.json" --method $method --json; is dag_cost 100000; exit $failed) || failed=1
  done
done
try 0 explore --free --rules "$work/f.rules" "$work/root.json" --iters 1 --json
# Costs below 0 and below a parent, and why a term far down is there.
try 0 extract "$work/root.json" --method exact --cost f=-1 --json && is dag_cost -100000
try 0 extract "$work/root.json" --method greedy --cost f@f=2 --json && is dag_cost 199999
echo '(rule g (g ?x) => (h ?x))' >"$work/g.rules"
nested 9000 "(f a " "(g b)" ")" >"$work/g.term"
try 0 explore --free --rules "$work/g.rules" "$work/g.term" --existence "(h b)" --json && is existence.1.rule g
finish

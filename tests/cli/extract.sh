# tarn extract: methods, limits, comparison, plugins, errors.
. tests/cli/lib.sh
graph=tests/data/select/shared.json

# The shared class is counted once by those that see it.
for method in greedy exact; do
  try 0 extract "$graph" --method $method --json
  is schema 1; is method $method; is dag_cost 6; is stop done
done
is lower_bound 6; is optimal true
grep -q '"read_seconds"' "$work/out" || fail "no read_seconds"
try 0 extract "$graph" --method tree --json
is tree_cost 8; is dag_cost 8
try 0 extract "$graph" --method random --seed 4 --json && cp "$work/out" "$work/first"
try 0 extract "$graph" --method random --seed 4 -o "$work/s.json"
[ "$("$json" dag_cost <"$work/first")" = "$("$json" dag_cost <"$work/s.json")" ] || fail "the same seed, another cost"
try 0 extract "$graph" --method exact --steps 1 --json
[ "$("$json" dag_cost <"$work/out")" != null ] || fail "no selection within one step"

# Other roots than the file's; what was known when; what is subsumed is never chosen.
try 0 explore --free --rules bench/egraph/math.rules bench/egraph/math7.term --iters 5 --egraph "$work/g.json"
roots=$("$json" root_eclasses.0 root_eclasses.1 <"$work/g.json" | paste -sd ' ' -)
try 0 extract "$work/g.json" --method exact --root "${roots%% *}" --curve "$work/curve" --json
one=$(value dag_cost)
tail -n 1 "$work/curve" | grep -q "\"cost\": $one, \"bound\": $one}" || fail "--curve ends with $(tail -n 1 "$work/curve")"
[ "$(grep -c '^{"seconds": .*}$' "$work/curve")" = "$(wc -l <"$work/curve")" ] || fail "--curve writes no JSON lines"
try 0 extract "$work/g.json" --method exact --root "${roots%% *}" --root "${roots##* }" --json
[ "$(value dag_cost)" -gt "$one" ] || fail "two roots cost $(value dag_cost), one of them $one"
try 3 extract "$work/g.json" --root nowhere && says g.json "root nowhere names no class"
echo '{"nodes":{"a":{"op":"a","eclass":"r","subsumed":true},"b":{"op":"b","eclass":"r","cost":5}},"root_eclasses":["r"]}' >"$work/s.json"
for method in tree greedy exact worst random; do
  try 0 extract "$work/s.json" --method $method --json && is dag_cost 5
done
sed -i 's/,"cost":5/,"subsumed":true/' "$work/s.json"
try 4 extract "$work/s.json" --method exact

# A folder, with a bad file in it: the others are compared all the same.
mkdir "$work/dir"
cp "$graph" "$work/dir/a.json"
cp tests/corpus/egraph/cover "$work/dir/b.json"
try 0 extract --compare "$work/dir" --methods tree,greedy,exact --seconds 2 --json --plot "$work/p.svg"
is summary.2.method exact; is summary.2.files 2; is summary.2.best 2; is summary.2.proven 2; is summary.2.ratio 1
is 'results.#' 6
head -c 4 "$work/p.svg" | grep -q '<svg' || fail "--plot draws no SVG"
grep -q '</svg>' "$work/p.svg" || fail "--plot leaves an SVG open"
cp tests/corpus/egraph/negative "$work/dir/n.json"
try 3 extract --compare "$work/dir" --methods tree --json && says n.json negative
is 'results.#' 2

# An extractor of one's own, and what is refused.
if command -v "${CC:-cc}" >/dev/null; then
  "${CC:-cc}" -O1 -shared -fPIC -I. -o "$work/rounds.so" examples/extractor/rounds.c || fail "the example does not compile"
  try 0 extract "$graph" --plugin "$work/rounds.so" --json
  is dag_cost 8 # it prices each class for itself
  rm "$work/dir/n.json"
  try 0 extract --compare "$work/dir" --methods exact,"$work/rounds.so" --json
  is 'results.#' 4
fi
refused 3 none.so -- extract "$graph" --plugin "$work/none.so"
refused 2 .so -- extract "$graph" --plugin "$work/none"
refused 2 method -- extract --compare "$work/dir" --methods greedy,best
refused 2 --plot -- extract "$graph" --plot "$work/p.svg"

# Bad graphs, one line each.
# Costs below 0: least trees would not be trees, and a choice takes no more than the roots need.
refused 3 'node n' negative -- extract tests/corpus/egraph/negative --method tree
refused 3 'node n' negative -- extract tests/corpus/egraph/negative --method ilp
refused 3 'node n' negative -- extract tests/corpus/egraph/negative --terms 2
echo '{"nodes":{"p":{"op":"p","eclass":"r","cost":5},"q":{"op":"q","eclass":"r","cost":6,"children":["b"]},"b":{"op":"b","eclass":"c","cost":-3,"children":["e"]},"e":{"op":"e","eclass":"d","cost":1}},"root_eclasses":["r"]}' >"$work/gain.json"
for method in greedy exact; do
  try 0 extract "$work/gain.json" --method $method --json && is dag_cost 4; is lower_bound 4
  try 0 extract "$work/gain.json" --method $method --cost e=3 --json && is dag_cost 5
done
try 0 extract "$work/gain.json" --cost p=-1 --print - && [ "$(tail -1 "$work/out")" = p ] || fail "--cost below 0"
try 0 extract "$work/gain.json" --method random --json
# Costs below a parent: of the two uses of n, one takes another node.
echo '{"nodes":{"a":{"op":"add","eclass":"a","children":["n","m"]},"b":{"op":"mul","eclass":"b","children":["n","m"]},"t":{"op":"top","eclass":"t","children":["a","b"]},"n":{"op":"neg","eclass":"n","cost":4,"children":["x"]},"l":{"op":"alt","eclass":"n","cost":3,"children":["x"]},"m":{"op":"m","eclass":"m","cost":2,"children":["n"]},"x":{"op":"x","eclass":"x"}},"root_eclasses":["t"]}' >"$work/p.json"
try 0 extract "$work/p.json" --method exact --cost neg@add=0 --print - --pruned "$work/q.json"
grep -qF '(top (add (neg x) x2) (mul x1 x2))' "$work/out" || fail "--cost neg@add: $(cat "$work/out")"
try 0 extract "$work/q.json" --json && is dag_cost 9
try 0 extract "$work/p.json" --cost neg@add=9 --cost alt@mul=9 --json && is dag_cost 13
try 0 extract "$work/p.json" --cost neg@add=0 --terms 1 && grep -qF '20  (top (add (neg x) (m (alt x))) (mul (alt x) (m (alt x))))' "$work/out" || fail "--terms below a parent"

refused 3 'child m is not a node' -- extract tests/corpus/egraph/dangling
refused 3 'root d names no class' -- extract tests/corpus/egraph/no-root
refused 3 cut-short:1: -- extract tests/corpus/egraph/cut-short
echo '{"nodes":{"n":{"op":"n","eclass":"c","children":["n"]}},"root_eclasses":["c"]}' >"$work/cycle"
refused 4 'root c' 'no finite selection' -- extract "$work/cycle" --method exact
finish

#!/usr/bin/env bash
# tests/test_rules_cli.sh BUILD: tarn rules check --free, learn, derive and stats as a person types them.
set -uo pipefail
build=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
say() { echo "rules: $*"; failed=1; }
tarn() { "$build/tarn" "$@"; }
has() { grep -qF -- "$2" "$1" || { say "$3: no \"$2\" in"; cat "$1"; }; }

# What is learned is a file that check and explore read, and implies the laws that Ruler reports.
tarn rules learn examples/learn/bool.rules -o "$tmp/bool.rules" 2> "$tmp/err" || say "learn fails: $(cat "$tmp/err")"
tarn rules learn examples/learn/bool.rules -o "$tmp/again.rules" 2> /dev/null
cmp -s "$tmp/bool.rules" "$tmp/again.rules" || say "learning twice gives two files"
tarn rules check --free "$tmp/bool.rules" > "$tmp/out" || say "a learned rule is wrong: $(cat "$tmp/out")"
tarn explore --free --rules "$tmp/bool.rules" --prove "(~ (~ (& y x)))" "(& x y)" --iters 5 > "$tmp/out" || say "explore does not read the file"
has "$tmp/out" "proved" "explore"
tarn rules derive "$tmp/bool.rules" examples/learn/ruler-bool.rules --iters 16 --nodes 500000 > "$tmp/out" || say "derive fails"
n=$(sed -n 's/^\([0-9]*\) of the 20 rules of [^ ]*ruler-bool.rules follow.*/\1/p' "$tmp/out")
[ "${n:-0}" -ge 19 ] || { say "of Ruler's 20 laws ${n:-none} follow"; cat "$tmp/out"; }

# Division by zero: laws that need a condition are found out, and are learned with it.
tarn rules check --free examples/learn/rational.rules examples/learn/ruler-rational.rules > "$tmp/out"
[ $? -eq 1 ] || say "a wrong rule gives no exit status 1"
has "$tmp/out" "ruler-rational.rules" "counterexamples name file and line"
has "$tmp/out" "?a = 0: (/ ?a ?a) = no value, 1 = 1" "check"
tarn rules learn examples/learn/rational.rules --size 3 --json > "$tmp/out" || say "learn --json fails"
python3 - "$tmp/out" << 'END' || say "learn --json"
import json, sys
j = json.load(open(sys.argv[1]))
assert j["schema"] == 1 and j["stop"] == "done" and j["conditional"] >= 1 and j["refuted"] == 0
assert any("(/ ?a ?a) => 1 :if (nonzero ?a)" in r for r in j["rules"]), j["rules"]
END

# Typed terms.
tarn rules learn examples/learn/access.terms --size 1 --json > "$tmp/out" || say "learn of terms fails"
python3 - "$tmp/out" << 'END' || say "learn of terms --json"
import json, sys
j = json.load(open(sys.argv[1]))
names = {f["rule"] for f in j["found"]}
assert {"access-own", "slice-whole", "pad-nothing", "transpose-identity"} <= names, names
assert j["equations"] == j["terms"] - j["values"] > 0
END

# The table in docs/rule-list.md is what the program prints.
tarn rules list --table > "$tmp/out"
grep '^| `' docs/rule-list.md | diff - "$tmp/out" > "$tmp/err" || say "docs/rule-list.md is not what rules list --table prints: $(head -4 "$tmp/err")"

# Statistics of use: over a program of its own, so that what is dead and what is used is known.
cat > "$tmp/m.tarn" << 'END'
(program (inputs (x ((4 8) ()) f32)) (outputs (y
  (compute (map (max $0 0)) (compute (map (add $0 1)) (compute (map (mul $0 2)) (input x ((4 8) ()) f32)))))))
END
tarn rules stats "$tmp/m.tarn" "$tmp/m.tarn" --hw x86-64-v3 --json > "$tmp/out" 2> "$tmp/err" || say "stats fails: $(cat "$tmp/err")"
python3 - "$tmp/out" << 'END' || say "stats --json"
import json, sys
j = json.load(open(sys.argv[1]))
r = {x["name"]: x for x in j["rules"]}
assert len(j["models"]) == 2
assert r["inline"]["models"] == 2 and r["inline"]["steps"] >= 2 and r["inline"]["verdict"] in ("", "explosive"), r["inline"]
assert r["merge-products"]["applied"] == 0 and r["merge-products"]["steps"] == 0
assert r["im2col"]["verdict"] in ("dead", "matches only"), r["im2col"]
assert j["steps"] == sum(x["steps"] for x in j["rules"])
END
tarn rules stats > /dev/null 2>&1
[ $? -eq 2 ] || say "stats without models is no usage error"
exit $failed

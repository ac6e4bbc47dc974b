#!/usr/bin/env bash
# --seconds so short that it strikes, in every command that has it: a usable result, or exit code 4 and one line.
source tests/cli/lib.sh "$1"
at=bench/egraph
some=tests/data/select/shared.json

# ends ARGS…: exit code 0, 1 or 4; with 4 one line says so, on standard output (unknown) or as an error.
ends() {
  local got
  "$tarn" "$@" >"$work/out" 2>"$work/err"
  got=$?
  last="tarn $*"
  case $got in
  0 | 1) [ "$(grep -vc '^tarn: warning' "$work/err")" -le 3 ] || fail "$last: $(cat "$work/err")" ;;
  4) [ "$(cat "$work/err" "$work/out" | grep -cE '^(tarn: |unknown|stopped)')" -ge 1 ] || fail "$last: 4 without a word" ;;
  *) fail "$last: exit code $got: $(cat "$work/err")" ;;
  esac
  return $got
}
for s in 1e-6 0.02 0.2; do
  rm -rf "$work/new"
  if ends compile $digits --shape n=1 -o "$work/new" --seconds $s; then try 0 check "$work/new"
  else [ ! -e "$work/new" ] || fail "compile --seconds $s leaves a folder"; fi
  if ends compile examples/rules/pooled.onnx --rules examples/rules/pooled.rules -o "$work/new" --seconds $s; then try 0 check "$work/new"; fi
  ends equal examples/rules/pooled.onnx examples/rules/pooled.onnx --seconds $s
  ends explore examples/rules/product.term --seconds $s --json && value best.0.term >/dev/null
  # What the rules grew is there, whole, however early they end.
  ends explore --free --rules $at/pure.rules $at/math7.term --nodes 100000000 --seconds $s --egraph "$work/g.json" --json &&
    is stop seconds && value best.0.term >/dev/null && try 0 extract "$work/g.json" --json
  ends explore $at/paths.egg --seconds $s
  ends extract $some --seconds $s --json && value dag_cost >/dev/null
  ends rules check --only fusion --seconds $s
  ends rules derive --free $at/ac.rules $at/math.rules --seconds $s
  ends tune tests/data/onnx/gemm.onnx --seconds $s --threads 1 --db "$work/t.db" -o "$work/t.price"
  ends rules stats examples/rules/pooled.onnx --seconds $s
done
finish

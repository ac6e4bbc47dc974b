#!/usr/bin/env bash
# tarn inspect says what a model holds before anything is compiled; docs/operators.md is the table that it prints.
source tests/cli/lib.sh "$1"

try 0 inspect --operators
grep '^| .*`' docs/operators.md | diff - "$work/out" >"$work/diff" ||
  fail "docs/operators.md is not what tarn inspect --operators prints: $(head -4 "$work/diff")"
[ "$(wc -l <"$work/out")" -gt 200 ] || fail "few operators"
refused 2 usage -- inspect
refused 2 usage -- inspect $digits --operators
refused 3 none.onnx -- inspect "$work/none.onnx"

try 0 inspect $digits
for line in '  image .*f32\[n,1,8,8\]' '  --shape n=N .*1 is assumed' ' 6  Conv$' 'everything in it is supported'; do
  grep -q "^$line\|$line" "$work/out" || fail "inspect: no $line"
done
try 0 inspect $digits --shape n=4 --json
is 'inputs.0.type' 'f32[n,1,8,8]'
is 'sizes.#' 0
is 'unsupported.#' 0
is nodes 25
try 0 inspect $digits --json
is sizes.0.name n
refused 3 'no such input or dim' -- inspect $digits --shape q=4
case=tests/cases/topk_ties
[ -e $case/model.onnx ] || case=$(grep -lm1 TopK tests/cases/*/model.onnx | head -1 | xargs dirname)
try 0 inspect "$case/model.onnx" && grep -q '(TopK)' "$work/out" || fail "no reference kernel is named"
# All that is not supported, with exit status 1: the digits with two operators renamed.
LC_ALL=C sed 's/AveragePool/AveragePoof/g; s/Flatten/Flattex/g' $digits >"$work/odd.onnx"
try 1 inspect "$work/odd.onnx" --json
is 'unsupported.#' 2
is unsupported.0.op GlobalAveragePoof
is unsupported.1.op Flattex
try 1 inspect "$work/odd.onnx"
grep -q '^  node .* (Flattex): unknown operator' "$work/out" || fail "no reason"
# Comprehensions, programs, folders of other programs.
try 0 inspect examples/tc/matmul.tc && grep -q -- '--shape K=N' "$work/out" || fail "no sizes of a comprehension"
echo '(compute reduceSum (access 0 (input a ((4) ()) f32)))' >"$work/sum.term"
try 0 inspect "$work/sum.term" && grep -q '  a  *f32\[4\]' "$work/out" || fail "no input of a term"
mkdir "$work/saved" && touch "$work/saved/saved_model.pb"
refused 3 SavedModel tf2onnx -- compile "$work/saved"
printf 'xxxxTFL3xxxxxxxx' >"$work/lite.onnx"
for c in inspect compile run check; do refused 3 'TensorFlow Lite' -- $c "$work/lite.onnx"; done
finish

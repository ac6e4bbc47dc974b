#!/usr/bin/env bash
# quantize: both forms of the digits, what is said of them, what they are; what is refused.
source tests/cli/lib.sh "$1"
mkdir "$work/s" "$work/none" && cp examples/digits/held_images.npy "$work/s"

for hw in "" "--hw gemmini-default" "--hw vta-pynq"; do
  # shellcheck disable=SC2086
  try 0 quantize $digits -i "$work/s" -o "$work/q.onnx" --shape n=359 $hw --json
  is file "$work/q.onnx"
  is samples 1
  is products 7
  is outputs.0.name probability
  is outputs.0.vectors 359
  [ "$(value outputs.0.argmax_agree)" -ge 356 ] || fail "quantize $hw: $(value outputs.0.argmax_agree) of 359"
  value outputs.0.relative_error outputs.0.max_abs >/dev/null
  is left.0.op GlobalAveragePool
  case $hw in "") is form qdq ;; *gemmini*) is form scaled ;; *) is form integer ;; esac
  # It is dynamic still, and standard.
  try 0 check "$work/q.onnx" --shape n=3
  if /usr/bin/python3 -c 'import onnx' 2>/dev/null; then
    /usr/bin/python3 -c 'import onnx, sys; onnx.checker.check_model(onnx.load(sys.argv[1]), full_check=True)' "$work/q.onnx" ||
      fail "quantize $hw: the checker of ONNX refuses it"
  fi
done
cp "$work/q.onnx" "$work/once"
try 0 quantize $digits -i "$work/s" -o "$work/q.onnx" --shape n=359 --hw vta-pynq
grep -q '^probability .* of 359 ' "$work/out" || fail "quantize says $(cat "$work/out")"
grep -q 'GlobalAveragePool' "$work/out" || fail "quantize does not say what is left"
cmp "$work/q.onnx" "$work/once" || fail "the same again gives another file"

refused 2 usage -- quantize $digits -o "$work/q.onnx"
refused 2 usage -- quantize $digits -i "$work/s"
refused 3 'mlp.tc' 'only a model of ONNX' -- quantize examples/tc/mlp.tc -i "$work/s" -o "$work/q.onnx"
refused 3 'bind it with --shape' -- quantize $digits -i "$work/s" -o "$work/q.onnx"
refused 3 'held_images.npy' 'f32[1,1,8,8]' 'f32[359,1,8,8]' -- quantize $digits -i "$work/s" -o "$work/q.onnx" --shape n=1
refused 3 "$work/none" 'no samples' -- quantize $digits -i "$work/none" -o "$work/q.onnx" --shape n=1
refused 3 'nothing to quantise' -- quantize "$work/once" -i "$work/s" -o "$work/q.onnx" --shape n=359
refused 3 "$work/no" -- quantize $digits -i "$work/s" -o "$work/no/q.onnx" --shape n=359
refused 3 'no such description' -- quantize $digits -i "$work/s" -o "$work/q.onnx" --hw vta
cmp "$work/q.onnx" "$work/once" || fail "what is refused changes the file that was there"
finish

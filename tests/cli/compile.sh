#!/usr/bin/env bash
# compile, run, check and bench on a small network: the report, families of rules, equal bytes for equal input.
source tests/cli/lib.sh "$1"
shape=(--shape n=1)

try 0 compile $digits -o "$work/a" "${shape[@]}" --threads 1 --json
for key in stop nodes classes iterations kernels price price_bound seconds.import seconds.saturate seconds.extract \
  seconds.lower numerics; do value $key >/dev/null; done
is schema 1
is 'opaque.#' 0
is numerics reassoc
[ "$(value 'rules.#')" -gt 0 ] || fail "no rule was used"
kernels=$(value kernels)
for f in model.so model.o model.h program.tarn report.json; do [ -s "$work/a/$f" ] || fail "compile writes no $f"; done
"$json" kernels <"$work/a/report.json" | grep -qx "$kernels" || fail "report.json is not what --json prints"

# A family switched off changes the program; the outputs agree all the same.
try 0 compile $digits -o "$work/plain" "${shape[@]}" --threads 1 --no-rules fusion --json
[ "$(value kernels)" -gt "$kernels" ] || fail "--no-rules fusion leaves $(value kernels) of $kernels kernels"
for dir in a plain; do
  try 0 check "$work/$dir" --samples 2 --json
  is ok true
  "$json" max_abs max_rel <"$work/out" >/dev/null || fail "check: no differences given"
done

# Equal input, equal bytes.
try 0 compile $digits -o "$work/b" "${shape[@]}" --threads 1 --json
for f in model.so model.o model.h program.tarn; do cmp "$work/a/$f" "$work/b/$f" || fail "$f differs between two runs"; done
diff <(sed '/"seconds"/,/}/d' "$work/a/report.json") <(sed '/"seconds"/,/}/d' "$work/b/report.json") ||
  fail "report.json differs between two runs in more than times"

# The other numerics, a limit that leaves a program, the object alone.
try 0 compile $digits -o "$work/exact" "${shape[@]}" --numerics exact --json
is numerics_used exact
try 0 compile $digits -o "$work/cut" "${shape[@]}" --iters 1 --json
is stop iterations
try 0 check "$work/cut"
try 0 compile $digits -o "$work/o" "${shape[@]}" --emit o
[ -s "$work/o/model.o" ] && [ ! -e "$work/o/model.so" ] || fail "--emit o"
try 0 compile $digits -o "$work/ll" "${shape[@]}" --emit ll
[ -n "$(find "$work/ll" -name '*.ll')" ] || fail "--emit ll"

try 0 run "$work/a" -o "$work/y" --seed 3 --json
[ -s "$(value outputs.probability.file)" ] || fail "run writes no output"
is outputs.probability.shape.1 10
cp "$work/y/probability.npy" "$work/first.npy"
try 0 run "$work/a" -o "$work/y" --seed 3
cmp "$work/first.npy" "$work/y/probability.npy" || fail "two runs of one program differ"
try 0 run "$work/a" -o "$work/r" --reference --seed 3 --json
is outputs.probability.shape.1 10
# Outputs whose names are one file's.
collide=tests/cases/output_files_collide
try 0 run $collide/model.onnx -i "x=$collide/in_x.npy" -o "$work/y" --json
is 'outputs.a/b.file' "$work/y/output_0.npy"
is outputs.a_b.file "$work/y/a_b.npy"
cmp "$work/y/output_0.npy" $collide/expected_0.npy && cmp "$work/y/a_b.npy" $collide/expected_1.npy || fail "outputs in each other's files"
sample=$(ls examples/digits/samples/*.npy 2>/dev/null | head -1)
[ -z "$sample" ] || try 0 run "$work/a" -i "image=$sample"

try 0 bench "$work/a" --threads 1 --repeat 3 --json
for key in seconds.median seconds.min gflop gflops peak_gflops peak_fraction kernels.0.name kernels.0.seconds \
  kernels.0.gflops kernels.0.peak_fraction kernels.0.binds kernels.0.bound_seconds kernels.0.bound_fraction \
  kernels.0.slots kernels.0.read_bytes bound_fraction peaks.flops peaks.start peaks.levels.0.read; do value $key >/dev/null; done
is 'kernels.#' "$("$json" 'program.#' <"$work/a/report.json")"
try 0 bench "$work/a" --threads 1 --repeat 1 --html "$work/page.html" --trace "$work/trace.json"
[ "$("$json" 'traceEvents.#' <"$work/trace.json")" = "$("$json" 'program.#' <"$work/a/report.json")" ] || fail "--trace"
[ "$("$json" traceEvents.0.ph <"$work/trace.json")" = X ] || fail "--trace: not a complete event"
page "$work/page.html" k0_ 'of the peak' Roofline '<circle' Timeline '<rect'
refused 3 /dev/full -- bench "$work/a" --repeat 1 --html /dev/full
# Many minima of 16-bit floats in one block of code: LLVM's code generation ends.
x='(input x ((35 8) ()) f16)' y='(input y ((35 8) ()) f16)'
echo "(compute (map (cast f16 \$0)) (compute reduceSum (windows (8) (1) (access 1 (pad 1 0 7 0
  (compute (map (cast f32 \$0)) (compute (map (min \$0 \$1)) $x $y)))))))" >"$work/least.term"
(ulimit -t 20 && try 0 compile "$work/least.term" -o "$work/least" --numerics exact --threads 1) &&
  try 0 check "$work/least" || fail "minima of f16"
finish

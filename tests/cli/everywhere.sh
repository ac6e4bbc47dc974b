#!/usr/bin/env bash
# Objects of other formats and for machines without an operating system, constants in a file of their own, LLVM's text, and
# WebAssembly, which runs in node where that is installed.
source tests/cli/lib.sh "$1"
bin=/usr/lib/llvm-19/bin

# holds FILE PART: FILE has all bytes of PART somewhere.
holds() { /usr/bin/python3 -c 'import sys; a, b = (open(f, "rb").read() for f in sys.argv[1:]); sys.exit(b not in a)' "$1" "$2"; }

# ---- objects ----
for target in 'tests/data/hw/coff.hw coff-x86-64' 'tests/data/hw/mach-o.hw mach-o.arm64' 'cortex-m0 elf32-littlearm' \
  'cortex-m4 elf32-littlearm' 'cortex-m7 elf32-littlearm' 'rv32imac elf32-littleriscv' 'wasm32 wasm'; do
  read -r hw format <<<"$target"
  out=$work/$(basename "$hw" .hw)
  try 0 compile $digits --shape n=1 --hw "$hw" --emit o -o "$out" || continue
  try 0 compile $digits --shape n=1 --hw "$hw" --emit o --constants file -o "$out.apart" || continue
  "$bin/llvm-objdump" -d "$out/model.o" >"$work/code" || fail "$hw: no code"
  grep -E "file format $format" "$work/code" >/dev/null || fail "$hw: not $format"
  [ "$(grep -cE '^ *[0-9a-f]+:' "$work/code")" -gt 500 ] || fail "$hw: hardly any code"
  "$bin/llvm-nm" "$out/model.o" | grep -E ' T _?digits_run$' >/dev/null || fail "$hw: no digits_run"
  holds "$out/model.o" "$out.apart/model.weights" || fail "$hw: the object does not hold the constants"
  ! holds "$out.apart/model.o" "$out.apart/model.weights" || fail "$hw: the object holds constants that lie apart"
  "$bin/llvm-nm" "$out.apart/model.o" | grep -E ' [BDS] _?digits_constants$' >/dev/null || fail "$hw: no digits_constants"
done
! "$bin/llvm-nm" -u "$work/cortex-m4/model.o" | grep . || fail "cortex-m4: needs more than itself"
refused 2 '--emit so' 'o or ll' -- compile $digits --hw cortex-m4 --emit so
hw() { echo "(hw other (like cortex-m4) (triple \"$1\") (cpu \"generic\"))" >"$work/other.hw"; }
hw quux-unknown-linux
refused 3 'no code generator for the triple quux-unknown-linux' aarch64 thumb wasm32 -- \
  compile $digits --shape n=1 --hw "$work/other.hw" -o "$work/none"
hw s390x-unknown-linux
refused 3 'high byte first' -- compile $digits --shape n=1 --hw "$work/other.hw" -o "$work/none"

# ---- a microcontroller, emulated ----
bash examples/microcontroller/run.sh "$build" >"$work/said" 2>&1
case $? in
0) grep -x '0 1 2 3 4 5 6 7 8 9 ' "$work/said" >/dev/null || fail "the microcontroller takes images for others" ;;
77) cat "$work/said" ;;
*) fail "examples/microcontroller: $(tail -n 3 "$work/said")" ;;
esac

# ---- constants in a file ----
try 0 compile $digits --shape n=1 --constants file -o "$work/apart" && try 0 check "$work/apart"
try 0 compile tests/data/onnx/blocks.onnx --constants file -o "$work/blocks" && try 0 check "$work/blocks"
try 0 compile $digits --shape n=1,4 --constants file -o "$work/two" && try 0 check "$work/two"
cc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$work/program" -I"$work/apart" -x c - -x none "$work/apart/model.so" <<'C' || fail "model.h of constants apart"
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  static float x[64], y[10];
  const void *in[] = {x};
  void *out[] = {y}, *work = aligned_alloc(64, (digits_workspace(1) + 64) / 64 * 64),
       *weights = aligned_alloc(64, (DIGITS_CONSTANTS + 63) / 64 * 64);
  FILE *f = fopen(argv[argc - 1], "rb");
  int before = digits_run(in, out, work, 0); /* without constants */
  if (!f || fread(weights, 1, DIGITS_CONSTANTS, f) != DIGITS_CONSTANTS) return 9;
  digits_constants = weights;
  return before == 1 ? digits_run(in, out, work, 0) : 8;
}
C
"$work/program" "$work/apart/model.weights" || fail "constants apart: $?"
truncate -s 100 "$work/apart/model.weights"
refused 3 model.weights '100 bytes' -- check "$work/apart"
rm "$work/apart/model.weights"
refused 3 model.weights 'No such file' -- check "$work/apart"
refused 2 '--constants some' 'object or file' -- compile $digits --constants some
refused 2 '--constants file' -- compile $digits --hw vta-pynq --constants file

# ---- LLVM's text is complete ----
try 0 compile $digits --shape n=1 --emit ll -o "$work/text"
try 0 compile $digits --shape n=1 -o "$work/whole"
"$bin/llc" -O3 -relocation-model=pic -filetype=obj "$work/text/model.ll" -o "$work/text.o" &&
  "$bin/ld.lld" -shared "$work/text.o" -o "$work/whole/model.so" || fail "model.ll: no object"
try 0 check "$work/whole"

# ---- WebAssembly ----
cat >"$work/cache.py" <<'PY'
import sys
from onnx import TensorProto as T, helper as h, save
past, new, both = (h.make_tensor_value_info(n, T.FLOAT, [2, r, 4]) for n, r in (("past", 3), ("new", 1), ("both", 4)))
y = h.make_tensor_value_info("y", T.FLOAT, [2, 4, 4])
nodes = [h.make_node("Concat", ["past", "new"], ["both"], axis=1), h.make_node("Tanh", ["both"], ["y"])]
save(h.make_model(h.make_graph(nodes, "g", [past, new], [both, y]), opset_imports=[h.make_opsetid("", 17)], ir_version=8), sys.argv[1])
PY
wasm=$work/wasm
try 0 compile $digits --shape n=1 --hw wasm32 -o "$wasm" || finish
for file in model.wasm model.mjs model.d.mts model.h; do [ -s "$wasm/$file" ] || fail "wasm32: no $file"; done
[ "$(head -c 4 "$wasm/model.wasm" | tr '\0' .)" = .asm ] || fail "model.wasm: no module"
refused 2 'one size' -- compile $digits --shape n=1,4 --hw wasm32 -o "$work/none"
if ! command -v node >/dev/null; then
  echo "everywhere.sh: node is not installed: no WebAssembly module is run"
  PATH=$build try 3 check "$wasm" && says node 'not installed'
  finish
fi
[ "$(node -e 'WebAssembly.compile(require("fs").readFileSync(process.argv[1])).then((m) => console.log(WebAssembly.Module.imports(m).length))' "$wasm/model.wasm")" = 0 ] ||
  fail "model.wasm: imports something"
try 0 check "$wasm" --samples 3
# A page or script of someone's.
cat >"$work/use.mjs" <<'JS'
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { load } = await import(pathToFileURL(process.argv[2] + "/model.mjs"));
const model = await load();
const other = await load(readFileSync(process.argv[2] + "/model.wasm"));
const image = Float32Array.from({ length: 64 }, (_, i) => i % 17);
const [y] = model.run(image);
other.inputs[0].data.set(image);
const [z] = other.run();
if (model.inputs[0].name !== "image" || model.outputs[0].dims.join() !== "1,10") throw new Error("description");
if (Math.abs(y.reduce((a, b) => a + b) - 1) > 1e-5 || y.join() !== z.join()) throw new Error("values " + y + " " + z);
JS
node "$work/use.mjs" "$wasm" || fail "model.mjs: as a script uses it"
/usr/bin/python3 "$work/cache.py" "$work/cache.onnx" && try 0 check "$work/cache.onnx" --hw wasm32
# Class exact: the bits that this machine's program gives.
for model in $digits tests/data/onnx/{blocks,activation,elementwise,elementwise_rest,softmax,reduce,pool,conv,resize}.onnx tests/cases/f16_add/model.onnx; do
  [ -e "$model" ] || continue
  name=$(basename "$model" .onnx)
  shape=$([ "$model" != "$digits" ] || echo '--shape n=1')
  for hw in host wasm32; do
    # shellcheck disable=SC2086
    try 0 compile "$model" $shape --hw $hw --numerics exact -o "$work/$name.$hw" && try 0 run "$work/$name.$hw" --seed 7 -o "$work/$name.$hw"
  done
  diff -rq "$work/$name.host" "$work/$name.wasm32" | grep '\.npy' && fail "$name: other bits in node than here"
  [ -n "$(find "$work/$name.wasm32" -name '*.npy')" ] || fail "$name: no outputs"
done
try 0 compile $digits --shape n=1 --hw wasm32 --constants file -o "$work/wasm-apart" && try 0 check "$work/wasm-apart"
finish

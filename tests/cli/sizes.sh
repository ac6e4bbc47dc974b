#!/usr/bin/env bash
# One artefact for several sizes: what the commands do with it, and a C program that links it.
source tests/cli/lib.sh "$1"

try 0 compile $digits --shape n=1,3..4 -o "$work/some" --json
is sizes.names.0 n
is sizes.given.0 n=1,3..4
is sizes.programs.# 3
is sizes.programs.1.size.0 3
is sizes.programs.1.shapes.0 n=3
is shapes.0 n=4
is schema 1
try 0 check "$work/some"
[ "$(grep -c ': ok$' "$work/out")" = 3 ] || fail "check does not try every size"
try 0 check "$work/some" --shape n=3 --json
is ok true
refused 2 "not compiled for n=2" -- check "$work/some" --shape n=2
refused 2 "NAME=NUMBER" -- check "$work/some" --shape m=2
refused 2 "NAME=NUMBER" -- run "$work/some" --shape n=1..2
try 0 bench "$work/some" --repeat 2
[ "$(grep -c '^n=[134] .* us median' "$work/out")" = 3 ] || fail "bench has no row for each size"
try 0 bench "$work/some" --repeat 2 --json
is sizes.2.size.n 4
try 0 bench "$work/some" --repeat 2 --shape n=3 --json
value kernels.0.seconds >/dev/null
refused 2 "--html" -- bench "$work/some" --html "$work/page.html"

# The sizes are those of the inputs that are given.
try 0 run "$work/some" --shape n=4 -o "$work/random" --json
is outputs.probability.shape.0 4
for n in 3 5; do
  /usr/bin/env python3 -c "
import struct, sys
n = $n
h = \"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 8, 8), }\" % n
h += ' ' * ((64 - (len(h) + 11) % 64) % 64) + '\n'
sys.stdout.buffer.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(h)) + h.encode() + struct.pack('<%df' % (64 * n), *[i % 7 / 7 for i in range(64 * n)]))" >"$work/in$n.npy"
done
try 0 run "$work/some" -i image="$work/in3.npy" -o "$work/three" --json
is outputs.probability.shape.0 3
try 0 run "$work/some" -i image="$work/in3.npy" --reference --json
is outputs.probability.shape.0 3
try 0 check "$work/some" -i image="$work/in3.npy"
refused 3 "inputs of these shapes" -- run "$work/some" -i image="$work/in5.npy"
refused 2 "--explain" -- compile $digits --shape n=1,2 -o "$work/none" --explain "$work/chain"
[ ! -e "$work/none" ] || fail "a refused compile leaves a folder"

# A range: few programs for any size in it, with a step if one is given.
try 0 compile $digits --shape n=1..40 -o "$work/range" --json
is sizes.names.0 n
is sizes.programs.0.size.0 1
is sizes.programs.1.range.0.low 2
is sizes.programs.1.range.0.step 1
[ "$(value sizes.programs.#)" -le 4 ] || fail "many programs for n=1..40"
try 0 run "$work/range" -i image="$work/in5.npy" --json
is outputs.probability.shape.0 5
try 0 check "$work/range" -i image="$work/in5.npy"
try 0 check "$work/range" --shape n=40
try 0 check "$work/range"
refused 2 "not compiled for n=41" -- run "$work/range" --shape n=41
refused 2 "not compiled for n=0" -- run "$work/range" --shape n=0
try 0 compile $digits --shape n=8..40:8@16 -o "$work/eights" --json
[ "$(value sizes.programs.#)" -le 4 ] || fail "many programs for n=8..40:8"
try 0 check "$work/eights"
refused 2 "not compiled for n=9" -- run "$work/eights" --shape n=9
refused 2 "a step of 0" -- compile $digits --shape n=8..40:0 -o "$work/none"

# Linked: sizes go in, a size that is not there comes back as a code.
cat >"$work/use.c" <<'C'
#include "some/model.h"
static _Alignas(64) char workspace[DIGITS_WORKSPACE + DIGITS_WORKSPACE_PER_THREAD + 64];
int main(void) {
  static float image[DIGITS_IN0_BYTES / 4], p[DIGITS_OUT0_BYTES / 4];
  const int64_t three = 3, two = 2;
  if (digits_workspace(&three, 1) > sizeof workspace || digits_workspace(&two, 1) != (size_t)-1) return 1;
  if (digits_run(&two, (const void *const[]){image}, (void *const[]){p}, workspace, 0) != 4) return 2;
  for (int i = 0; i < 30; i++)
    if (p[i] != 0) return 3;
  if (digits_run(&three, (const void *const[]){image}, (void *const[]){p}, workspace, 0)) return 4;
  for (int r = 0; r < 4; r++) {
    float sum = 0;
    for (int i = 0; i < 10; i++) sum += p[10 * r + i];
    if (r < 3 ? sum < 0.99f || sum > 1.01f : sum != 0) return 5;
  }
  return DIGITS_SIZES != 1;
}
C
cc -std=c11 -Wall -Wextra -Werror -I"$work" "$work/use.c" "$work/some/model.o" -lm -o "$work/use" && "$work/use" ||
  fail "a program that links it: $?"
finish

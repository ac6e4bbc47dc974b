#!/usr/bin/env bash
# Two compiled models in one C program: their names, their headers and their constants stay apart.
source tests/cli/lib.sh "$1"

# The prefix: from the file's name, or as --name says.
cp tests/cases/output_files_collide/model.onnx "$work/1 odd-name.v2.onnx"
cp tests/cases/output_files_collide/model.onnx "$work/tarn_rt.onnx"
try 0 compile "$work/1 odd-name.v2.onnx" -o "$work/odd" --json
is name model_1_odd_name_v2
grep -q ' model_1_odd_name_v2_run(' "$work/odd/model.h" || fail "model.h has another prefix"
try 0 compile "$work/tarn_rt.onnx" -o "$work/odd" --json
is name model_tarn_rt
for wrong in "" 1a a-b "a b" _a tarn tarn_x é; do
  refused 2 --name -- compile "$work/tarn_rt.onnx" -o "$work/none" --name "$wrong"
done
[ ! -e "$work/none" ] || fail "a refused compile leaves a folder"

try 0 compile $digits --shape n=1 -o "$work/one"
try 0 compile $digits --shape n=2 -o "$work/two" --name Two
try 0 check "$work/two"
for dir in one two; do cp "$work/$dir/model.h" "$work/$dir.h"; done
cat >"$work/both.c" <<'C'
#include "one.h"
#include "two.h"
#include <stdio.h>
static char workspace[DIGITS_WORKSPACE + TWO_WORKSPACE + 64];
int main(void) {
  static float image[2 * 64], first[10], both[20];
  void *w = workspace + (64 - (size_t)workspace % 64) % 64;
  for (int i = 0; i < 2 * 64; i++) image[i] = (float)(i * i % 17) / 17;
  if (digits_run((const void *const[]){image}, (void *const[]){first}, w, NULL)) return 1;
  if (Two_run((const void *const[]){image}, (void *const[]){both}, w, NULL)) return 1;
  for (int i = 0; i < 10; i++)
    if (first[i] - both[i] > 1e-5f || both[i] - first[i] > 1e-5f) return 2;
  return DIGITS_IN0_BYTES * 2 != TWO_IN0_BYTES || digits_workspace(1) < DIGITS_WORKSPACE || Two_workspace(1) < TWO_WORKSPACE;
}
C
cc -std=c99 -Wall -Wextra -Werror -I"$work" "$work/both.c" "$work"/{one,two}/model.o -lm -o "$work/both" || fail "two objects do not link"
"$work/both" || fail "two models in one program: $?"
finish

#!/usr/bin/env bash
# Glenside's cases, as docs/exploring.md has them: products on an array, im2col, tiles, pooling on a vector unit.
source tests/cli/lib.sh "$1"
rules=examples/rules

try 0 explore $rules/product.term --hw systolic-f32 --iters 6
grep -q '  5  (systolicArray 16 16 (access 1 (input a' "$work/out" || fail "a product does not find the array"
filters='(flatten (access 1 (input w ((8 3 3 3) ()) f32)))'
windows='(flatten (squeeze 1 (windows (3 3 3) (1 1 1) (access 1 (input x ((1 3 32 32) ()) f32)))))'
goal="(reshape ((8 1 30 30) ()) (compute dotProd (cartProd $filters $windows)))"
try 0 explore $rules/convolution.term --goal "$goal"
try 1 explore $rules/convolution.term --goal "$goal" --no-rules product-flat
# 4,096 tiles of 16 x 16 x 16, 16 cycles each, and the stream does so many.
try 0 run $rules/matrix.term -o "$work/random"
try 0 compile $rules/product256.term --set "b=$work/random/out.npy" --hw systolic-f32 -o "$work/tiles" --dump offload
grep -q 'cycles: 65536 product' "$work/out" || fail "no 4,096 tiles"
# Windows that cannot be read in place are copied, and the program is right.
try 0 run $rules/filters.term -o "$work/filters"
on_array() { try 0 compile $rules/windows.term --set "w=$work/filters/out.npy" --hw systolic-f32 -o "$work/windows" "$@"; }
on_array
grep -q '1 kernels on systolic-f32, 0 on riscv64' "$work/err" || fail "im2col is not chosen: $(cat "$work/err")"
try 0 check "$work/windows"
on_array --no-rules im2col
grep -q '0 kernels on systolic-f32, 1 on riscv64' "$work/err" || fail "without im2col"
# An array whose transfers move single rows of entries reads the copy too: it is laid out entry by entry.
sed -e 's/(transfer load (from dram) (to spad) .*/(transfer load (from dram) (to spad) (entry 4))/' \
  -e '/(move load (/{N;s/ (rows rows).*/))/}' hw/systolic-f32.hw >"$work/flat.hw"
try 0 compile $rules/windows.term --set "w=$work/filters/out.npy" --hw "$work/flat.hw" -o "$work/flat"
grep -q '1 kernels on systolic-f32, 0 on riscv64' "$work/err" || fail "single rows: $(cat "$work/err")"
try 0 check "$work/flat"
# Pixels that are neighbours in main memory come in one row, with the zeros between two rows of the image in another: it takes
# hardly more cycles than an array whose transfers have rows and padding.
echo "(transpose (0 2 3 1) (transpose (1 0 2 3) (compute dotProd (cartProd (access 1 (input w ((64 64 3 3) ()) f32)) (squeeze 1
  (windows (64 3 3) (1 1 1) (access 1 (pad 3 0 1 1 (pad 2 0 1 1 (transpose (0 3 1 2) (input x ((1 28 28 64) ()) f32)))))))))))" >"$work/conv.term"
echo '(compute (map (max $0 -2)) (input w ((64 64 3 3) ()) f32))' >"$work/w.term"
try 0 run "$work/w.term" -o "$work/w"
cycles() {
  try 0 compile "$work/conv.term" --set "w=$work/w/out.npy" --hw "$1" -o "$work/conv" --dump offload
  sed -n 's/^systolic-f32: 1 kernels, .* \([0-9]*\) simulated/\1/p' "$work/out"
}
both=$(cycles systolic-f32) one=$(cycles "$work/flat.hw")
((one > 0 && one * 10 < both * 11)) || fail "$one cycles with single rows, $both otherwise"
try 0 check "$work/conv"
# Maxima over windows on a vector unit.
sed 's/(clock 1e8)/(clock 4e8)/' hw/vta-pynq.hw >"$work/vta.hw"
try 0 compile $rules/pooling.term --hw "$work/vta.hw" -o "$work/pooling"
grep -q '2 kernels on vta-pynq, 0 on cortex-a9' "$work/err" || fail "the vector unit does not pool: $(cat "$work/err")"
try 0 check "$work/pooling"
try 0 sim "$work/pooling"
finish

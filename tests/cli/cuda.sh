#!/usr/bin/env bash
# Models compiled for a GPU: what was emitted runs right in the executor of PTX, wherever there is ptxas it assembles,
# and damaged files are refused.
source tests/cli/lib.sh "$1"
# No driver, also where there is one: the loader finds a file that is none.
mkdir "$work/none"
: >"$work/none/libcuda.so.1"
export LD_LIBRARY_PATH=$work/none
ptxas=$(command -v ptxas || ls /usr/local/cuda/bin/ptxas 2>/dev/null)
[ -n "$ptxas" ] || echo "no ptxas: what is emitted is not assembled"

# compiled NAME MODEL ARGS…: for both descriptions
compiled() {
  local name=$1 model=$2
  shift 2
  for hw in sm80 sm90; do
    try 0 compile "$model" "$@" --hw cuda-$hw -o "$work/$name" || continue
    : >"$work/ptxas"
    [ -z "$ptxas" ] || [ ! -s "$work/$name/model.ptx" ] || ! grep -q '\.entry' "$work/$name/model.ptx" ||
      "$ptxas" -v -arch=sm_${hw#sm} "$work/$name/model.ptx" -o "$work/cubin" 2>"$work/ptxas" || fail "$name: ptxas"
    ! grep 'bytes spill stores' "$work/ptxas" | grep -v ' 0 bytes spill stores' || fail "$name: spills on $hw"
  done
  try 0 check "$work/$name" && grep -q '^ok' "$work/out" || fail "$name: $(cat "$work/out" "$work/err")"
}
compiled digits $digits --shape n=1
try 0 sim "$work/digits" --json
is ok true
[ "$(value 'launches.#')" -ge 8 ] || fail "digits: few launches"
[ "$(value launches.1.sectors)" -gt 0 ] || fail "digits: no sectors counted"
cat >"$work/product.term" <<'T'
(compute (map (max $0 0)) (compute dotProd (cartProd (access 1 (input x ((37 65) ()) f32)) (access 1 (input y ((50 65) ()) f32)))))
T
compiled product "$work/product.term"
# Models with roundings of every type, softmax, empty tensors, and kernels that run on the host.
for name in bf16_sums f16_norms f16_products logsumexp_rows mask_infinite hardmax_nan image_near_mean gather_i8_index onehot_u8 \
  convtranspose_edges maxpool_index_nan quantize_edges product_over_nothing pow_mixed powers_of_infinity f16_lrn \
  fmod_multiples; do
  model=$(ls tests/cases/$name/model.onnx tests/cases/$name/g.term 2>/dev/null)
  compiled "$name" "$model"
done

refused 3 "kernel k1_y: exp is not in PTX" "--numerics exact" -- compile tests/cases/logsumexp_inf/model.onnx --numerics exact \
  --hw cuda -o "$work/exact"
try 0 sim "$work/digits" -o "$work/outputs" --check
[ -s "$work/outputs/probability.npy" ] || fail "sim -o: no output"
refused 3 "cuda-sm90: nothing measures its kernels here" -- tune "$work/product.term" --hw cuda-sm90 --db "$work/none.db" --trials 2
refused 2 "holds PTX" -- sim "$work/digits" --latency 3

# Each barrier left out in turn: the executor says which threads race.
planted=0
for name in f16_norms hardmax_nan mask_of_integers; do
  compiled "$name" "tests/cases/$name/model.onnx"
  bars=$(grep -c 'bar\.sync' "$work/$name/model.ptx")
  [ "$bars" -gt 0 ] || fail "$name: no barrier"
  cp "$work/$name/model.ptx" "$work/whole.ptx"
  for i in $(seq "$bars"); do
    awk -v i="$i" '/bar\.sync/ && ++n == i { next } { print }' "$work/whole.ptx" >"$work/$name/model.ptx"
    "$tarn" check "$work/$name" >"$work/out" 2>"$work/err"
    code=$?
    [ $code = 3 ] && grep -qE 'no barrier between|nothing has written it' "$work/err" && planted=$((planted + 1)) && continue
    echo "$name: without barrier $i: exit $code $(cat "$work/out" "$work/err")"
  done
  cp "$work/whole.ptx" "$work/$name/model.ptx"
done
[ "$planted" -ge 6 ] || fail "$planted barriers left out were noticed"

# Operands held in shared memory, by a schedule that is handed in: a product whose tiles are not whole, and a padded
# window. Then faults in what was emitted, one by one: each is reported, or a value is wrong.
held() { # NAME FILE SCHEDULE
  try 0 compile "$2" --hw cuda-sm80 --numerics reassoc -o "$work/$1" --dump schedules
  sed -n '/^(kernel/p' "$work/err" "$work/out" | head -1 >"$work/$1.sched"
  echo "$3" >>"$work/$1.sched"
  compiled "$1" "$2" --numerics reassoc --schedule "$work/$1.sched"
  grep -q 'cp\.async' "$work/$1/model.ptx" || fail "$1: nothing is copied asynchronously"
}
cat >"$work/tiles.term" <<'T'
(compute (map (max $0 0)) (compute dotProd (cartProd (access 1 (input x ((45 72) ()) f32)) (access 1 (input y ((37 72) ()) f32)))))
T
cat >"$work/window.term" <<'T'
(compute dotProd (cartProd (access 1 (input w ((12 8 3 3) ()) f32)) (reshape ((9 14) (8 3 3)) (windows (8 3 3) (1 1 1) (access 0 (pad 1 0 1 1 (pad 2 0 1 1 (input x ((8 9 14) ()) f32))))))))
T
levels='(schedule (stage (acc 2) (parallel 0 32) (parallel 1 32) (serial 2 16) (serial 2 4) (unroll 2 1) (unroll 0 8) (unroll 1 16)
  (team 0 1) (team 1 1)'
held tiles "$work/tiles.term" "$levels (hold 0 shared (at 2) (slots 3) (order d2 d0) (pad 2)) (hold 1 shared (at 2) (slots 3) (order d2 d1) (pad 2))))"
held window "$work/window.term" '(schedule (stage (acc 3) (parallel 0 12) (parallel 1 3) (parallel 2 14) (serial 5 4) (serial 3 1)
  (serial 4 1) (serial 5 1) (unroll 0 3) (unroll 1 1) (team 0 1) (team 2 1) (hold 0 shared (at 3) (slots 2) (order d3 d4 d5 d0)
  (pad 1)) (hold 1 shared (at 3) (slots 2) (pad 2))))'
grep -q 'st\.shared' "$work/window/model.ptx" || fail "window: no borders are filled"
# Groups of threads that have each a part of the sums: each of the barriers around their merging counts.
held parts "$work/tiles.term" '(schedule (stage (acc 2) (parallel 0 32) (parallel 1 32) (serial 2 16) (team 2 4) (serial 2 1) (unroll 0 8)
  (unroll 1 16) (team 0 1) (team 1 1) (hold 0 shared (at 2) (slots 3)) (hold 1 shared (at 2) (slots 3))))'
refused 3 "threads share one level of a sum" -- compile "$work/tiles.term" --numerics reassoc --hw cuda-sm80 \
  -o "$work/none" --schedule <(sed 's/(team 2 4) (serial 2 1)/(team 2 4) (team 2 1)/' "$work/parts.sched")
cp "$work/parts/model.ptx" "$work/whole.ptx"
[ "$(grep -c 'bar\.sync' "$work/whole.ptx")" = 3 ] || fail "parts: not three barriers"
for n in $(grep -n 'bar\.sync' "$work/whole.ptx" | cut -d: -f1); do
  sed "${n}d" "$work/whole.ptx" >"$work/parts/model.ptx"
  "$tarn" check "$work/parts" >"$work/out" 2>"$work/err" && fail "parts: the barrier at line $n left out goes unnoticed"
done
cp "$work/tiles/model.ptx" "$work/whole.ptx"
# planted WHAT PATTERN SED-EDIT LEAST [SPARE]: at each line that matches, by itself. All but SPARE are noticed.
planted() {
  local n found=0 spare=${5:-0}
  for n in $(grep -nE "$2" "$work/whole.ptx" | cut -d: -f1); do
    sed "${n}{$3}" "$work/whole.ptx" >"$work/tiles/model.ptx"
    cmp -s "$work/whole.ptx" "$work/tiles/model.ptx" && continue
    "$tarn" check "$work/tiles" >"$work/out" 2>"$work/err" && [ $((spare--)) -le 0 ] &&
      fail "$1 at line $n goes unnoticed: $(sed -n "${n}p" "$work/whole.ptx")"
    found=$((found + 1))
  done
  [ "$found" -ge "$4" ] || fail "$1: $found planted"
  cp "$work/whole.ptx" "$work/tiles/model.ptx"
}
planted "a barrier left out" 'bar\.sync' d 1
planted "a wait left out" 'cp\.async\.wait_group' d 1
planted "a wait for one copy less" 'cp\.async\.wait_group' 's/wait_group 1/wait_group 2/' 1
# Guards are found by the bounds that the plan states, however they are compared; slots by their number.
try 0 compile "$work/tiles.term" --numerics reassoc --schedule "$work/tiles.sched" --hw cuda-sm80 -o "$work/tiles" --dump plan
cat "$work/out" "$work/err" >"$work/tiles.plan"
bounds=$(grep '(guard ' "$work/tiles.plan" | grep -oE ' 0 [0-9]+\)' | grep -oE '[1-9][0-9]*' | sort -nu)
[ "$(echo $bounds)" = "37 45 72" ] || fail "tiles: the plan guards $bounds"
for bound in $bounds; do # the rows of one copy, 0 to 7 and 32 to 39 of 45, are always inside
  planted "a guard of $bound left open" "setp\.[lg][te]\..*, ($((bound - 1))|$bound);" 's/, [0-9]*;/, 999;/' 1 $((bound == 45))
done
slots=$(grep -oE '\(held 0 \(byte 0\) [0-9]+' "$work/tiles.plan" | grep -oE '[0-9]+$')
planted "a slot skipped" "setp\.eq\..*, $slots;" "s/, $slots;/, $((slots - 1));/" 2
planted "a slot too few" '\.shared \.align' 's/\[[0-9]*\]/[8000]/' 1

# Tensor cores: products of bytes and of bf16, by schedules that are handed in.
product() { # TYPE SUM
  echo "(compute (red (sum $2) (mul (cast $2 \$0) (cast $2 \$1)) (tuple 2)) (cartProd (access 1 (input x ((45 80) ()) $1))
    (access 1 (input y ((37 80) ()) $1))))"
}
product i8 i32 >"$work/bytes.term"
product bf16 f32 >"$work/halves.term"
product f16 f32 >"$work/f16.term"
tensor() { # NAME STEPS UNIT: an instruction takes so many steps of the sum
  held "$1" "$work/$1.term" "(schedule (stage (acc 2) (parallel 0 32) (parallel 1 16) (serial 2 $(($2 * 2))) (team 0 16)
    (serial 2 $2) (unroll 1 8) (serial 0 1) (serial 1 1) (serial 2 1) (hold 0 shared (at 2) (slots 3) (skew 2))
    (hold 1 shared (at 2) (slots 3) (skew 2)) (unit $3 (rows d0) (columns d1) (sum d2))))"
  grep -q 'mma\.sync' "$work/$1/model.ptx" || fail "$1: no tensor core"
}
tensor bytes 32 mma-s8
grep -q '^ok: no difference' "$work/out" || fail "bytes: not exact: $(cat "$work/out")"
tensor halves 16 mma-bf16
tensor f16 16 mma-f16
mixed() { # TYPE TYPE: bytes, some with a sign
  echo "(compute (red (sum i32) (mul \$0 \$1) (tuple 2)) (cartProd (access 1 (compute (map (cast i32 \$0)) (access 2 (input x ((45 80) ()) $1))))
    (access 1 (compute (map (cast i32 \$0)) (access 2 (input y ((37 80) ()) $2))))))"
}
mixed u8 u8 >"$work/u8.term"
mixed u8 i8 >"$work/u8s8.term"
mixed i8 u8 >"$work/s8u8.term"
for name in u8 u8s8 s8u8; do
  tensor $name 32 mma-$name
  grep -q '^ok: no difference' "$work/out" || fail "$name: not exact: $(cat "$work/out")"
done
# Of f32 rounded to tf32: what the sum is of, what the rule makes of a plain product, and how far it may be off.
echo "(compute (red (sum f32) (mul (tf32 \$0) (tf32 \$1)) (tuple 2)) (cartProd (access 1 (input x ((45 80) ()) f32))
  (access 1 (input y ((37 80) ()) f32))))" >"$work/tf32.term"
tensor tf32 8 mma-tf32
try 0 compile "$work/tf32.term" --hw x86-64-v3 -o "$work/cpu"
echo "(compute dotProd (cartProd (access 1 (input x ((100 512) ()) f32)) (access 1 (input y ((512 512) ()) f32))))" >"$work/plain.term"
uses_tensor_cores() { # RTOL MODEL ARGS…: does it?
  try 0 compile "${@:2}" --hw cuda-sm80 --numerics approx --rtol "$1" -o "$work/plain"
  try 0 check "$work/plain" && grep -q '^ok' "$work/out" || fail "$1: $(cat "$work/out" "$work/err")"
  grep -q 'mma\.sync.*tf32' "$work/plain/model.ptx"
}
uses_tensor_cores 0.001 "$work/plain.term" || fail "no product is rounded to tf32"
uses_tensor_cores 0.001 $digits --shape n=16 || fail "no constant is rounded to tf32"
! uses_tensor_cores 0.0009 "$work/plain.term" || fail "tf32 where --rtol forbids it"
try 0 sim "$work/bytes" --json
[ "$(value launches.0.wavefronts)" = "$(value launches.0.fewest_wavefronts)" ] || fail "bytes: banks are in conflict"
cp "$work/halves/model.ptx" "$work/whole.ptx"
for n in $(grep -nE 'bar\.sync|wait_group' "$work/whole.ptx" | cut -d: -f1); do
  sed "${n}d" "$work/whole.ptx" >"$work/halves/model.ptx"
  "$tarn" check "$work/halves" >"$work/out" 2>"$work/err" && fail "halves: line $n left out goes unnoticed"
done
refused 3 "unit mma-s8: it does not compute this stage's product" -- compile "$work/halves.term" --hw cuda-sm80 -o "$work/none" \
  --schedule <(sed 's/mma-bf16/mma-s8/;s/(serial 2 16)/(serial 2 32)/;s/(serial 2 32)/(serial 2 64)/' "$work/halves.sched")
sed '0,/(\* 8 (mod d1 2))/s//(* 4 (mod d1 2))/' hw/cuda-sm80.hw >"$work/bad.hw"
refused 3 "bad.hw" "the fragment is no bijection" -- hw check "$work/bad.hw"
sed 's/(registers 65536)/(registers 512)/' hw/cuda-sm80.hw >"$work/bad.hw"
refused 3 "bad.hw" "they hold no block of 1024 threads" -- hw check "$work/bad.hw"
sed 's/(dynamic 166912)/(dynamic 490000)/' hw/cuda-sm80.hw >"$work/bad.hw"
refused 3 "bad.hw" "has no room for a block's 490000 bytes" -- hw check "$work/bad.hw"

refused 3 "a block of 2048 threads, cuda-sm80 has at most 1024" -- compile "$work/tiles.term" --hw cuda-sm80 -o "$work/none" \
  --schedule <(head -1 "$work/tiles.sched"; echo '(schedule (stage (acc 2) (parallel 0 32) (parallel 1 64) (serial 2 8) (serial 2 1)
  (team 0 1) (team 1 1) (hold 0 shared (at 2)) (hold 1 shared (at 2))))')
refused 3 "each operand of the body" -- compile "$work/tiles.term" --hw cuda-sm80 -o "$work/none" \
  --schedule <(head -1 "$work/tiles.sched"; echo "$levels (hold 1 shared (at 2) (slots 2))))")
refused 3 "a block holds" "in shared memory, cuda-sm80 has room for 166912" -- compile "$work/tiles.term" --hw cuda-sm80 -o "$work/none" \
  --schedule <(head -1 "$work/tiles.sched"; echo "$levels (hold 0 shared (at 2) (slots 41)) (hold 1 shared (at 2) (slots 41))))")

# One line each, exit 3.
cp -r "$work/digits" "$work/bad"
damage() { # FILE SED WORDS…
  local file=$1 edit=$2
  shift 2
  sed "$edit" "$work/digits/$file" >"$work/bad/$file"
  refused 3 "$file" "$@" -- check "$work/bad"
  cp "$work/digits/$file" "$work/bad/$file"
}
damage model.ptx '0,/fma.rn.f32/s//fma.qq.f32/' "fma.qq.f32" "is not simulated"
damage launch.json '0,/"grid": [0-9]*/s//"grid": -1/' '"grid"'
damage launch.json '0,/"entry": "[a-z0-9_]*"/s//"entry": "none"/' "kernel none is not in model.ptx"
damage launch.json '0,/"workspace",/s//"shelf",/' "input, output, weights, workspace, nowhere or flags"
# A lookup out of range, which the launch's flag tells; and a launch whose flag is none.
cat >"$work/rows.term" <<'T'
(compute (map (add $0 $1)) (gather 0 (input e ((30 40) ()) f32) (input n ((3) ()) i32)) (gather 0 (input f ((9 40) ()) f32) (input m ((3) ()) i32)))
T
compiled rows "$work/rows.term"
grep -q '"host"' "$work/rows/launch.json" && fail "rows: the host gathers"
ints() { # the bytes of three of them
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }"
  printf "$1"
}
for bytes in '\x08\0\0\0' '\xf7\xff\xff\xff'; do # 8 and -9 of 9 rows
  ints "\\0\\0\\0\\0$bytes\\0\\0\\0\\0" >"$work/m.npy"
  try 0 run "$work/rows" --simulate -i m="$work/m.npy"
done
for bytes in '\x09\0\0\0' '\xf6\xff\xff\xff'; do # 9 and -10
  ints "\\0\\0\\0\\0$bytes\\0\\0\\0\\0" >"$work/m.npy"
  refused 3 "an index is out of range" -- run "$work/rows" --simulate -i m="$work/m.npy"
done
cp -r "$work/rows" "$work/bad.rows"
sed '0,/"at": "flags"/s//"at": "nowhere"/' "$work/rows/launch.json" >"$work/bad.rows/launch.json"
refused 3 "launch.json" "the last argument is no flag" -- run "$work/bad.rows" --simulate
sed '/"rows":/d' "$work/rows/launch.json" >"$work/bad.rows/launch.json"
refused 3 "launch.json" "a flag of a launch without rows" -- run "$work/bad.rows" --simulate
# A lookup that nothing reads by: the kernel has its flag nonetheless.
cat >"$work/unread.term" <<'T'
(nest (stages (children 2) (shared) (split 1) (stage (own 3 2) (reduce) (map (neg $0)) (child 0 (index ((3 2) ()) (18) (d1))) (lookup 1 (index ((3 2) ()) (3) (d0))) out)) (input e ((18) ()) f32) (input n ((3) ()) i64))
T
compiled unread "$work/unread.term"
# Between kernels of the host the host gathers: nothing is copied.
cat >"$work/host.term" <<'T'
(opaque ScatterElements (axis 0) ((f32 ((30) ()))) (gather 0 (opaque ScatterElements (axis 0) ((f32 ((30) ()))) (input a ((30) ()) f32) (input i ((30) ()) i64) (input u ((30) ()) f32)) (input j ((30) ()) i64)) (input k ((30) ()) i64) (input v ((30) ()) f32))
T
compiled host "$work/host.term"
grep -q '"entry"' "$work/host/launch.json" && fail "host: the device gathers"
# More threads than a buffer has room for, where a guard is left out.
sed '0,/@%p1 bra/s/@%p1 bra.*;/;/' "$work/product/model.ptx" >"$work/wide.ptx"
cp "$work/wide.ptx" "$work/product/model.ptx"
refused 3 "model.ptx" "global" -- check "$work/product"
head -c 100 "$work/digits/weights.bin" >"$work/bad/weights.bin"
refused 3 "weights.bin" "100 bytes" -- sim "$work/bad"
finish

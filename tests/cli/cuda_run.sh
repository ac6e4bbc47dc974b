#!/usr/bin/env bash
# Programs for a GPU run: in the executor, and on a GPU, in whose place there is a driver that runs kernels in the
# executor (tests/fake_cuda).
source tests/cli/lib.sh "$1"
export LD_LIBRARY_PATH=$PWD/$build/fake_cuda
[[ $build != /* ]] || LD_LIBRARY_PATH=$build/fake_cuda

# --hw cuda: the device's description, without one the oldest.
hw() { # WANT FAKE
  FAKE_CUDA=$2 try 0 compile $digits --shape n=1 --hw cuda -o "$work/digits" --json && is hw "$1"
}
hw cuda-sm80 devices=0
hw cuda-sm90 capability=120
hw cuda-sm80 capability=86
for file in model.so model.h model.ptx launch.json weights.bin report.json; do
  [ -s "$work/digits/$file" ] || fail "no $file"
done
grep -q 'tarn_rt_cuda_pool_new(&digits_model' "$work/digits/model.h" || fail "model.h names no pool"

# The same values on the device, in the executor and in the interpreter.
try 0 run "$work/digits" -o "$work/device"
FAKE_CUDA=devices=0 try 0 run "$work/digits" --simulate -o "$work/executor"
try 0 run "$work/digits" --reference -o "$work/reference"
cmp "$work/device/probability.npy" "$work/executor/probability.npy" || fail "the executor gives other values"
[ -s "$work/reference/probability.npy" ] || fail "no reference"
try 0 run $digits --shape n=1 --hw cuda --simulate && [ "$(wc -l <"$work/out")" = 1 ] || fail "run MODEL --simulate"
try 0 check "$work/digits" && grep -q '^ok' "$work/out" || fail "check on the device"
try 0 check $digits --shape n=1 --hw cuda-sm90 --simulate && grep -q '^ok' "$work/out" || fail "check --simulate"

# Measured by the driver's events, into the store that a compile reads.
try 0 bench "$work/digits" --repeat 3 --json
is gpu "an executor of PTX"
[ "$(value 'kernels.#')" = "$(sed -n 's/#define DIGITS_KERNELS //p' "$work/digits/model.h")" ] || fail "bench: not every kernel"
cat >"$work/product.term" <<'T'
(compute (map (max $0 0)) (compute dotProd (cartProd (access 1 (input x ((37 65) ()) f32)) (access 1 (input y ((50 65) ()) f32)))))
T
try 0 tune "$work/product.term" --hw cuda-sm80 --db "$work/tuned.db" -o "$work/tuned.price" --trials 6 --json
[ "$(value measured)" -gt 3 ] || fail "tune: few measurements"
predicted() { try 0 compile "$work/product.term" --hw cuda-sm80 -o "$work/$1" "${@:2}"; }
predicted plain
predicted tuned --db "$work/tuned.db"
seconds() { try 0 bench "$work/$1" --repeat 2 --json && value seconds.median; }
awk -v a="$(seconds tuned)" -v b="$(seconds plain)" 'BEGIN { exit !(a < b) }' || fail "tuning found nothing faster"
try 0 check "$work/tuned"

# One line each.
FAKE_CUDA=devices=0 refused 3 "no NVIDIA GPU" -- bench "$work/digits"
FAKE_CUDA=devices=0 refused 3 "nothing measures its kernels here" "no NVIDIA GPU" -- tune "$work/product.term" --hw cuda \
  --db "$work/none.db"
[ ! -e "$work/none.db" ] || fail "tune left a store"
FAKE_CUDA=devices=0 refused 3 "no NVIDIA GPU" "--simulate" -- run "$work/digits"
FAKE_CUDA=driver=11030 refused 3 "driver is too old" "CUDA 11.3, 11.4 is needed" -- run "$work/digits"
FAKE_CUDA=capability=75 refused 3 "the program is for sm_80" "is sm_75" -- run "$work/digits"
FAKE_CUDA=memory=5000 refused 3 "bytes are wanted, 5000 of 5000 free" -- run "$work/digits"
FAKE_CUDA=refuse=digits_n2_0 refused 3 "kernel k2_" "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" -- run "$work/digits"
FAKE_CUDA=wild=digits_n2_0 try 3 run "$work/digits"
sed -i '/^fake CUDA/d' "$work/err"
says "kernel k2_" "CUDA_ERROR_ILLEGAL_ADDRESS"
mkdir "$work/none"
: >"$work/none/libcuda.so.1"
LD_LIBRARY_PATH=$work/none refused 3 "no NVIDIA driver: " "--simulate" -- run "$work/digits"
refused 2 "--hw cuda" "compiled already" -- run "$work/digits" --hw cuda
try 0 compile $digits --shape n=1 -o "$work/cpu"
refused 2 "--simulate" "a CPU's program" -- run "$work/cpu" --simulate
try 0 compile $digits --shape n=1 --hw cuda-sm80 --emit ptx -o "$work/ptx"
[ ! -e "$work/ptx/model.so" ] || fail "--emit ptx made model.so"
refused 3 "model.so" -- run "$work/ptx"
try 0 run "$work/ptx" --simulate
refused 2 "--emit asm: so, ptx or ll" -- compile $digits --shape n=1 --hw cuda --emit asm -o "$work/none"
finish

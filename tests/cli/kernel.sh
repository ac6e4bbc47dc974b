#!/usr/bin/env bash
# tarn kernel: schedules with prices, a schedule handed in, the plan, the code; schedules that are not legal.
source tests/cli/lib.sh "$1"

cat >"$work/product" <<'SIG'
(kernel (nest (stages (children 2) (shared) (split 2)
  (stage (own 196 1024) (reduce 64) (red sum (mul $0 $1))
    (child 0 (index ((196 1024) (64)) (12544) ((+ (* 64 d0) d2))))
    (child 1 (index ((196 1024) (64)) (65536) ((+ d1 (* 1024 d2))))) out)))
 (in f32 (12544) (1)) (const f32 (65536) (1)) (out f32 (196 1024) (1024 1)))
SIG
kernel() { local code=$1; shift; try "$code" kernel "$work/product" --hw x86-64-v3 --price analytic "$@"; }
has() { grep -qF -- "$1" "$work/out" || fail "$last: no \"$1\" in what it prints"; }

kernel 0 --top 3
[ "$(grep -c '^(schedule' "$work/out")" = 4 ] || fail "$last: the chosen schedule and three others are expected"
has "(plan"
has "(compute (mul \$0 \$1))"
# Schedules are listed by price, and the chosen one is no dearer than the first.
grep '^; .* us$' "$work/out" | grep -v chosen | awk '{ if ($2 < last) bad = 1; last = $2 } END { exit bad }' ||
  fail "$last: the schedules are not in the order of their prices"

echo '(schedule (stage (acc 2) (serial 1 16) (serial 0 6) (serial 2 1) (unroll 0 1) (unroll 1 8) (vector 1 1)))' >"$work/s"
kernel 0 --top 0 --schedule "$work/s"
has "; handed in: "
has "(accumulators 12 lanes 8"
has "(level l1 serial d0 step 6 trips 33)"
has "(loop l1 0 to 31"
kernel 0 --top 0 --schedule "$work/s" --emit asm
grep -q vfmadd "$work/out" || fail "$last: no multiply-add in the code"
kernel 0 --top 0 --emit ll
has "define "

# Loops over dims whose extents are known when the program runs.
echo '(schedule (stage (acc 2) (open 0 1 2) (serial 1 16) (serial 0 6) (serial 2 4) (unroll 0 1) (unroll 1 8) (vector 1 1) (unroll 2 1)))' >"$work/s"
kernel 0 --top 0 --schedule "$work/s" --emit asm
has "vfmadd"
sed 's/(open 0 1 2) (serial 1 16) (serial 0 6)/(open 0 1 2) (brief 1) (serial 1 2048) (serial 1 16) (serial 0 6)/;s/acc 2/acc 3/' "$work/s" >"$work/brief"
kernel 0 --top 0 --schedule "$work/brief" --emit asm
sed 's/(brief 1) //' "$work/brief" >"$work/short"
try 3 kernel "$work/product" --hw x86-64-v3 --top 0 --schedule "$work/short"
says "shorter than its step"
try 3 kernel "$work/product" --hw cuda-sm80 --top 0 --schedule "$work/s"
says "open dims are not served"

# One line that says why.
bad() { # WORDS SCHEDULE
  echo "$2" >"$work/s"
  "$tarn" kernel "$work/product" --hw x86-64-v3 --top 0 --schedule "$work/s" >/dev/null 2>"$work/err"
  [ $? = 3 ] || fail "$2: exit code 3 is expected"
  last=$2
  says "$1"
}
bad "dim 1 is not covered" '(schedule (stage (acc 0) (serial 0 1) (serial 2 1)))'
bad "do not divide one another" '(schedule (stage (acc 0) (serial 0 4) (serial 0 3) (serial 0 1) (serial 1 1) (serial 2 1)))'
bad "walks dim 3" '(schedule (stage (acc 0) (serial 3 1)))'
bad "acc beyond its levels" '(schedule (stage (acc 9) (serial 0 1) (serial 1 1) (serial 2 1)))'
bad "l2 of x86-64-v3 is no memory that a program manages" '(schedule (stage (acc 1) (serial 1 16) (serial 0 1) (serial 1 1) (serial 2 1) (hold 1 l2 (at 0))))'
bad "computes in registers" '(schedule (stage (acc 1) (serial 1 16) (serial 0 1) (serial 1 1) (serial 2 1) (unit fma (columns d1))))'
bad "no level" '(schedule (stage (acc 0) (warp 0 1)))'
# A strict sum keeps its order: no lanes along it, no loop over it outside of the accumulators.
sed -i 's/^(kernel /(strict /' "$work/product"
bad "order of a strict sum" '(schedule (stage (acc 2) (serial 0 1) (serial 1 1) (serial 2 8) (vector 2 1)))'
bad "order of a strict sum" '(schedule (stage (acc 3) (serial 0 1) (serial 2 8) (serial 1 1) (serial 2 1)))'
sed -i 's/^(strict /(kernel /' "$work/product"
refused 3 kernel -- kernel "(kernel)"
refused 3 "vta-pynq cannot run this kernel" "no unit multiplies" -- kernel "$work/product" --hw vta-pynq
finish

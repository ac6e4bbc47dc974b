#!/usr/bin/env bash
# tarn check judges each element: what it lets pass, what it does not, and what it says.
source tests/cli/lib.sh "$1"

# judged CODE PROGRAM MODEL: the first is compiled, and taken for a program of the second.
judged() {
  rm -rf "$work/p"
  try 0 compile "$2" -o "$work/p" --numerics exact
  sed -i "s|\"model\": \".*\"|\"model\": \"$3\"|" "$work/p/report.json"
  try "$1" check "$work/p" --samples 2 --json
}
x='(input x ((4 6) ()) f32)' m='(cast f32 (lt $0 0))'
two() { echo "(compute (map $1) $x (input b ((4 6) ()) f32))" >"$work/$2.term"; }
two "(add (mul (sub 1 $m) -3.4e38) \$1)" mask
two "(add (mul $m 3.4e38) (add -3.4e38 \$1))" lost
two "(add (mul (sub 1 $m) -10000.0) \$1)" mask4
two "(add (mul $m 10000.0) (add -10000.0 \$1))" lost4
two "(select (lt \$0 0) \$1 (mul \$1 1000000.0))" large
two "(select (lt \$0 0) (mul \$1 1.0001) (mul \$1 1000000.0))" off
two "(add \$0 \$1)" sum
two "(sub (add \$0 \$1) 0.0)" same
two "(select (lt \$0 0) (add \$0 \$1) (div \$1 0.0))" infinite
echo "(compute (map \$0) (input x ((4 6) ()) i32))" >"$work/int.term"
echo "(compute (map (cast i64 \$0)) (input x ((4 6) ()) i32))" >"$work/int64.term"
echo "(compute (map (add \$0 (i32 1))) (input x ((4 6) ()) i32))" >"$work/int1.term"

# An operand is lost where a large one was added and taken away, beside elements as large; a small element is off by a
# ten-thousandth; an infinity, and a wrong integer.
for pair in "lost mask" "lost4 mask4" "off large" "infinite sum" "int1 int"; do
  read -r program model <<<"$pair"
  judged 1 "$work/$program.term" "$work/$model.term"
  is ok false
  is worst.output out
  [ "$(value 'worst.index.#')" = 2 ] || fail "$pair: worst has no index"
  for key in got wanted allowed seed; do value worst.$key >/dev/null; done
done
for pair in "mask mask" "large large" "same sum" "infinite infinite" "int int"; do
  read -r program model <<<"$pair"
  judged 0 "$work/$program.term" "$work/$model.term"
  is ok true
done
judged 1 "$work/off.term" "$work/large.term"
try 0 check "$work/p" --rtol 1e-3
try 1 check "$work/p"
grep -q '^WRONG: out\[[0-3],[0-5]\] is [-0-9.e]*, [-0-9.e]* is right ([-0-9.e]* allowed)' "$work/out" || fail "check: $(cat "$work/out")"
judged 1 "$work/int.term" "$work/int64.term"
is wrong "out has another type"
judged 3 "$work/int.term" "$work/sum.term"
says "not as many inputs" sum.term

# What rounding does is no fault: 16-bit floats, f32 that overflows, cancellation, functions, an algorithm of class approx.
for c in check_f16 check_overflow; do try 0 check tests/cases/$c/model.onnx --samples 3; done
echo "(compute (map (exp (mul 100 \$0))) $x)" >"$work/overflow.term"
echo "(compute (map (cast f16 (add (mul \$0 \$0) (tanh \$1))) ) (input x ((4 6) ()) f16) (input b ((4 6) ()) f16))" >"$work/f16.term"
two "(sub (add (mul \$0 1000) \$1) (mul \$0 1000))" cancel
for c in overflow f16 cancel; do try 0 check "$work/$c.term" --samples 5; done
echo "(compute dotProd (cartProd (windows (16 3 3) (1 1 1) (access 1 (input x ((1) (16 34 34)) f32))) (input w ((16) (16 3 3)) f32)))" \
  >"$work/conv.term"
try 0 compile "$work/conv.term" -o "$work/conv" --numerics approx --json
value bound >/dev/null
try 0 check "$work/conv" --samples 3

# Random integers are what the graph can take: indices of the whole axis, and no others.
i() { echo "(gather 0 (input e (($1) ()) f32) (compute (map (add (cast i64 \$0) (i64 3))) (input n ((4000) ()) $2)))" >"$work/index.term"; }
i 30 i32
try 0 compile "$work/index.term" -o "$work/index" --json
is inputs.0.low -1
is inputs.1.low -33
is inputs.1.high 26
try 0 check "$work/index" --samples 2
try 0 check "$work/index.term"
try 0 run "$work/index" --seed 4
try 0 run "$work/index.term" --reference
try 0 bench "$work/index" --repeat 1
i 200 u8
try 0 compile "$work/index.term" -o "$work/index" --json
is inputs.1.low 0
is inputs.1.high 196
echo "(compute (map (cast i32 \$0)) (input x ((4000) ()) u8))" >"$work/bytes.term"
try 0 run "$work/bytes.term" -o "$work/y"
[ "$(od -An -v -t u4 -w4 -j128 "$work/y/out.npy" | sort -n | uniq | wc -l)" = 256 ] || fail "not all bytes are drawn"
finish

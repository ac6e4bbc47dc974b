#!/usr/bin/env bash
# tests/test_offload.sh BUILD: what an accelerator takes of kernels whose dims are no whole number of its entries, and the
# reasons for what it leaves.
set -uo pipefail
build=$(realpath "$1")
top=$(cd "$(dirname "$0")/.." && pwd)
tarn=$build/tarn
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
say() { echo "test_offload: $*"; bad=1; }

cd "$work"
compile() { timeout 120 "$tarn" compile "$@" -o out --dump offload 2>&1; }
left() { # MODEL, HW, KERNELS OF THE MACHINE, WORDS: the reason for the others
  local text
  text=$(compile "$1" --hw "$2") || say "$1: $text"
  grep -q "^$2: $3 kernels," <<<"$text" || say "$1 on $2: not $3 kernels: $text"
  grep -qE -- "^k[0-9].*: $4" <<<"$text" || say "$1 on $2: no '$4' in: $text"
}

# five channels in, with the copies to and from entries
text=$(compile "$top/tests/cases/gemmini_five_channels/model.onnx" --hw gemmini-default) || say "$text"
grep -q '^gemmini-default: 1 kernels,' <<<"$text" || say "five channels stay on the host: $text"
grep -q '^ok' <<<"$("$tarn" check out)" || say "five channels: other values"
left "$top/tests/cases/gemmini_five_channels/model.onnx" vta-pynq 0 'the vector unit has no round$'

numbers() { for ((i = 0; i < $1; i++)); do printf ' %d' $((i * 7 % 31 - 15)); done; }
map='(cast i8 (min (max (round (mul (cast f32 $0) (f32 0.01))) (f32 -128)) (f32 127)))'
product() { # M K N
  echo "(compute (map $map) (compute (dotProd i32) (cartProd (access 1 (compute (map (cast i32 \$0)) (input x (($1 $2) ()) i8)))" \
    "(access 1 (compute (map (cast i32 \$0)) (const i8 (($3 $2) ())$(numbers $(($3 * $2)))))))))"
}
product 6 1 3 >outer.term
left outer.term gemmini-default 0 'a product of which nothing is summed$'
echo '(compute (map (cast i8 (min (max (add (cast i32 $0) (cast i32 $1)) (i32 -128)) (i32 127)))) (input x ((9 9 5) ()) i8)
  (input r ((9 9 5) ()) i8))' >sum.term
left sum.term vta-pynq 0 '.*faster on the host: [0-9.]+ us against [0-9.]+ us$'
echo '(compute (reduceMax i8) (windows (3 3) (1 1) (access 2 (input x ((1 64 20 20) ()) i8))))' >pool.term
left pool.term gemmini-default 0 'nothing brings windows of i8 to the vector unit$'
# each channel by itself: a product of a matrix with zeros, which the host need not multiply
echo "(compute (map $map) (compute (dotProd i32) (pair (access 1 (compute (map (cast i32 \$0)) (input x ((96 40) ()) i8)))" \
  "(access 1 (compute (map (cast i32 \$0)) (const i8 ((96 40) ())$(numbers 3840)))))))" >rows.term
left rows.term gemmini-default 0 '.*faster on the host: [0-9.]+ us against [0-9.]+ us$'
exit $bad

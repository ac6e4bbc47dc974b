#!/usr/bin/env bash
# tests/test_variants.sh BUILD [--all]: however a network is written, it ends at the same number of kernels, give or take
# one, and computes the same. Small networks stand beside the script that made them; with --all, the script makes
# ResNet-18, which must come down to what it needs, and a two-layer encoder as well. And every family of rules changes
# some of them.
set -uo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
fail() { echo "FAILED: $*"; bad=1; }

# kernels MODEL EMIT: how many, layout copies apart; the program stays in $work/out. By the analytic price: a learned one may
# find a copy and a kernel of another form equally dear (28 kernels for 22 and 4 copies, priced 15.63 and 15.65 ms).
kernels() {
  "$build/tarn" compile "$1" -o "$work/out" --threads 1 --price analytic --emit "$2" --json >"$work/json" 2>"$work/err" ||
    { sed 's/^/    /' "$work/err" >&2; echo none; return; }
  "$build/bin/json_get" kernels <"$work/json"
}
# same BASE MOST EMIT VARIANT…: BASE has at most MOST kernels, and each variant as many as BASE ± 1.
same() {
  local base=$1 most=$2 emit=$3 n m
  shift 3
  n=$(kernels "$base" "$emit")
  [[ $n =~ ^[0-9]+$ && $n -le $most ]] || { fail "$(basename "$base"): $n kernels, at most $most expected"; return; }
  for v in "$@"; do
    m=$(kernels "$v" "$emit")
    [[ $m =~ ^[0-9]+$ ]] && ((m >= n - 1 && m <= n + 1)) || fail "$(basename "$v"): $m kernels, $(basename "$base") has $n"
    [ "$emit" = o ] || "$build/tarn" check "$work/out" --samples 1 >"$work/err" 2>&1 || fail "$(basename "$v"): $(cat "$work/err")"
  done
}

# differs FAMILY MODEL: without the family another program comes out, which computes the same.
differs() {
  "$build/tarn" compile "$2" -o "$work/with" --threads 1 >/dev/null 2>&1 || fail "$2 does not compile"
  "$build/tarn" compile "$2" -o "$work/without" --threads 1 --no-rules "$1" >/dev/null 2>&1 || fail "--no-rules $1: $2 does not compile"
  ! cmp -s "$work/with/program.tarn" "$work/without/program.tarn" || fail "--no-rules $1 leaves $(basename "$2") as it was"
  "$build/tarn" check "$work/without" --samples 1 >"$work/err" 2>&1 || fail "--no-rules $1: $(cat "$work/err")"
}

here=tests/data/variants
same $here/cnn.onnx 8 so $here/cnn.*.onnx
same $here/layer-erf.onnx 9 so $here/layer-tanh.onnx $here/layer-erf.shuffle.onnx
for family in fusion constants layout interleave; do differs $family $here/blocks.onnx; done
differs merging $here/layer-erf.onnx
differs merging $here/cnn.conv-shifts.onnx
if [ "${2-}" = --all ]; then
  script="/usr/bin/python3 tests/variants/variants.py"
  kinds="conv-shifts conv-rows conv-columns conv-gather bn-affine bn-steps shuffle"
  for net in resnet18 encoder-erf encoder-tanh; do $script make $net "$work/$net.onnx" || fail "make $net"; done
  for kind in $kinds; do $script rewrite "$work/resnet18.onnx" "$work/resnet18.$kind.onnx" "$kind" || fail "$kind"; done
  same "$work/resnet18.onnx" 24 o "$work"/resnet18.*.onnx
  same "$work/encoder-erf.onnx" 40 o "$work/encoder-tanh.onnx"
fi
exit $bad

#!/usr/bin/env bash
# examples/kernels/run.sh [TARN]: compiles tile8.c, checks the rule that calls it, and compiles a
# product with it, in a folder of its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tarn=$(realpath "${1:-$here/../../build/tarn}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/tile8.* "$here/product.term" "$work"
cd "$work"
${CC:-cc} -O3 -fPIC -I "$here/../.." -c tile8.c # add -march=native: then it pays more often
"$tarn" rules check tile8.rules
"$tarn" compile product.term -o product --hw x86-64-v3 --rules tile8.rules --explain chain
"$tarn" check product
"$tarn" proof check chain --replay --rules tile8.rules
grep -A 6 '"given"' product/report.json
grep '"flop"' product/report.json
# the same with a price that tarn tune measures here
sed 's/(cycles .*/(measured)/' tile8.rules >measured.rules
"$tarn" compile product.term -o measured --rules measured.rules
"$tarn" tune product.term --rules measured.rules --db tiles.db --trials 4 -o tiles.price
"$tarn" compile product.term -o measured --rules measured.rules --db tiles.db
"$tarn" check measured

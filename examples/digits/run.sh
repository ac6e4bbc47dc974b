#!/usr/bin/env bash
# The demo: examples/digits/run.sh BUILD_DIR. A small classifier from model to program, and what the rules did for it.
# What it writes stays in BUILD_DIR/demo.
set -euo pipefail
export LC_ALL=C
build=$(cd "${1:?usage: run.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tarn=$build/tarn out=$build/demo model=$here/digits.onnx
count=359   # held-out images
rm -rf "$out" && mkdir -p "$out"
echo "; no rules" >"$out/none.rules"

number() { sed -n "s/^  *\"$2\": \([0-9.e+-]*\),*$/\1/p" "$out/$1/report.json" | head -n 1; }   # PROGRAM KEY
compile() { # PROGRAM IMAGES OPTIONS…
  local name=$1 n=$2
  shift 2
  "$tarn" compile "$model" -o "$out/$name" --shape "n=$n" --threads 1 "$@" 2>>"$out/log" || { tail -n 3 "$out/log" >&2; exit 1; }
}
# The least of several rounds, in which the programs take turns.
measure() {
  local round name
  for round in 1 2 3; do
    for name in "$@"; do
      "$tarn" bench "$out/$name" --threads 1 --repeat 20 | sed -n '1s/.*median, \([0-9.e+-]*\) ms min.*/\1/p' >>"$out/$name/ms"
    done
  done
}
row() { # PROGRAM LABEL
  printf '  %-34s %7s %12.2f ms %12.2f ms\n' "$2" "$(number "$1" kernels)" \
    "$(awk "BEGIN { print 1000 * $(number "$1" price) }")" "$(sort -g "$out/$1/ms" | head -n 1)"
}

echo "digits.onnx: a convolutional network of five layers for 8 x 8 images of handwritten digits"
echo
echo "Kernels before and after, and the time for all $count held-out images at once on one thread:"
printf '  %-34s %7s %15s %15s\n' "" kernels predicted measured
compile before $count --only-rules "$out/none.rules"
compile after $count --explain "$out/proof"
mattered=()
for family in $("$tarn" rules list | awk '$3 == "kernel" && !seen[$2]++ { print $2 }'); do
  compile "no-$family" $count --no-rules "$family"
  cmp -s "$out/no-$family/program.tarn" "$out/after/program.tarn" ||
    mattered+=("$(number "no-$family" price) $family")
done
mapfile -t mattered < <(printf '%s\n' "${mattered[@]}" | sort -gr | awk 'NR <= 3 { print $2 }')
measure before after "${mattered[@]/#/no-}"
row before "as the model says, no rules"
row after "with all rules"
for family in "${mattered[@]}"; do row "no-$family" "all but the family $family"; done
echo
echo "Rules that were applied, and how often:"
sed -n '/^  "rules": {/,/^  }/s/^    "\(.*\)": \([0-9]*\),*$/\2 \1/p' "$out/after/report.json" | sort -rn |
  awk '{ printf "%s%s %s", (NR > 1 ? ", " : "  "), $2, $1 } END { print "" }'
echo
echo "One chain: how the first convolution, its batch norm and its ReLU became one kernel"
awk -f "$here/chain.awk" "$out/proof"
echo "  the whole proof ($out/proof):" "$("$tarn" proof check "$out/proof" --replay --model "$model" --shape n=$count | head -n 2 | sed 's/^ *//' | paste -sd ';' | sed 's/;/; /')"
echo
echo "The program for one image, linked into a C program with nothing of tarn (examples/digits/demo.c):"
start=$(date +%s%N)
"$tarn" run "$model" --shape n=$count --reference -i "image=$here/held_images.npy" -o "$out/reference" >/dev/null
end=$(date +%s%N)
for kind in plain tuned; do
  rules=()
  [ $kind = tuned ] || rules=(--only-rules "$out/none.rules")
  compile one-$kind 1 "${rules[@]}"
  ${CC:-cc} -std=c17 -O2 -I"$out/one-$kind" "$here/demo.c" "$out/one-$kind/model.o" -lm -o "$out/digits-$kind"
done
"$out/digits-tuned" "$here/held_images.npy" "$here/held_labels.npy" --reference "$out/reference/probability.npy" \
  "$here"/samples/*.pgm >"$out/tuned.txt"
sed -n 's/^accuracy/  accuracy/p' "$out/tuned.txt"
microseconds() { sed -n 's/^time for one image, one thread: //p'; }
echo "  one image: $(microseconds <"$out/tuned.txt"); unoptimised:" \
  "$("$out/digits-plain" "$here/held_images.npy" "$here/held_labels.npy" | microseconds);" \
  "reference interpreter: $(((end - start) / 1000 / count)) microseconds, loading included"
echo "  samples:"
sed -n 's/^\([0-9]\.pgm.*\)$/\1/p' "$out/tuned.txt" | sed 's/   /\n/g' | paste -d '|' - - - - - | sed 's/^/    /; s/|/   /g'

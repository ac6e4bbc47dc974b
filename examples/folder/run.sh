#!/usr/bin/env bash
# examples/folder/run.sh BUILD_DIR [FOLDER]: builds the application and classifies a folder of images; without one, those of
# examples/digits/samples. What it writes stays in BUILD_DIR/folder.
set -euo pipefail
build=$(cd "${1:?usage: run.sh BUILD_DIR [FOLDER]}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
out=$build/folder
mkdir -p "$out"
"$build/tarn" compile "$here/../digits/digits.onnx" --shape n=1 --threads 1 -o "$out/digits" 2>"$out/log" || { cat "$out/log" >&2; exit 1; }
${CC:-cc} -std=c17 -O2 -Wall -Wextra -I"$out/digits" "$here/classify.c" "$out/digits/model.o" -lm -o "$out/classify"
"$out/classify" "${2:-$here/../digits/samples}"

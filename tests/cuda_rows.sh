#!/usr/bin/env bash
# tests/cuda_rows.sh BUILD [--all]: single operators compiled for a GPU, in the executor (cuda_rows.py). Exit code 77, skipped,
# without python3-onnx.
set -euo pipefail
build=$1
cd "$(dirname "$0")/.."
/usr/bin/python3 -c 'import numpy, onnx' 2>/dev/null || { echo "skipped: python3-onnx and python3-numpy make the models"; exit 77; }
/usr/bin/python3 tests/cuda_rows.py "$build/tarn" "$build/cuda_rows${2:-}" ${2:-}
/usr/bin/python3 tests/cuda_rows.py "$build/tarn" "$build/cuda_rows${2:-}" ${2:-} --rtol 0.001

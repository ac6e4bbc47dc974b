#!/usr/bin/env bash
# tests/cuda_faults.sh BUILD [--all]: faults planted into programs for a GPU (cuda_faults.py). Exit code 77, skipped, without python3.
set -euo pipefail
build=$1
cd "$(dirname "$0")/.."
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 tests/cuda_faults.py "$build/tarn" "$build/cuda_faults${2:-}" ${2:-}

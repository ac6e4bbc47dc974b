#!/usr/bin/env bash
# tests/networks.sh BUILD [MODELS]: seven whole networks. MODELS is a folder that tools/export_models.py wrote; without one,
# BUILD/networks is made. Exit code 77, skipped, when that needs PyTorch and there is none.
set -euo pipefail
build=$1 models=${2:-$1/networks}
cd "$(dirname "$0")/.."
skip() { echo "skipped: $*"; exit 77; }

python=/usr/bin/python3
"$python" -c 'import numpy' 2>/dev/null || skip "python3-numpy is not installed"
if [ ! -e "$models/.complete" ] && [ $# -lt 2 ]; then
  "$python" -c 'import torch, torchvision, onnx' 2>/dev/null ||
    skip "python3-torch, python3-torchvision and python3-onnx are needed to export the networks"
  "$python" -W ignore tools/export_models.py "$models"
  touch "$models/.complete"
fi
"$python" tests/networks.py "$build/tarn" "$models"
"$python" tests/accelerators.py "$build/tarn" "$models"
"$python" tests/cuda_networks.py "$build/tarn" "$models"

#!/usr/bin/env bash
# bench/run.sh BUILD [MODELS [OPTIONS OF networks.py…]]: whole networks beside ONNX Runtime, as ratios. MODELS is a folder that
# tools/export_models.py wrote; without one, BUILD/networks is made, which needs PyTorch. Then the trained networks inside two
# PyPI packages. Results: BUILD/bench/*.json.
set -euo pipefail
build=$1 models=${2:-$1/networks}
shift $(($# < 2 ? $# : 2))
cd "$(dirname "$0")/.."
bench/setup.sh "$build"
if ! ls "$models"/*.onnx >/dev/null 2>&1; then
  /usr/bin/python3 -c 'import torch, torchvision, onnx' 2>/dev/null || {
    echo "bench/run.sh: no networks in $models, and exporting them needs python3-torch, python3-torchvision, python3-onnx:" >&2
    echo "  apt-get install --no-install-recommends python3-torch python3-torchvision python3-onnx" >&2
    exit 1
  }
  /usr/bin/python3 -W ignore tools/export_models.py "$models"
fi
mkdir -p "$build/bench"
lscpu | sed -n 's/^Model name: */on /p'
"$build/bench-venv/bin/python" bench/networks.py "$models" --tarn "$build/tarn" --out "$build/bench/networks.json" "$@"
echo
echo "trained networks of other people, on real inputs:"
"$build/bench-venv/bin/python" bench/thirdparty.py --tarn "$build/tarn" --out "$build/bench/thirdparty.json"

#!/usr/bin/env bash
# bench/run.sh BUILD [MODELS [OPTIONS OF networks.py…]]: whole networks and single operators beside the engines that
# bench/setup.sh installed (run `bench/setup.sh BUILD all` first for all of them), then the trained networks inside two PyPI
# packages. MODELS is a folder that tools/export_models.py wrote; without one, BUILD/networks is made, which needs PyTorch.
# With all of them the operators take hours: Halide's schedulers may work four minutes on a row. bench/ops.py has --engines.
# Results: BUILD/bench/. To repeat the measuring alone: the lines below with `measure` instead of `all`, and --again.
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
python=$build/bench-venv/bin/python
lscpu | sed -n 's/^Model name: */on /p'
"$python" bench/networks.py all "$models" "$build/bench/networks" --tarn "$build/tarn" "$@"
echo
"$python" bench/ops.py all "$build/bench/ops" --tarn "$build/tarn"
echo
echo "trained networks of other people, on real inputs:"
"$python" bench/thirdparty.py --tarn "$build/tarn" --out "$build/bench/thirdparty.json"

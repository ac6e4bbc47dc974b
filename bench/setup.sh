#!/usr/bin/env bash
# bench/setup.sh BUILD: what the benchmarks compare with, in a virtual environment of its own (BUILD/bench-venv), from PyPI.
# Nothing else of tarn needs it.
set -euo pipefail
venv=$1/bench-venv
python=$venv/bin/python
if [ ! -x "$python" ]; then
  /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo "bench/setup.sh: python3-venv is needed: apt-get install --no-install-recommends python3-venv" >&2
    exit 1
  }
  /usr/bin/python3 -m venv "$venv"
fi
have() { "$python" -c 'from importlib.metadata import version as v; [v(p) for p in ("numpy", "onnx", "onnxruntime", "rapidocr-onnxruntime", "magika")]' 2>/dev/null; }
have || "$python" -m pip install --quiet numpy onnx onnxruntime rapidocr-onnxruntime magika
"$python" -c 'import onnxruntime; print("ONNX Runtime", onnxruntime.__version__)'

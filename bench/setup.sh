#!/usr/bin/env bash
# bench/setup.sh BUILD [all|gpu]: what the benchmarks compare with, in a virtual environment of its own (BUILD/bench-venv), from PyPI,
# at the versions that bench/notes/performance.md reports. Nothing else of tarn needs it. ONNX Runtime, OpenVINO and two packages with
# trained networks are 0.3 GB; all adds Halide, IREE, TVM with what its tuner needs, and PyTorch, whose wheel for Linux brings
# 6 GB of CUDA along. apache-tvm-ffi: with 0.1.15, which pip would take, TVM 0.27.0.post1 crashes when it writes a record.
# gpu: ptxas, NVRTC and Triton (0.4 GB), for bench/gpu/run.sh; with a card PyTorch, which brings the last two.
set -euo pipefail
venv=$1/bench-venv
python=$venv/bin/python
some=(numpy==2.4.6 onnx==1.23.2 onnxruntime==1.31.1 openvino==2026.4.1 rapidocr-onnxruntime magika==1.0.3)
more=(torch==2.15.0 iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 halide==21.0.0
  apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1 xgboost-cpu==3.2.0 psutil==7.2.2 cloudpickle==3.1.2)
if [ "${2:-}" = gpu ]; then
  some=(numpy==2.4.6 onnx==1.23.2 nvidia-cuda-nvcc-cu12==12.9.86)
  if nvidia-smi -L >/dev/null 2>&1; then some+=(torch==2.15.0); else some+=(nvidia-cuda-nvrtc-cu12==12.9.86 triton==3.9.0); fi
fi
[ "${2:-}" = all ] && some+=("${more[@]}")
if [ ! -x "$python" ]; then
  /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo "bench/setup.sh: python3-venv is needed: apt-get install --no-install-recommends python3-venv" >&2
    exit 1
  }
  /usr/bin/python3 -m venv "$venv"
fi
have() {
  "$python" - "${some[@]%%=*}" <<'EOF' 2>/dev/null
import sys
from importlib.metadata import version
[version(p) for p in sys.argv[1:]]
EOF
}
have || "$python" -m pip install --quiet "${some[@]}"
[ "${2:-}" = gpu ] || "$python" bench/peers/__init__.py

#!/usr/bin/env bash
# bench/gpu/run.sh BUILD [MODELS]: what there is to see of programs for a GPU, in one command. Without a card: the executor on PTX
# that NVRTC and Triton make anew, and ptxas on what tarn emits. With one: also the whole table (table.py), with the card's name,
# beside PyTorch (cuBLAS, cuDNN), torch.compile and Triton. MODELS: a folder of networks that tools/export_models.py wrote.
# Results: BUILD/bench/gpu/.
set -euo pipefail
build=$1 models=${2:-$1/networks}
cd "$(dirname "$0")/../.."
bench/setup.sh "$build" gpu
python=$build/bench-venv/bin/python out=$build/bench/gpu
mkdir -p "$out"

for target in sm_80 sm_90; do
  rm -rf "$out/texts-$target"
  "$python" bench/gpu/texts.py "$out/texts-$target" $target
  echo "the executor, on texts of NVRTC and Triton for $target:"
  "$build/bin/test_ptx_texts" "$PWD/$out/texts-$target"
done

ptxas=$(command -v ptxas || ls "$build"/bench-venv/lib/python3*/site-packages/nvidia/cuda_nvcc/bin/ptxas /usr/local/cuda/bin/ptxas 2>/dev/null | head -1)
echo "ptxas on what tarn emits (kernels, most registers, bytes spilled):"
for model in "$models"/*.onnx; do
  [ -e "$model" ] || { echo "  no networks in $models"; break; }
  for target in 80 90; do
    dir=$out/$(basename "$model" .onnx)-$target
    "$build/tarn" compile "$model" --hw cuda-sm$target --emit ptx -o "$dir" >/dev/null 2>&1 || { echo "  $dir: not compiled"; continue; }
    "$ptxas" -v -arch=sm_$target "$dir/model.ptx" -o /dev/null 2>"$dir/ptxas.txt" || { echo "  $dir: ptxas refuses it"; continue; }
    awk -v name="$(basename "$dir")" '/Used [0-9]+ registers/ { n++; for (i = 1; i < NF; i++) if ($i == "Used" && $(i + 1) > most) most = $(i + 1) + 0 }
      /bytes spill stores/ { for (i = 1; i < NF; i++) if ($(i + 1) == "bytes" && $(i + 2) == "spill") spilled += $i }
      END { printf "  %-22s %4d %4d %6d\n", name, n, most, spilled }' "$dir/ptxas.txt"
  done
done

if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "no card here: nothing is timed"
  exit 0
fi
"$python" bench/gpu/table.py "$out/table" --tarn "$build/tarn" --models "$models"

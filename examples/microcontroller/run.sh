#!/usr/bin/env bash
# examples/microcontroller/run.sh BUILD_DIR: the digits as a program for a Cortex-M4, run on an emulated board. What it writes
# stays in BUILD_DIR/microcontroller. Needs clang-19, lld-19 and qemu-system-arm.
set -euo pipefail
build=$(cd "${1:?usage: run.sh BUILD_DIR}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
out=$build/microcontroller
for program in clang-19 ld.lld-19 qemu-system-arm; do
  command -v $program >/dev/null || { echo "run.sh: $program is not installed" >&2; exit 77; }
done
mkdir -p "$out"
"$build/tarn" compile "$here/../digits/digits.onnx" --shape n=1 --hw cortex-m4 -o "$out/model"

{ # the images as bytes
  echo "static const unsigned char images[10][64] = {"
  for k in 0 1 2 3 4 5 6 7 8 9; do
    awk 'NR > 3 { for (i = 1; i <= NF; i++) printf "%s, ", $i }' "$here/../digits/samples/$k.pgm" | sed 's/.*/  {&},/'
  done
  echo "};"
} >"$out/images.h"
clang-19 --target=thumbv7em-none-eabihf -mcpu=cortex-m4 -ffreestanding -fno-builtin -Os -Wall -Wextra -Werror \
  -I"$out" -I"$out/model" -c "$here/main.c" -o "$out/main.o"
ld.lld-19 --gc-sections -T "$here/mps2.ld" "$out/main.o" "$out/model/model.o" -o "$out/digits.elf"
/usr/lib/llvm-19/bin/llvm-size "$out/digits.elf"
# One instruction a nanosecond, so that a tick of 25 MHz is 40 of them.
timeout 60 qemu-system-arm -machine mps2-an386 -cpu cortex-m4 -icount shift=0 -nographic -monitor none -serial none \
  -semihosting-config enable=on,target=native -kernel "$out/digits.elf"

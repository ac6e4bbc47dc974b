#!/usr/bin/env bash
# Objects for other CPUs, by their shipped descriptions: of the right machine, with nothing undefined but libm's functions, and
# they link: shared, and statically into a program with a start of its own. The demo's model is called by its default prefix.
source tests/cli/lib.sh "$1"
bin=/usr/lib/llvm-19/bin
maths=' acosf acoshf asinf asinhf atanf atanhf coshf cosf erff expf fmodf logf log1pf powf roundevenf sinf sinhf tanf tanhf memcpy memset memmove '

start() { # MACHINE PREFIX: assembly of a program that calls the model and ends, and of whatever libm it lacks
  echo '.globl _start'
  echo '_start:'
  case $1 in
  aarch64) printf '  bl %s_run\n  mov x8, #93\n  svc #0\n' "$2" ;;
  riscv64) printf '  call %s_run\n  li a7, 93\n  ecall\n' "$2" ;;
  esac
  for f in $undefined; do printf '.globl %s\n%s:\n  ret\n' "$f" "$f"; done
}
for target in 'aarch64 AArch64' 'riscv64 RISC-V'; do
  read -r hw machine <<<"$target"
  for model in "$digits --shape n=1" tests/data/onnx/blocks.onnx tests/data/onnx/activation.onnx tests/data/onnx/softmax.onnx tests/cases/f16_add/model.onnx; do
    out=$work/$hw-$(basename "${model%% *}")
    # shellcheck disable=SC2086
    try 0 compile $model --hw "$hw" --emit o -o "$out" || continue
    [ ! -e "$out/model.so" ] || fail "--emit o writes a shared object"
    "$bin/llvm-readelf" -h "$out/model.o" | grep "Machine: *$machine" >/dev/null || fail "$out: not for $machine"
    undefined=$("$bin/llvm-nm" -u "$out/model.o" | awk '{ print $2 }' | sort -u)
    for f in $undefined; do [[ $maths == *" $f "* ]] || fail "$hw, $model: needs $f"; done
    "$bin/ld.lld" -shared "$out/model.o" -o "$out/model.so" || fail "$hw, $model: does not link as a shared object"
    "$bin/ld.lld" -r "$out/model.o" -o "$out/again.o" || fail "$hw, $model: ld -r"
    start "$hw" "$(basename "${model%% *}" .onnx)" >"$out/start.s"
    "$bin/llvm-mc" -filetype=obj -triple="$hw-unknown-linux-gnu" \
      $([ "$hw" = riscv64 ] && echo -mattr=+d,+m,+a,+f,+c -target-abi=lp64d) "$out/start.s" -o "$out/start.o" &&
      "$bin/ld.lld" -static "$out/start.o" "$out/again.o" -o "$out/program" || fail "$hw, $model: does not link as a program"
  done
  try 0 compile $digits --shape n=1 --hw "$hw" -o "$work/so-$hw"
  "$bin/llvm-readelf" -h "$work/so-$hw/model.so" | grep "Machine: *$machine" >/dev/null || fail "$hw: model.so"
  "$bin/llvm-nm" -D --defined-only "$work/so-$hw/model.so" | grep ' T digits_run$' >/dev/null || fail "$hw: no digits_run"
  [ "$(uname -m)" = "$hw" ] || { try 3 check "$work/so-$hw" && says "compiled for $hw"; }
done
finish

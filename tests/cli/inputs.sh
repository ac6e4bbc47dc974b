#!/usr/bin/env bash
# What is wrong with an input is said in one line that names it; exit code 3; nothing is left behind.
source tests/cli/lib.sh "$1"

# Files that are not there, or not what they should be.
for c in compile run check bench explore; do refused 3 none.onnx "No such file" -- $c "$work/none.onnx"; done
refused 3 none.json "No such file" -- extract "$work/none.json"
refused 3 none.proof "No such file" -- proof check "$work/none.proof"
refused 3 none.rules "No such file" -- rules list "$work/none.rules"
refused 3 none.hw -- hw show none.hw
size=$(stat -c %s $digits)
for keep in 0 1 100 $((size / 2)) $((size - 1)); do
  head -c "$keep" $digits >"$work/cut.onnx"
  refused 3 cut.onnx -- compile "$work/cut.onnx" -o "$work/none" --shape n=1
done
head -c 4096 /dev/zero >"$work/zero.onnx"
refused 3 zero.onnx -- compile "$work/zero.onnx" -o "$work/none"
echo '(compute nonsense' >"$work/bad.term"
refused 3 bad.term:1 -- explore "$work/bad.term"
echo '(rule r (transpose (0 1) ?x) => ?y)' >"$work/bad.rules"
refused 3 bad.rules:1 '?y' -- rules list "$work/bad.rules"
echo '{"nodes": {' >"$work/bad.json"
refused 3 bad.json -- extract "$work/bad.json"
printf '(cpu' >"$work/bad.hw"
refused 3 bad.hw:1 -- hw check "$work/bad.hw"
mkdir "$work/empty"
refused 3 report.json -- check "$work/empty"
mkdir "$work/damaged" && echo '{"model": ' >"$work/damaged/report.json"
refused 3 report.json 'no JSON: parse error: premature EOF' -- check "$work/damaged"
[ ! -e "$work/none" ] || [ -z "$(ls -A "$work/none")" ] || fail "a failed compile leaves files"

# A compile that fails, early or late, leaves what was there; one that emits less leaves nothing old.
try 0 compile $digits -o "$work/kept" --shape n=1
(cd "$work/kept" && sha256sum ./*) >"$work/sums"
for wrong in "$work/cut.onnx" "$work/none.onnx" "$digits --shape n=0 --no-rules nonsense" "$digits --shape n=1 --explain /dev/full" \
  "$digits --shape n=1 --hw tests/data/hw/plain.hw"; do
  # shellcheck disable=SC2086
  "$tarn" compile $wrong -o "$work/kept" >/dev/null 2>&1 && fail "compile $wrong succeeds"
  (cd "$work/kept" && sha256sum -c --quiet "$work/sums") || fail "compile $wrong touches what was there"
  [ "$(find "$work/kept" -mindepth 1 | wc -l)" = "$(wc -l <"$work/sums")" ] || fail "compile $wrong leaves files"
done
try 0 check "$work/kept"
try 0 compile $digits -o "$work/kept" --shape n=1 --emit o
[ ! -e "$work/kept/model.so" ] || fail "an old model.so stands beside a new model.o"

# Shapes.
refused 3 image '--shape' -- compile $digits -o "$work/none"
refused 3 image -- compile $digits -o "$work/none" --shape image=1,2,3
refused 3 image -- compile $digits -o "$work/none" --shape n=999999999999999999
refused 2 n=-1 -- compile $digits -o "$work/none" --shape n=-1
refused 2 "x=," -- compile $digits -o "$work/none" --shape x=,
refused 2 '--shape n is given twice' -- compile $digits -o "$work/none" --shape n=1 --shape n=2
echo '(compute reduceSum (access 0 (input a ((4) ()) f32)))' >"$work/sum.term"
refused 3 sum.term '--shape a' -- compile "$work/sum.term" -o "$work/none" --shape a=4
try 0 compile $digits -o "$work/ok" --shape n=1
refused 2 other -- run "$work/ok" -i "other=$work/none.npy"
refused 3 none.npy -- run "$work/ok" -i "image=$work/none.npy"
try 0 run "$work/ok" -o "$work/y"
for ref in "" --reference; do
  # shellcheck disable=SC2086
  refused 3 image 'f32[1,1,8,8]' 'f32[1,10]' -- run "$work/ok" $ref -i "image=$work/y/probability.npy"
done
# NumPy has no bfloat16: f32 is rounded for such an input, for others it is refused.
for t in f32 bf16 f16; do
  echo "(compute (map (mul \$0 \$0)) (access 1 (input a ((4) ()) $t)))" >"$work/$t.term"
  try 0 compile "$work/$t.term" -o "$work/$t"
done
try 0 run "$work/f32" -o "$work/four"
try 0 check "$work/bf16" -i "a=$work/four/out.npy"
refused 3 'f16[4]' 'f32[4]' -- run "$work/f16" -i "a=$work/four/out.npy"
refused 2 'image is given twice' -- run "$work/ok" -i "image=$work/y/probability.npy" -i "image=$work/y/probability.npy"
head -c 100 "$work/y/probability.npy" >"$work/cut.npy"
refused 3 cut.npy -- run "$work/ok" -i "image=$work/cut.npy"

# An index out of range, by the compiled program too.
g=tests/cases/gather_out_of_range
try 0 compile $g/model.onnx -o "$work/gather"
for c in run check; do refused 3 "the axis has 3 elements" -- $c "$work/gather" -i x=$g/in_x.npy -i i=$g/in_i.npy; done
refused 3 "the axis has 3 elements" -- run "$work/gather" --reference -i x=$g/in_x.npy -i i=$g/in_i.npy

# Options.
refused 2 numerics -- compile $digits --numerics almost
refused 2 emit -- compile $digits --emit exe
refused 2 fusionn -- compile $digits -o "$work/none" --shape n=1 --no-rules fusionn
for n in 0 -1 x 99999999999; do refused 2 -- check "$work/ok" --samples $n; done
for c in run bench; do refused 2 1024 -- $c "$work/ok" --threads 100000; done
refused 2 nosuch -- rules check --only nosuch
refused 2 nodes -- compile $digits --nodes -5
refused 3 vax -- compile $digits --hw vax -o "$work/none"
refused 2 quickly -- explore --free --rules bench/egraph/ac.rules bench/egraph/assoc7.term --scheduler quickly
refused 2 method -- extract --method best "$work/none.json"

# Where nothing can be written: below a file, on a full device.
refused 3 "$work/bad.term" -- compile $digits -o "$work/bad.term/x" --shape n=1
refused 3 bad.term -- run "$work/ok" -o "$work/bad.term/x"
refused 3 /dev/full -- explore --free --rules bench/egraph/ac.rules bench/egraph/assoc7.term --egraph /dev/full
refused 3 /dev/full -- explore --free --rules bench/egraph/ac.rules bench/egraph/assoc7.term --dot /dev/full
"$tarn" rules list --text >/dev/full 2>"$work/err"
[ $? = 3 ] || fail "a full standard output goes unnoticed"
if [ "$(id -u)" = 0 ] && mkdir "$work/disk" && mount -t tmpfs -o size=64k none "$work/disk" 2>/dev/null; then
  refused 3 "$work/disk" -- compile $digits -o "$work/disk/out" --shape n=1
  umount "$work/disk"
fi
if [ "$(id -u)" != 0 ]; then
  mkdir -m 555 "$work/locked"
  refused 3 locked Permission -- compile $digits -o "$work/locked/out" --shape n=1
fi

# A model that is compiled for the command alone: messages name the model and not the folder for now.
other=aarch64
[ "$(uname -m)" != aarch64 ] || other=x86-64-v3
for c in run check bench; do
  refused 3 "digits.onnx: compiled for" "which this machine is not" -- $c $digits --shape n=1 --hw $other
  ! grep -q /tmp/tarn- "$work/err" || fail "$c: the name of a temporary folder"
done
refused 3 "digits.onnx is an accelerator's" -- bench $digits --shape n=1 --hw vta-pynq
finish

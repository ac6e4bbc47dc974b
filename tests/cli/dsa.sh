#!/usr/bin/env bash
# Models compiled for an accelerator: what is emitted runs right in the simulator, in about the cycles that were
# predicted; the report says what runs where, how, and why; schedules are handed in; what is wrong is refused.
source tests/cli/lib.sh "$1"
mkdir "$work/s" && cp examples/digits/held_images.npy "$work/s"
try 0 quantize $digits -i "$work/s" -o "$work/q.onnx" --shape n=359 --hw vta-pynq
model=("$work/q.onnx" --shape n=1)

# near A B: within 10 %, or what it takes to begin and end
near() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.9 * b - 200 && a < 1.1 * b + 200) }' || fail "$last: $1 cycles, $2"; }
# program DIR: right values, and cycles as predicted and as the report has them
program() {
  try 0 check "$1" && grep -q '^ok' "$work/out" || fail "check $1: $(cat "$work/out" "$work/err")"
  try 0 sim "$1" --json
  local cycles
  cycles=$(value cycles)
  cp "$1/report.json" "$work/out"
  is offload.simulated_cycles "$cycles"
  near "$(value offload.predicted_cycles)" "$cycles"
}

# A coarse instruction that takes other sizes is named, with both.
echo '(compute (dotProd f32) (cartProd (access 1 (input w ((6 8 3 3) ()) f32)) (squeeze 0 (windows (8 3 3) (1 1 1) (access 0
  (input x ((8 10 10) ()) f32))))))' >"$work/six.term"
try 0 compile "$work/six.term" --hw tests/data/hw/coarse.hw -o "$work/six" --dump offload
grep -q '^k0.*: conv takes 4 x 8 x 8 over 8 x 3 x 3, .*this is 6 x 8 x 8 over' "$work/out" || fail "$last: no reason"
# Windows of floats beside the accumulators: maxima are the vector unit's, sums would be in another order.
windows() { echo "(transpose (0 2 3 1) (compute ($1 f32) (windows (3 3) (2 2) (access 2 (transpose (0 3 1 2) (input x ((1 33 33 64) ()) f32))))))" >"$work/pool.term"; }
sed 's/(clock [0-9.e]*)/(clock 1e7)/' hw/riscv64.hw >"$work/slow.hw"
sed "s#(host riscv64)#(host \"$work/slow.hw\")#" hw/systolic-f32.hw >"$work/systolic.hw"
windows reduceMax
try 0 compile "$work/pool.term" --hw "$work/systolic.hw" -o "$work/pool" --dump offload,plan
grep -q '(unit max sums rows 0 each-tap)' "$work/out" || fail "$last: no maxima"
grep -q '(host "host-machine.hw")' "$work/pool/machine.hw" || fail "$last: the host's description is elsewhere"
try 0 check "$work/pool"
windows reduceSum
try 0 compile "$work/pool.term" --hw "$work/systolic.hw" -o "$work/pool" --dump offload
grep -q '^k0.*: the vector unit joins windows of f32 for maxima and minima alone' "$work/out" || fail "$last: no reason"
# What is split off is named after the nodes behind the split alone, in the report and in the program.
try 0 compile tests/data/split.onnx --hw "$work/systolic.hw" -o "$work/split" --dump offload
grep -q '^k[0-9]*_first.Conv: .* simulated' "$work/out" || fail "$last: the convolution has other names"
grep -q '^k[0-9]*_first.Tanh: the vector unit has no tanh' "$work/out" || fail "$last: the rest has other names"
grep -q '(kernel k[0-9]*_first.Tanh (on riscv64)' "$work/split/program.tarn" || fail "$last: the program has other names"

try 0 compile "${model[@]}" --hw vta-pynq -o "$work/d" --dump offload,plan
grep -q 'kernels on vta-pynq, .* on cortex-a9' "$work/err" || fail "$last says $(cat "$work/err")"
grep -q '^(plan vta-pynq' "$work/out" || fail "$last: no plan of the accelerator"
sed -n '/^cortex-a9: /,$p' "$work/out" | grep -q '^k[0-9].*: nothing brings an operand' || fail "$last: no reason"
program "$work/d"
# The accumulators are cleared behind the loads that the first product waits for: 19,306 cycles before them.
awk -v a="$(value offload.simulated_cycles)" 'BEGIN { exit !(a < 19000) }' || fail "$last: $(value offload.simulated_cycles) cycles"
on=$(value offload.machine_kernels)
[ "$on" -ge 4 ] || fail "$on kernels on the accelerator"
is offload.machine vta-pynq
is offload.host cortex-a9
left=$(value 'offload.left.#')
for ((i = 0; i < left; i++)); do [ -n "$(value offload.left.$i.why)" ] || fail "no reason for kernel $i of the host"; done
conv=0
for ((i = 0; i < $(value 'offload.operators.#'); i++)); do
  [ "$(value offload.operators.$i.op)" != ConvInteger ] || conv=$(value offload.operators.$i.machine)
done
[ "$conv" -ge 4 ] || fail "$conv convolutions on the accelerator"
seen=0
for ((i = 0; i < $(value 'program.#'); i++)); do
  [ "$(value program.$i.machine)" = vta-pynq ] || continue
  seen=$((seen + 1))
  for key in product tile.0.units tile.0.elements tile.0.of 'order.#' operands.0.name operands.0.memory operands.0.slots \
    operands.0.dram_bytes operands.0.compulsory_bytes fill.0.memory fill.0.bytes fill.0.share dram_bytes bound_bytes \
    over_bound dma_rows predicted_cycles compute_cycles vector_cycles transfer_cycles queue_cycles.load binds; do
    [ -n "$(value "program.$i.accelerator.$key")" ] || fail "kernel $i: $key is empty"
  done
  [ "$(value program.$i.live_bytes)" -gt 0 ] && [ "$(value program.$i.live_bytes)" -le "$(value program.$i.allocated_bytes)" ] ||
    fail "kernel $i: live $(value program.$i.live_bytes) of $(value program.$i.allocated_bytes)"
  near "$(value program.$i.accelerator.predicted_cycles)" "$(value program.$i.accelerator.simulated_cycles)"
  [ "$(value program.$i.accelerator.dram_bytes)" -ge "$(value program.$i.accelerator.bound_bytes)" ] || fail "kernel $i is below its bound"
done
[ $seen = "$on" ] || fail "$seen kernels have the accelerator's name, $on are its own"
value memory.live_bound >/dev/null

# Schedules: those of the host and of the accelerator as they are dumped; others; others that do not fit.
try 0 compile "${model[@]}" --hw vta-pynq -o "$work/a" --dump schedules
cp "$work/out" "$work/all"
try 0 compile "${model[@]}" --hw vta-pynq -o "$work/b" --schedule "$work/all"
for f in stream.bin dram.bin memory.json model.o; do cmp "$work/a/$f" "$work/b/$f" || fail "$last: $f is another one"; done
sed 's/ (slots 2)//g' "$work/all" >"$work/single"
try 0 compile "${model[@]}" --hw vta-pynq -o "$work/b" --schedule "$work/single"
! cmp -s "$work/a/stream.bin" "$work/b/stream.bin" || fail "$last: the same stream with one slot"
program "$work/b"
"$tarn" hw show vta-pynq >"$work/vta.hw"
sed 's/(memory acc (capacity 131072)/(memory acc (capacity 2048)/; s/(memory out (capacity 32768)/(memory out (capacity 512)/' \
  hw/vta-pynq.hw >"$work/tiny.hw"
refused 3 "$work/all:" 'held in acc takes' 'bytes, it has 2048' -- \
  compile "${model[@]}" --hw "$work/tiny.hw" -o "$work/none" --schedule "$work/all"
[ ! -e "$work/none" ] || fail "$last leaves a folder"
try 0 compile "${model[@]}" --hw "$work/tiny.hw" -o "$work/b"
program "$work/b"

# Machines that are no VTA: one that scales its sums takes all products that pay, one of floats those of whole units.
# offloaded OP: how many of its nodes a kernel of the accelerator is named after
offloaded() {
  local i
  for ((i = 0; i < $(value 'offload.operators.#'); i++)); do
    [ "$(value offload.operators.$i.op)" != "$1" ] || { value offload.operators.$i.machine; return; }
  done
  echo 0
}
try 0 quantize $digits -i "$work/s" -o "$work/qg.onnx" --shape n=359 --hw gemmini-default
sed 's/(hw riscv64/(hw slow/; s/(clock [0-9.e+]*)/(clock 1e6)/' hw/riscv64.hw >"$work/slow.hw"
sed 's/(host riscv64)/(host slow.hw)/' hw/gemmini-default.hw >"$work/gemmini.hw"
sed 's/(host riscv64)/(host slow.hw)/' hw/systolic-f32.hw >"$work/systolic.hw"
try 0 compile "$work/qg.onnx" --shape n=1 --hw gemmini-default -o "$work/g"
program "$work/g"
[ "$(offloaded ConvInteger)" -ge 5 ] || fail "$(offloaded ConvInteger) convolutions of bytes on gemmini-default"
# every product, and both additions, where the host takes its time; a host that is a file comes along
try 0 compile "$work/qg.onnx" --shape n=1 --hw "$work/gemmini.hw" -o "$work/g"
program "$work/g"
[ "$(offloaded ConvInteger)" = 6 ] || fail "$(offloaded ConvInteger) convolutions of bytes on an accelerator of a slow host"
[ "$(offloaded MatMulInteger)" = 1 ] || fail "the product stays on a slow host"
is offload.host slow
try 0 compile $digits --shape n=1 --hw "$work/systolic.hw" -o "$work/f"
program "$work/f"
[ "$(offloaded Conv)" -ge 2 ] || fail "$(offloaded Conv) convolutions on systolic-f32"

# What schedules that are handed in move, of numbers of 4 bytes; a word that is none of such a machine.
ex=examples/accelerator
for s in reloaded:172261376 filters:143949824 channels:413696000; do
  try 0 kernel $ex/pointwise.kernel --hw $ex/pointwise.hw --schedule $ex/${s%:*}.schedule
  grep -q "all $((4 * ${s#*:})) bytes" "$work/out" || fail "$last: $(tail -n 1 "$work/out")"
done
for word in slides 'pad 1' 'skew 1' 'order d0'; do
  sed "s/(hold 1 sram (at 1)/& ($word)/" $ex/filters.schedule >"$work/s.schedule"
  try 3 kernel $ex/pointwise.kernel --hw $ex/pointwise.hw --schedule "$work/s.schedule"
  grep -q 'where nothing slides' "$work/err" || fail "$last says $(cat "$work/err")"
done

# The page of an accelerator in an hour, on a machine that is not shipped: its commands as they stand.
block() { awk -v open='```'"$1" '$0 == open { on = 1; next } $0 == "```" { on = 0 } on' docs/accelerator-programs.md; }
block sed >"$work/small.sed"
sed -f "$work/small.sed" hw/vta-pynq.hw >"$work/small.hw"
try 0 hw check "$work/small.hw"
grep -q '^small: ok' "$work/out" || fail "$last says $(cat "$work/out")"
try 0 quantize $digits -i "$work/s" -o "$work/q8.onnx" --shape n=359 --hw "$work/small.hw"
try 0 compile "$work/q8.onnx" --shape n=1 --hw "$work/small.hw" -o "$work/small"
program "$work/small"
[ "$(value offload.machine_kernels)" -ge 4 ] || fail "few kernels on the array of 8 x 8"
try 0 sim "$work/small" --html "$work/page.html"
page "$work/page.html" compute

# The image somewhere else: the stream is moved by the model's header, and runs with it there.
try 0 compile "$work/q8.onnx" --shape n=1 --hw "$work/small.hw" -o "$work/digits" --name digits
cc -std=c17 -Wall -Wextra -Werror -I"$work/digits" tests/cli/relocate.c -o "$work/relocate" || fail "model.h is not compiled"
sed -i 's/"role": *"scratch"/"role": "output"/' "$work/digits/memory.json" # to see all that is computed
for base in 4194304 64; do
  mkdir "$work/moved" "$work/here" "$work/there"
  cp "$work/digits/machine.hw" "$work/moved"
  "$work/relocate" $base <"$work/digits/stream.bin" >"$work/moved/stream.bin" || fail "the stream is not moved to $base"
  { head -c $base /dev/zero; cat "$work/digits/dram.bin"; } >"$work/moved/dram.bin"
  perl -pe 's/("base": *)(\d+)/$1 . ($2 + '$base')/ge' "$work/digits/memory.json" >"$work/moved/memory.json"
  cmp -s "$work/digits/stream.bin" "$work/moved/stream.bin" && fail "the stream is the same at $base"
  try 0 sim "$work/digits" -o "$work/here" && try 0 sim "$work/moved" -o "$work/there"
  [ -n "$(ls "$work/here")" ] || fail "$last: no outputs"
  diff -r "$work/here" "$work/there" || fail "$last: another result at $base"
  rm -r "$work/moved" "$work/here" "$work/there"
done
for base in 4 0x4000000000; do # no multiple of an entry; too far for a field
  "$work/relocate" $base <"$work/digits/stream.bin" >"$work/none"
  [ $? = 1 ] && [ ! -s "$work/none" ] || fail "the stream is moved to $base"
done

# A host program with a device of its own.
if [ -e "$build/lib/libtarn-sim.so" ] && ! sanitized "$build/lib/libtarn-sim.so"; then
  if cc -std=c17 -I. -I"$work/digits" examples/accelerator/digits.c "$work/digits/here.so" -L"$build/lib" -ltarn-sim -ltarn -ltarn-select \
    -ltarn-rt -lm -o "$work/host"; then
    LD_LIBRARY_PATH=$build/lib "$work/host" "$work/digits" >"$work/out" || fail "the example of a host: $(cat "$work/out")"
    awk '{ for (i = 1; i <= 10; i++) sum += $i } END { exit !(NF == 10 && sum > 0.99 && sum < 1.01) }' "$work/out" ||
      fail "the example of a host says $(cat "$work/out")"
  else fail "the example of a host is not compiled"; fi
fi

# A machine without a host takes all of a model, or says which kernel it does not take, and the bytes.
sed 's/(host cortex-a9)/(host none)/' hw/vta-pynq.hw >"$work/alone.hw"
sed 's/(memory inp (capacity 32768)/(memory inp (capacity 64)/' "$work/alone.hw" >"$work/narrow.hw"
echo "(compute (map (cast i8 (min (max (shr \$0 (i32 5)) (i32 -128)) (i32 127)))) (transpose (1 2 0) (compute (dotProd i32)
  (cartProd (access 1 (compute (map (cast i32 \$0)) (const i8 ((16 32 3 3) ()) $(seq -s ' ' 4608 | sed 's/[0-9]*\([0-9]\)/\1/g'))))
  (squeeze 0 (windows (32 3 3) (1 1 1) (access 0 (reshape ((32 10 10) ()) (transpose (0 3 1 2) (compute (map (cast i32 \$0))
  (input x ((2 10 10 16) ()) i8)))))))))))" >"$work/blocked.term"
try 0 compile "$work/blocked.term" --hw "$work/alone.hw" -o "$work/b"
program "$work/b"
is offload.machine_kernels 1
is offload.host_kernels 0
refused 3 "has no host, and does not compute k0_" "take 144 bytes of inp, which has 64" -- \
  compile "$work/blocked.term" --hw "$work/narrow.hw" -o "$work/nowhere"
sed 's/((2 10 10 16) ()) i8/((10 10 32) ()) i8/; s/transpose (0 3 1 2)/transpose (2 0 1)/; s/transpose (1 2 0)/transpose (0 1 2)/' \
  "$work/blocked.term" >"$work/unblocked.term"
refused 3 "has no host" "brings data into another order" -- compile "$work/unblocked.term" --hw "$work/alone.hw" -o "$work/nowhere"
[ ! -e "$work/nowhere" ] || fail "$last leaves a folder"

# Of two branches the one with the larger values on its way runs first: otherwise 427,904 bytes live at once.
for bytes in 400000 300000; do
  sed "s/(hazards hardware)/& (limits (buffer $bytes))/" tests/data/hw/coarse.hw >"$work/limit$bytes.hw"
done
try 0 compile tests/data/terms/two_branches.term --hw "$work/limit400000.hw" -o "$work/branches"
try 0 check "$work/branches"
refused 3 "393216 bytes of main memory" "its limit is 300000" -- \
  compile tests/data/terms/two_branches.term --hw "$work/limit300000.hw" -o "$work/nowhere"

# One line each.
sed 's/(memory wgt (capacity 262144)/(memory wgt (capacity 128)/' hw/vta-pynq.hw >"$work/bad.hw"
refused 3 "$work/bad.hw:" wgt 256 128 -- compile "${model[@]}" --hw "$work/bad.hw" -o "$work/none"
cp -r "$work/d" "$work/bad"
head -c 100 "$work/d/stream.bin" >"$work/bad/stream.bin"
refused 3 stream.bin -- check "$work/bad"
refused 3 stream.bin -- sim "$work/bad"
{ head -c 40 "$work/d/stream.bin" && printf '\377\377\377\377' && tail -c +45 "$work/d/stream.bin"; } >"$work/bad/stream.bin"
refused 3 instruction -- check "$work/bad"
cp "$work/d/stream.bin" "$work/bad"
sed 's/"instructions"/"instruction"/' "$work/d/memory.json" >"$work/bad/memory.json"
refused 3 memory.json instructions -- check "$work/bad"
cp "$work/d/memory.json" "$work/bad"
rm "$work/bad/here.so"
refused 3 here.so -- check "$work/bad"
# What only a CPU's programs have.
refused 3 "vta-pynq is an accelerator" "nothing measures" -- tune "$work/q.onnx" --shape n=1 --hw vta-pynq --db "$work/none.db" --trials 2
refused 3 "tarn sim has its cycles" -- bench "$work/d"
refused 2 "stream is expected for an accelerator" -- compile "$work/q.onnx" --shape n=1 --hw vta-pynq --emit so -o "$work/none"
finish

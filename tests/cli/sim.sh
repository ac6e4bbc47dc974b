#!/usr/bin/env bash
# sim: a folder that the unit tests assemble; its values, figures, disassembly; folders that are damaged.
source tests/cli/lib.sh "$1"
d=$work/d
mkdir "$d" && "$build/bin/test_sim" --write "$d" || fail "test_sim --write"

try 0 sim "$d" -o "$work/o"
grep -q '^vta-pynq: 32 instructions, ' "$work/out" || fail "sim says $(cat "$work/out")"
tail -c 256 "$work/o/y.npy" | cmp - "$d/wanted" || fail "sim gives other values"
try 0 sim "$d" --json
is hw vta-pynq
is ok true
is compute_cycles 128
is dram_write_bytes 256
is dram_bound_bytes "$(($(value dram_read_bytes) + 256))"
fast=$(value cycles)
value utilisation >/dev/null
try 0 sim "$d" --json --latency 1000
[ "$(value cycles)" -gt "$fast" ] || fail "latency costs nothing"
try 0 sim "$d" --json --hw vta-hls-timing
is hw vta-hls-timing
try 0 sim "$d" --check
grep -qx 'ok: 32 instructions' "$work/out" || fail "sim --check says $(cat "$work/out")"
try 0 sim "$d" --disassemble
[ "$(wc -l <"$work/out")" = 32 ] && grep -qx '31 compute finish pop:s2c' "$work/out" || fail "sim --disassemble"

# Two segments in one folder: sums, and figures of each.
two=$work/two
mkdir "$two" && cp "$d"/* "$two" && cat "$d/stream.bin" "$d/stream.bin" >"$two/stream.bin"
sed -i 's/"instructions": 32,/"instructions": 64, "segments": [{"name": "a", "instructions": 32}, {"name": "b", "instructions": 32}],/' "$two/memory.json"
try 0 sim "$two" -o "$work/o" --json
is cycles "$((2 * fast))"
is segments.0.name a
is segments.1.cycles "$fast"
is segments.1.dram_write_bytes 256
tail -c 256 "$work/o/y.npy" | cmp - "$d/wanted" || fail "segments give other values"

# What can be looked at: a trace, and a page that stays small however long the program is.
kernels='"kernels": [{"name": "a<b", "first": 0, "count": 32}, {"name": "c", "first": 40, "count": 20}], '
sed -i "s/\"segments\"/$kernels&/" "$two/memory.json"
try 0 sim "$two" --trace "$work/t.json" --html "$work/p.html" --check
cp "$work/t.json" "$work/out"
is traceEvents.0.args.name load
is traceEvents.3.name 'a<b'
is traceEvents.9.args.instruction 2
is traceEvents.9.args.pop.0 c2l
is traceEvents.9.args.waited_for compute
is traceEvents.9.args.x-size 4
page "$work/p.html" 'class="time"' '<rect' 'a&lt;b: 2 load-inp' 'waited 38 for compute' '<path class="s' 'busy'
long=$work/long
mkdir "$long" && cp "$two"/* "$long"
for _ in 1 2 3 4 5 6 7 8; do cat "$long/stream.bin" "$long/stream.bin" >"$work/more" && mv "$work/more" "$long/stream.bin"; done
one='{"name": "s", "instructions": 32}'
sed -i "s/\"instructions\": 64, .*, \"buffers\"/XX/; s/\"instructions\": 64,.*/\"instructions\": 16384, \"segments\": [$one$(printf ", $one%.0s" $(seq 511))],/" "$long/memory.json"
try 0 sim "$long" --html "$work/p.html" --json
is instructions 16384
is cycles "$((512 * fast))"
[ "$(wc -c <"$work/p.html")" -lt 1000000 ] || fail "a page of $(wc -c <"$work/p.html") bytes"

# Costs from measurements: those of another machine are found again, and written.
printf '(hw vta-slow (like vta-pynq) (intrinsic gemm (startup 31)))' >"$work/slow.hw"
for p in d two; do
  try 0 sim "$work/$p" --json --hw "$work/slow.hw" && printf '(measured %s %s)\n' $p "$(value cycles)"
done >"$work/measured"
try 0 hw fit vta-pynq "$work/measured" -o "$work/fitted.hw" --json
is terms.# 1
is terms.0.name 'startup of gemm'
is terms.0.change 25
is programs.1.fitted "$(value programs.1.measured)"
try 0 hw show "$work/slow.hw" && sed s/vta-slow/vta-pynq/ "$work/out" >"$work/want"
try 0 hw show "$work/fitted.hw" && cmp "$work/out" "$work/want" || fail "hw fit writes another machine"
try 0 hw fit vta-pynq "$work/measured" && grep -q '^startup of gemm: +25 cycles$' "$work/out" || fail "hw fit: $(cat "$work/out")"
echo '(measured d)' >"$work/bad" && refused 3 "bad:1:1" '(measured DIR CYCLES)' -- hw fit vta-pynq "$work/bad"
echo '(measured d -3)' >"$work/bad" && refused 3 "bad:1:1" '(measured DIR CYCLES)' -- hw fit vta-pynq "$work/bad"
echo '; none' >"$work/bad" && refused 3 "no (measured DIR CYCLES)" -- hw fit vta-pynq "$work/bad"
echo '(measured none 3)' >"$work/bad" && refused 3 "$work/none" -- hw fit vta-pynq "$work/bad"
refused 3 'describes no instructions' -- hw fit x86-64-v3 "$work/measured"
refused 2 usage -- hw fit vta-pynq
refused 2 usage -- hw show vta-pynq -o "$work/x"

# An input of its own: zeros, so that every sum is the -3 that is added, shifted by 5.
printf '\x93NUMPY\x01\x00\x46\x00{"descr": "|i1", "fortran_order": False, "shape": (512,), }          \n' | sed "s/\"/'/g" >"$work/x.npy"
head -c 512 /dev/zero >>"$work/x.npy"
try 0 sim "$d" -i x="$work/x.npy" -o "$work/o"
[ "$(tail -c 256 "$work/o/y.npy" | od -An -v -tx1 | tr -s ' \n' '\n' | sort -u | grep .)" = ff ] || fail "sim -i gives other values"
refused 2 'no buffer q' -- sim "$d" -i q="$work/x.npy"
refused 2 'w is no input' -- sim "$d" -i w="$work/x.npy"

bad() { # WORDS… -- SED of memory.json
  local words=()
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  rm -rf "$work/b" && cp -r "$d" "$work/b" && sed -i "$2" "$work/b/memory.json"
  refused 3 "${words[@]}" -- sim "$work/b"
}
bad memory.json 'no JSON' -- 's/{/[/'
bad '"hw"' 'a string is expected' -- 's/"hw": "vta-pynq"/"hw": 3/'
bad 'no such description' -- 's/vta-pynq/vta/'
bad 'has no instructions' -- 's/vta-pynq/aarch64/'
bad stream.bin '512 bytes' '33 instructions' -- 's/"instructions": 32/"instructions": 33/'
bad 'buffer x' 'does not make 512 bytes' -- 's/"shape": \[512\]/"shape": [511]/'
bad 'buffer x' 'no multiple of 64' -- 's/"base": 0/"base": 1/'
bad 'buffers x and w' overlap -- 's/"base": 512/"base": 0/'
bad 'buffer y' 'dram.bin has' -- 's/"name": "y", "role": "output", "base": [0-9]*/"name": "y", "role": "output", "base": 1048576/'
bad 'segments have 31 instructions' 'program has 32' -- 's/"instructions": 32,/"instructions": 32, "segments": [{"name": "a", "instructions": 31}],/'
bad 'segment b: instructions 31 to 32 of 32' -- 's/"instructions": 32,/"instructions": 32, "segments": [{"name": "a", "instructions": 31}, {"name": "b", "instructions": 2}],/'
bad 'instruction 30 (store)' 'ends a segment' -- 's/"instructions": 32,/"instructions": 32, "segments": [{"name": "a", "instructions": 31}, {"name": "b", "instructions": 1}],/'
bad 'kernel b' '3 instructions from 30 on, of 32' -- 's/"instructions": 32,/"instructions": 32, "kernels": [{"name": "b", "first": 30, "count": 3}],/'
# places PLACE…: those of a kernel of all instructions
places() { local IFS=,; echo 's/"instructions": 32,/"instructions": 32, "kernels": [{"name": "k", "first": 0, "count": 32, "places": ['"$*"']}],/'; }
bad 'kernel k: places x and w share entries of inp' -- "$(places '{"name": "x", "memory": "inp", "first": 0, "entries": 4, "slots": 2}' \
  '{"name": "w", "memory": "inp", "first": 7, "entries": 4, "slots": 2}')"
bad 'kernel k: place x: 600 slots of 4 entries from entry 0 of inp, which has 2048' -- \
  "$(places '{"name": "x", "memory": "inp", "first": 0, "entries": 4, "slots": 600}')"
bad 'kernel k: vta-pynq has no memory ram' -- "$(places '{"name": "x", "memory": "ram", "first": 0, "entries": 4, "slots": 1}')"
bad 'is no tile of kernel k' -- "$(places '{"name": "x", "memory": "inp", "first": 0, "entries": 4, "slots": 2}')"
bad 'role source' -- 's/"input"/"source"/'
rm -rf "$work/b" && cp -r "$d" "$work/b"
head -c 500 "$d/stream.bin" >"$work/b/stream.bin"
refused 3 stream.bin '500 bytes' '32 instructions of 16' -- sim "$work/b"
head -c 512 /dev/zero >"$work/b/stream.bin"
refused 3 'instruction 0' 'no instruction of vta-pynq' -- sim "$work/b"
refused 3 'instruction 0' -- sim "$work/b" --disassemble
rm "$work/b/dram.bin"
refused 3 dram.bin -- sim "$work/b"
finish

#!/usr/bin/env bash
# Archives of NumPy and pictures as inputs give what the same numbers as .npy give.
source tests/cli/lib.sh "$1"

/usr/bin/env python3 - "$work" <<'P'
import io, struct, sys, zipfile, zlib
from pathlib import Path

to = Path(sys.argv[1])
high, wide = 8, 6


def npy(shape, code, values):
    head = f"{{'descr': '<{code}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    kind = {"f4": "f", "u1": "B"}[code]
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values)


def png(colour, depth, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    body = b"".join(b"\0" + bytes(r) for r in rows)
    head = struct.pack(">IIBBBBB", wide, high, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(body)) + chunk(b"IEND", b"")


pixel = [[[(7 * y + 13 * x + 91 * c) % 256 for c in range(3)] for x in range(wide)] for y in range(high)]
flat = [v for row in pixel for p in row for v in p]
planes = [pixel[y][x][c] for c in range(3) for y in range(high) for x in range(wide)]
grey = [[p[0] for p in row] for row in pixel]
to.joinpath("colour.png").write_bytes(png(2, 8, [[v for p in row for v in p] for row in pixel]))
to.joinpath("grey.png").write_bytes(png(0, 8, grey))
to.joinpath("colour.ppm").write_bytes(b"P6\n# made here\n%d %d\n255\n" % (wide, high) + bytes(flat))
to.joinpath("grey.pgm").write_bytes(b"P5 %d %d 255\n" % (wide, high) + bytes(v for r in grey for v in r))
deep = b"".join(struct.pack(">H", 257 * v) for v in flat)
to.joinpath("deep.ppm").write_bytes(b"P6\n%d %d\n65535\n" % (wide, high) + deep)
f4 = lambda v: struct.unpack("<f", struct.pack("<f", v / 255))[0]
to.joinpath("chw.npy").write_bytes(npy((1, 3, high, wide), "f4", [f4(v) for v in planes]))
to.joinpath("hwc.npy").write_bytes(npy((1, high, wide, 3), "f4", [f4(v) for v in flat]))
to.joinpath("bytes.npy").write_bytes(npy((high, wide, 3), "u1", flat))
to.joinpath("grey.npy").write_bytes(npy((high, wide), "f4", [f4(v) for r in grey for v in r]))
a, b = npy((4,), "f4", [1, 2, 3, 4]), npy((4,), "f4", [10, 20, 30, 40])
to.joinpath("a.npy").write_bytes(a)
to.joinpath("b.npy").write_bytes(b)
for name, how in (("stored", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(to / f"{name}.npz", "w", how) as z:
        for entry, data in (("a.npy", a), ("b.npy", b)):
            with z.open(entry, "w", force_zip64=True) as f:  # as NumPy writes them
                f.write(data)
with zipfile.ZipFile(to / "one.npz", "w") as z:
    z.writestr("arr_0.npy", a)
with zipfile.ZipFile(to / "unequal.npz", "w") as z:
    z.writestr("other.npy", a)
    z.writestr("third.npy", b)
P

# same NAME TYPE SHAPE FILE NPY: the identity on that input gives the same output for both.
same() {
  echo "(compute (map (add \$0 \$0)) (access $(wc -w <<<"$3") (input $1 (($3) ()) $2)))" >"$work/id.term"
  try 0 run "$work/id.term" --reference -i "$1=$work/$4" -o "$work/got" &&
    try 0 run "$work/id.term" --reference -i "$1=$work/$5" -o "$work/want" &&
    cmp "$work/got/out.npy" "$work/want/out.npy" || fail "$4 is not $5"
}
same x f32 "1 3 8 6" colour.png chw.npy
same x f32 "1 3 8 6" colour.ppm chw.npy
same x f32 "1 3 8 6" deep.ppm chw.npy
same x f32 "1 8 6 3" colour.png hwc.npy
same x u8 "8 6 3" colour.ppm bytes.npy
same x f32 "8 6" grey.png grey.npy
same x f32 "8 6" grey.pgm grey.npy
same a f32 4 stored.npz a.npy
same b f32 4 packed.npz b.npy
same a f32 4 one.npz a.npy

printf 'def f(float(N) a, float(N) b) -> (y) { y(i) = a(i) - 2 * b(i) }\n' >"$work/two.tc"
for z in stored packed; do
  try 0 run "$work/two.tc" --shape N=4 --reference -i "$work/$z.npz" -o "$work/got" &&
    try 0 run "$work/two.tc" --shape N=4 --reference -i "a=$work/a.npy" -i "b=$work/b.npy" -o "$work/want" &&
    cmp "$work/got/y.npy" "$work/want/y.npy" || fail "$z.npz for both inputs"
done
refused 2 'a is given twice' -- run "$work/two.tc" --shape N=4 -i "$work/stored.npz" -i "a=$work/a.npy"

echo '(compute (map (add $0 $0)) (access 4 (input x ((1 3 8 7) ()) f32)))' >"$work/wide.term"
refused 3 colour.png '8 high and 7 wide' '8 and 6' -- run "$work/wide.term" --reference -i "x=$work/colour.png"
echo '(compute (map (add $0 $0)) (access 4 (input x ((2 9 8 6) ()) f32)))' >"$work/many.term"
refused 3 'takes no picture' -- run "$work/many.term" --reference -i "x=$work/colour.png"
echo '(compute (map (add $0 $0)) (access 1 (input a ((4) ()) f32)))' >"$work/four.term"
refused 3 'no tensor a among the 2' -- run "$work/four.term" --reference -i "a=$work/unequal.npz"
echo '(compute (map (add $0 $0)) (access 4 (input x ((1 3 8 6) ()) f32)))' >"$work/x.term"
for f in colour.png colour.ppm; do
  for keep in 9 20 40 $(($(stat -c %s "$work/$f") - 30)); do
    head -c "$keep" "$work/$f" >"$work/cut.png"
    refused 3 cut.png -- run "$work/x.term" --reference -i "x=$work/cut.png"
  done
done
for f in stored.npz packed.npz; do
  size=$(stat -c %s "$work/$f")
  for keep in 0 10 100 $((size / 2)) $((size - 10)); do
    head -c "$keep" "$work/$f" >"$work/cut.npz"
    refused 3 cut.npz -- run "$work/four.term" --reference -i "a=$work/cut.npz"
  done
  for at in $(seq 3 17 "$size"); do # any byte may be another: it is read, or refused in one line
    cp "$work/$f" "$work/odd.npz"
    printf '\xa5' | dd of="$work/odd.npz" bs=1 seek="$at" conv=notrunc status=none
    "$tarn" run "$work/four.term" --reference -i "a=$work/odd.npz" >"$work/out" 2>"$work/err"
    got=$?
    [ $got = 0 ] || { [ $got = 3 ] && says odd.npz; } || fail "byte $at of $f: exit code $got"
  done
done
finish

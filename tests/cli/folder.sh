#!/usr/bin/env bash
# The application of examples/folder: images of all sizes and both kinds are read, counted and timed; what is none is named.
source tests/cli/lib.sh "$1"

bash examples/folder/run.sh "$build" >"$work/out" 2>&1 || fail "the application: $(tail -n 3 "$work/out")"
for k in 0 1 2 3 4 5 6 7 8 9; do grep -qE "^$k\.pgm +$k " "$work/out" || fail "$k.pgm is not a $k: $(cat "$work/out")"; done
mkdir "$work/images"
python3 - examples/digits/samples "$work/images" <<'P' # each three times as large, with bytes, a comment, and 16 bits
import pathlib, struct, sys
for k, path in enumerate(sorted(pathlib.Path(sys.argv[1]).glob("*.pgm"))):
    w, h, top, *v = map(int, path.read_text().split()[1:])
    wide = [v[y // 3 * w + x // 3] for y in range(3 * h) for x in range(3 * w)]
    out = pathlib.Path(sys.argv[2]) / f'a "{k}".pgm'
    if k % 2:
        out.write_bytes(b"P5\n# large\n24 24\n255\n" + bytes(wide))
    else:
        out.write_bytes(b"P5 24 24 65535\n" + struct.pack(">576H", *(x * 257 for x in wide)))
P
last="classify images --json"
"$build/folder/classify" "$work/images" --json >"$work/out" || fail "$last: exit code $?"
[ "$(value images.#)" = 10 ] || fail "$last: $(value images.#) images"
for k in 0 1 2 3 4 5 6 7 8 9; do
  [ "$(value images.$k.digit)" = "$k" ] && [ "$(value count.$k)" = 1 ] || fail "$last: image $k is a $(value images.$k.digit)"
done
[ "$(value images.0.name)" = 'a "0".pgm' ] || fail "$last: the name is $(value images.0.name)"
echo "P5 8 8 255" >"$work/images/short.pgm"
"$build/folder/classify" "$work/images" >"$work/out" 2>"$work/err"
[ $? = 1 ] && grep -q "short.pgm: no grey image" "$work/err" || fail "a short image is not named"
grep -q '^10 images, [0-9.]* microseconds each$' "$work/out" || fail "no count and time"
"$build/folder/classify" "$work" >"$work/out" 2>&1
[ $? = 1 ] || fail "an empty folder is taken"
finish

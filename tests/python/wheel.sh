#!/usr/bin/env bash
# tests/python/wheel.sh BUILD [ROOT]: the wheel that `make wheel` has put into BUILD/wheel needs nothing of LLVM: no binary in
# it wants a library that is neither in it nor in every system; its module and its program work in a virtual environment.
# ROOT: there, by chroot, in a system with nothing but python3-venv. Skipped where no wheel was made.
set -euo pipefail
wheel=$(ls "$1"/wheel/tarn-*manylinux*.whl 2>/dev/null) || { echo "wheel: skipped, make wheel makes one"; exit 77; }
root=${2:-/}
[ -e "$root/proc/self" ] || { echo "wheel: mount $root/proc: programs find their libraries by it"; exit 2; }
work=$(mktemp -d "${root%/}/tmp/wheel-XXXXXX")
trap 'rm -rf "$work"' EXIT
inside=/${work#"${root%/}/"}
in_root() { [ "$root" = / ] && "$@" || chroot "$root" "$@"; }

mkdir -p "$work/tests/python" "$work/examples/digits"
cp "$wheel" python/README.md "$work/"
cp tests/python/examples.py "$work/tests/python/" # finds the digits from there
cp examples/digits/digits.onnx "$work/examples/digits/"
digits=$inside/examples/digits/digits.onnx
in_root /usr/bin/python3 -m venv "$inside/venv"
in_root "$inside/venv/bin/pip" install --no-index --no-deps --disable-pip-version-check -q "$inside/${wheel##*/}"
package=$(ls -d "$work"/venv/lib/python3*/site-packages/tarn)
find "$package" -type f -exec sh -c 'head -c 4 "$1" | grep -q "^.ELF" && echo "$1"' _ {} \; | while read -r f; do
  in_root ldd "/${f#"${root%/}/"}"
done >"$work/needed"
! grep 'not found' "$work/needed" || { echo "wheel: a library is missing"; exit 1; }
outside=$(grep -oE '=> /[^ ]*' "$work/needed" | grep -v site-packages | sed 's|.*/||' | sort -u |
  grep -vxE '(libc|libm|libdl|librt|libutil|libpthread|libresolv|libgcc_s|libstdc\+\+|libz)\.so\.[0-9]+' || true)
[ -z "$outside" ] || { echo "wheel: needs of the system:" $outside; exit 1; }

in_root env -C "$inside" PATH=/nowhere XDG_CACHE_HOME="$inside/cache" "$inside/venv/bin/python" "$inside/tests/python/examples.py" "$inside/README.md"
in_root env -C "$inside" PATH=/nowhere "$inside/venv/bin/tarn" compile "$digits" --shape n=1 -o "$inside/digits" --json >"$work/report"
[ -e "$work/digits/model.so" ] || { echo "wheel: model.so was not linked"; exit 1; }
in_root env -C "$inside" PATH=/nowhere "$inside/venv/bin/tarn" check "$inside/digits"
[ "$(in_root "$inside/venv/bin/tarn" --version)" = "tarn $(in_root "$inside/venv/bin/python" -c 'import tarn; print(tarn.__version__)')" ] ||
  { echo "wheel: the program and the module are of different versions"; exit 1; }

#!/usr/bin/env bash
# tests/install/run.sh BUILD CC: installs BUILD into a folder of its own, looks at what is there, and builds and runs
# a consumer against it, once through pkg-config and once through CMake.
set -euo pipefail
build=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --install"; }
mv "$work/first" "$work/root"   # an installed tree may be moved
root=$work/root
libdir=$(dirname "$(find "$root" -name libtarn.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig

# Libraries: a soname, no undeclared symbols, nothing exported that is not ours, and libtarn without LLVM and the like.
for lib in "$libdir"/lib*.so; do
  name=$(basename "$lib")
  readelf -d "$lib" | grep -q "SONAME.*\[$name\.0\]" || fail "$name has no soname $name.0"
  strangers=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -vE '^(tarn_|__bss_start$|_edata$|_end$)' || true)
  [ -z "$strangers" ] || fail "$name exports" $strangers
done
! readelf -d "$libdir/libtarn.so" | grep NEEDED | grep -iE 'llvm|xgboost|hwloc|sqlite|stdc\+\+' || fail "libtarn needs too much"

# The version in the headers is the program's.
version=$(printf '#include <base/%s>\nTARN_VERSION TARN_VERSION_NUMBER\n' version.h | "$cc" -E -P -I"$root/include/tarn" - | tr -d '"')
if [ -x "$root/bin/tarn" ]; then
  [ "tarn ${version%% *}" = "$(LD_LIBRARY_PATH=$libdir "$root/bin/tarn" --version)" ] || fail "version.h says $version"
fi
[ "${version%% *}" = "$(pkg-config --modversion tarn)" ] || fail "version.h says $version, pkg-config another one"

# Every header alone, from its place below include/tarn, in C and in C++.
while read -r header; do
  printf '#include "%s"\n' "$header" >"$work/header.c"
  "$cc" -std=c17 -Wall -Wextra -Werror -fsyntax-only -I"$root/include/tarn" "$work/header.c" || fail "$header"
  if command -v g++ >/dev/null; then
    g++ -std=c++17 -fsyntax-only -I"$root/include/tarn" -x c++ "$work/header.c" || fail "$header as C++"
  fi
done < <(cd "$root/include/tarn" && find . -name '*.h' -printf '%P\n')

for page in "$root"/share/man/man1/*.1; do [ -s "$page" ] || fail "no man page"; done

for file in LICENSE README.md docs/rules.md examples/digits/digits.onnx; do
  [ -s "$root/share/doc/tarn/$file" ] || fail "no $file"
done

# Consumers, through pkg-config and through CMake: of libtarn alone, and of libtarn-rt alone.
consume() { # PACKAGE SOURCE
  "$cc" -std=c17 $(pkg-config --cflags "$1") "$here/consumer/$2" $(pkg-config --libs "$1") -o "$work/consumer" ||
    fail "$2 does not link with $1"
  LD_LIBRARY_PATH=$libdir "$work/consumer" || fail "$2 does not run"
  ! LD_LIBRARY_PATH=$libdir ldd "$work/consumer" | grep -iE 'llvm|xgboost|hwloc|sqlite' || fail "$2 drags in too much"
}
consume tarn base.c
consume tarn ../../../examples/egraph/shifts.c >"$work/said"
grep -qx '(<< x 2)  cost 4, saturated' "$work/said" || fail "the e-graph's example says $(cat "$work/said")"
consume tarn-rt rt.c

# And of libtarn-codegen: a model compiled and run in process, while there is no program to call.
if [ -e "$libdir/libtarn-codegen.so" ]; then
  examples=$here/../../examples
  hw=$(uname -m)
  [ "$hw" != x86_64 ] || hw=x86-64-v3
  if [ -x "$root/bin/tarn" ]; then "$root/bin/tarn" hw show host >"$work/host.hw" && hw=$work/host.hw; fi
  [ ! -e "$root/bin" ] || mv "$root/bin" "$work/away"
  "$cc" -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags tarn-codegen) "$examples/compile/compile.c" \
    $(pkg-config --libs tarn-codegen) -o "$work/compile" || fail "compile.c does not link with tarn-codegen"
  compile() { LD_LIBRARY_PATH=$libdir "$work/compile" "$examples/digits/digits.onnx" "$@" >"$work/said" 2>"$work/err"; }
  compile "$hw" "$work/digits" || fail "compile.c: $(cat "$work/err")"
  [ -s "$work/digits/model.so" ] || fail "compile.c writes no model.so"
  grep -q "^$work/digits/report.json, " "$work/said" || fail "compile.c names no report.json"
  awk '$1 == "probability:" { for (i = 2; i <= NF; i++) sum += $i; n = NF - 1 } END { exit !(n == 10 && sum > 0.99 && sum < 1.01) }' \
    "$work/said" || fail "compile.c says $(cat "$work/said")"
  code=0
  compile "$here/../data/hw/plain.hw" "$work/none" || code=$?
  [ $code = 3 ] && [ ! -e "$work/none" ] && grep -q 'plain is an accelerator' "$work/err" || fail "compile.c takes plain.hw"
  [ ! -e "$work/away" ] || mv "$work/away" "$root/bin"
fi
cmake -G Ninja -S "$here/consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_C_COMPILER="$cc" \
  >"$work/log" 2>&1 || { cat "$work/log"; fail "find_package(tarn)"; }
cmake --build "$work/cmake" >"$work/log" 2>&1 || { cat "$work/log"; fail "building with CMake"; }
"$work/cmake/consumer"
"$work/cmake/consumer-rt"

if [ -x "$root/bin/tarn" ]; then "$root/bin/tarn" --help >/dev/null || fail "the installed program does not start"; fi

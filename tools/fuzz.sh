#!/bin/sh
# Runs the fuzz targets one after another: tools/fuzz.sh BUILD SECONDS [TARGET…]   (default: all)
# What libFuzzer finds worth keeping gathers in BUILD/corpus; what breaks a target goes to BUILD/found, and belongs
# into tests/corpus/NAME once it is mended.
set -eu
build=$1 seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(cd "$build/bin" && ls -d fuzz_*)
mkdir -p "$build/found"
failed=0
for target in "$@"; do
  seeds=tests/corpus/${target#fuzz_}
  mkdir -p "$build/corpus/$target"
  echo "$target: $seconds s"
  "$build/bin/$target" -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=2048 -print_final_stats=0 \
    -verbosity=0 -artifact_prefix="$build/found/$target-" "$build/corpus/$target" "$seeds" || failed=1
done
exit $failed

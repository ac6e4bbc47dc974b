#!/usr/bin/env bash
# tools/loc.sh [--columns N] [COMMIT]: lines of C code (no comments, no blank lines) by folder, of the working tree or of a
# commit. --columns: as clang-format would break lines at N columns, so that commits before and after a reformat compare.
# A line counts as gcc prints it with comments removed (-fpreprocessed -dD -E -P). Counted are *.c, *.h and *.def.
set -euo pipefail
cd "$(dirname "$0")/.."
columns=
[ "${1:-}" != --columns ] || { columns=$2; shift 2; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
if [ $# -gt 0 ]; then git archive "$1" | tar -x -C "$tree"
else git ls-files -z -- '*.c' '*.h' '*.def' .clang-format | xargs -0 cp --parents -t "$tree"; fi
cd "$tree"
if [ -n "$columns" ]; then
  sed -i "s/^ColumnLimit:.*/ColumnLimit: $columns/" .clang-format
  find . -name '*.[ch]' -print0 | xargs -0 -P2 -n20 clang-format -i
fi
lines() { # PATTERN: of files whose path begins so
  find . \( -name '*.c' -o -name '*.h' -o -name '*.def' \) -print | grep -P "^\./($1)" |
    xargs -r gcc -w -x c -fpreprocessed -dD -E -P | grep -c '[^[:space:]]' || true
}
row() { printf '%7d  %s\n' "$(lines "$2")" "$1"; }
for folder in */; do [ -z "$(find "$folder" -name '*.[ch]' -print -quit)" ] || row "$folder" "$folder"; done
echo
nest='kernel/|rules/(kernel[a-z_]*|make|grid)\.' # the second: before kernel/ was a folder
row "nest tools: kernel/" "$nest"
row "kernel graph: extract/k*" 'extract/k'
row "these, loop/, plan/, price/ and lower/" "$nest|extract/k|loop/|plan/|price/|lower/"
row "all C outside tests/" '(?!tests/)'

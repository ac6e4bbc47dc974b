#!/usr/bin/env bash
# tests/newcomer.sh [LAST]: what a newcomer does. In the clone that is the current folder, runs every command of the blocks of
# README without a language, in order and as printed, up to the first that contains LAST; README's C is written to the file
# that its command names. Fails on the first command that fails. As root on a bare Debian 12: make check is among them.
set -uo pipefail
last=${1:-}
[ -f README.md ] || { echo "newcomer.sh: not at the top of a clone" >&2; exit 2; }
awk '$0 == "```c" { on = 1; next } $0 == "```" { on = 0 } on' README.md >classify.c
n=0
while IFS= read -r -u 3 line; do
  echo "\$ $line"
  start=$SECONDS
  eval "$line" </dev/null >newcomer.log 2>&1 || {
    tail -n 20 newcomer.log >&2
    echo "newcomer.sh: this command of README fails: $line" >&2
    exit 1
  }
  n=$((n + 1))
  echo "  ($((SECONDS - start)) s)"
  [ -z "$last" ] || [[ $line != *"$last"* ]] || break
done 3< <(awk '/^```/ { on = $0 == "```" && !inside; inside = !inside; next } on' README.md | grep -E '^(make|ldconfig|tarn|mkdir|cc) ?')
[ -n "$last" ] || [ "$n" -ge 10 ] || { echo "newcomer.sh: README has only $n commands" >&2; exit 1; }
echo "$n commands of README ran as printed"

#!/usr/bin/env bash
# tests/house.sh BUILD: the rules of the house that a compiler does not know.
set -uo pipefail
build=$1
cd "$(dirname "$0")/.."
bad=0
say() { echo "house: $*"; bad=1; }

# 1. Who may include whom. Each may include its own headers, base (but for base and runtime), and those named here.
declare -A may=(
  [base]="" [runtime]="" [egraph]="" [access]="" [model]="access runtime" [hw]="access" [rules]="egraph access hw"
  [loop]="access hw" [extract]="egraph access hw loop" [lower]="access hw loop runtime"
  [tune]="egraph access model hw rules loop extract lower runtime"
  [cli]="egraph access model hw rules loop extract lower tune runtime")
for folder in "${!may[@]}"; do
  allowed=" $folder ${may[$folder]} "
  [ "$folder" = runtime ] || allowed+="base "
  while IFS=: read -r file include; do
    [ -n "$file" ] || continue
    other=${include%%/*}
    [[ $allowed == *" $other "* ]] || say "$file includes \"$include\": $folder may not know $other"
    [[ $include != hw/host/* || $folder == hw || $folder == tune || $folder == cli ]] || say "$file includes \"$include\""
  done < <(grep -roE --include='*.[ch]' '^#include "[a-z]+/[^"]*"' "$folder" | sed 's/#include "//; s/"$//')
done

# 2. Libraries neither print nor end the process, ask no environment, share no state of the process. (Measuring runs
# strangers' kernels in a child, which ends by itself.)
for lib in "$build"/lib/libtarn*.so; do
  [ -e "$lib" ] || { say "no libraries in $build/lib"; break; }
  rude=$(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $2); print $2 }' |
    { [[ $lib == *-tune.so ]] && grep -vxE '_exit|signal' || cat; } | grep -xE 'exit|_exit|abort|printf|puts|putchar|vprintf|perror|stdout|stderr|getenv|secure_getenv|setenv|setlocale|rand|srand|random|signal|sigaction' || true)
  [ -z "$rude" ] || say "$(basename "$lib") uses" $rude
  # 3. No global mutable state: nothing of ours in .data or .bss (constant tables lie in .rodata and .data.rel.ro;
  # what the compiler itself adds is not ours).
  state=$(objdump -t "$lib" | awk 'NF > 3 && ($(NF-2) == ".data" || $(NF-2) == ".bss") && $(NF-1) !~ /^0+$/ { print $NF }' |
    grep -vxE '__cpu_(model|features2)|completed\.[0-9]+|__dso_handle' || true)
  [ -z "$state" ] || say "$(basename "$lib") has mutable globals:" $state
done

# 4. Nothing is left open, and files stay readable in one sitting.
open=$(git grep -nIE '\b(TODO|FIXME|XXX)\b' -- '*.[ch]' '*.md' '*.rules' '*.hw' 2>/dev/null | head -5)
[ -z "$open" ] || say "left open: $open"
while read -r lines file; do say "$file has $lines lines"; done < <(
  git ls-files -- '*.c' '*.h' 2>/dev/null | xargs -r wc -l | awk '$2 != "total" && $1 > 900')

# 5. Formatted by our file; another version of clang-format than Debian 12's may see it differently.
if clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
  for file in $(git ls-files -- '*.c' '*.h' 2>/dev/null | xargs -r clang-format --dry-run 2>&1 | sed -n 's/^\([^:]*\):.*warning.*/\1/p' | sort -u); do
    say "$file is not formatted: make format"
  done
fi

# 6. What a test saturates it proves: a file that runs rules also has proofs judged, of what was found.
for file in $(git grep -lE '\b(tarn_eg_run|tarn_saturate)\(' -- 'tests/*.c' 'tests/*.h'); do
  grep -qE '\b(judge_(pairs|found|proof)|kit_prove|tarn_proof_check|tarn_eg_explain)\(' "$file" || say "$file saturates and proves nothing"
done
exit $bad

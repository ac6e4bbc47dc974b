#!/usr/bin/env bash
# tests/house.sh BUILD: the rules of the house that a compiler does not know.
set -uo pipefail
build=$1
cd "$(dirname "$0")/.."
bad=0
say() { echo "house: $*"; bad=1; }

# 1. Which room may know which, by include and by symbol. A file belongs to the room with the longest name that its path
# begins with; it may use its own room, the public header of its folder, and the rooms named here.
rules_base="kernel egraph access hw base"
table="
base:
runtime/ref:
runtime: runtime/ref
egraph: base
access: base
kernel: access base
model: access runtime runtime/ref base
hw: access base
hw/host: hw access base
sim: hw access base
quantize: model hw access runtime runtime/ref base
rules/lang: $rules_base
rules/algorithms: rules/lang $rules_base
rules/run: rules/lang $rules_base
rules/proof: rules/run rules/lang $rules_base
rules/check: rules/proof rules/run rules/lang $rules_base
rules/derive: rules/lang $rules_base
rules: rules/algorithms rules/lang $rules_base
extract/select: base
lab: rules rules/check rules/run rules/lang extract/select $rules_base
plan: kernel hw access base
price: plan kernel hw access base
extract: extract/select egraph price plan kernel access hw base
lower: plan kernel access hw runtime runtime/ref base
compile: sim lower plan extract extract/select rules rules/run rules/proof rules/check rules/derive rules/lang price egraph access model hw kernel runtime base
tune: compile sim plan egraph access model hw hw/host rules rules/run price kernel extract extract/select lower runtime base
fleet: tune compile plan price kernel hw access base
cli: *
"
includes() { # FILE TARGET, a line each
  git ls-files -- '*.c' '*.h' | xargs grep -oE '^#include "[a-z]+/[^"]*"' /dev/null | sed 's/:#include "/ /; s/"$//'
}
symbols() { # DEFINED|WANTED FILE SYMBOL, a line each; not of objects whose source has gone
  for o in "$build"/*/CMakeFiles/tarn_*.dir "$build"/*/*/CMakeFiles/tarn_*.dir; do
    [ -d "$o" ] || continue
    local top=${o#"$build"/}
    top=${top%%/CMakeFiles*}
    (cd "$o" && find . -name '*.c.o' -not -name '*embedded*') | while read -r f; do [ ! -e "$top/${f%.o}" ] || echo "$f"; done |
      (cd "$o" && xargs -r nm -A 2>/dev/null) | sed "s|^\./|$top/|" |
      awk '{ sub(/\.o:[0-9a-f]*$/, "", $1) } $(NF - 1) ~ /^[TDRBV]$/ { print "DEFINED", $1, $NF } $(NF - 1) == "U" { print "WANTED", $1, $NF }'
  done
}
{ includes | sed 's/^/INCLUDE /'; symbols | sort -s -k1,1; } | awk -v table="$table" '
  BEGIN {
    n = split(table, line, "\n")
    for (i = 1; i <= n; i++) {
      if (split(line[i], part, ":") < 2) continue
      room[part[1]] = 1
      m = split(part[2], other, " ")
      for (k = 1; k <= m; k++) may[part[1], other[k]] = 1
    }
  }
  function of(path,   r) {
    if (path == "extract/select.h" || path == "runtime/ref.h") sub("[.]h$", "/", path)
    for (r = path; sub("/[^/]*$", "", r);) if (r in room) return r
    return ""
  }
  function known(from, to) { return from == to || (from, to) in may || (from, "*") in may }
  $1 == "INCLUDE" {
    from = of($2); to = of($3); folder = to "/" to ".h"
    if (from == "" || to == "" || known(from, to) || ($3 == folder && index(from, to "/") == 1)) next
    print $2 " includes \"" $3 "\": " from " may not know " to
  }
  $1 == "DEFINED" { at[$3] = $2 }
  $1 == "WANTED" && ($3 in at) {
    from = of($2); to = of(at[$3])
    if (from != to && from != "" && to != "") edge[from, to] = 1
    if (from != "" && to != "" && !known(from, to)) print $2 " uses " $3 " of " at[$3] ": " from " may not know " to
  }
  function cycle(r, path,   t) {
    if (mark[r] == 2) return
    if (mark[r] == 1) { print "rooms use one another in a circle: " path; return }
    mark[r] = 1
    for (t in room) if ((r, t) in edge) cycle(t, path " > " t)
    mark[r] = 2
  }
  END { for (r in room) cycle(r, r) }' >"$build/house.rooms"
while read -r line; do say "$line"; done <"$build/house.rooms"

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

# 6. What a test saturates it proves: a file that runs rules also has proofs judged, of what was found. Fuzzed rules mean nothing.
for file in $(git grep -lE '\b(tarn_eg_run|tarn_saturate)\(' -- 'tests/*.c' 'tests/*.h' ':!tests/fuzz'); do
  grep -qE '\b(judge_(pairs|found|proof)|kit_prove|tarn_proof_check|tarn_eg_explain)\(' "$file" || say "$file saturates and proves nothing"
done

# 7. A file that a comment or a page names is there: as it stands, or below the folder that names it. Notebooks are records.
folders="access|base|cli|compile|egraph|extract|fleet|hw|kernel|lab|lower|model|plan|price|quantize|rules|runtime|sim|tests|tune|docs|bench|cmake|tools|examples"
while IFS=: read -r from file; do
  [ -e "$file" ] || [ -e "$(dirname "$from")/$file" ] || say "$from names $file, which is not there"
done < <(git grep -oE "(^|[^A-Za-z0-9_./-])($folders)/[a-z0-9_./-]+\.(c|h|def|md|sh|py|rules|hw)\b" -- '*.[ch]' '*.def' '*.md' '*.sh' '*.rules' \
  ':!bench/notes' | sed -E 's/:[^A-Za-z0-9_]?/:/' | sort -u)

# 8. Machines are described, not coded: no string holds the name of a shipped accelerator, but where one is imported.
machines=$(git grep -lE '\(kind dsa\)' -- 'hw/*.hw' | xargs -n 1 basename -s .hw | sed 'p;s/-.*//' | sort -u | grep -vx systolic | paste -sd '|')
while read -r line; do say "a machine by its name: $line"; done < <(
  git grep -nIE "\"([^\"]*[^a-z\"])?($machines)\b" -- '*.c' '*.h' ':!tests' ':!hw/import_*' | grep -v import)
# 9. What follows from a machine's kind stands in hw/, in the table of compile/target.c and in that of tune/evolve.c.
while read -r line; do say "asks for the kind of a machine: $line"; done < <(
  git grep -nE '\bTARN_HW_(CPU|GPU|DSA)\b' -- '*.c' '*.h' ':!tests' ':!hw' ':!compile/target.c' ':!lower/cpu.c' ':!tune/evolve_*.c')
# Nor does anything ask for threads in lock step where it means something else (tarn_hw_traits): only what is of a GPU alone.
while read -r line; do say "asks for lanes of warps: $line"; done < <(
  git grep -nE '\bwarps\.lanes\b' -- '*.c' '*.h' ':!tests' ':!hw' ':!price' ':!lower/isa.c' ':!plan/blocks.c' ':!plan/fragment.c' \
    ':!plan/fetch.c' ':!tune/evolve_gpu.c')
# 10. Code that is printed takes from a description what isa.c says, and the name for messages; object.c asks for LLVM's machine.
while read -r line; do say "reads a description: $line"; done < <(
  git grep -nE 'hw->[a-z]' -- 'lower/*.c' ':!lower/*/*' ':!lower/isa.c' ':!lower/object.c' | grep -vE 'hw->(name|kind)\b')
exit $bad

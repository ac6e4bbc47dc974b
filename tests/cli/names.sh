#!/usr/bin/env bash
# Whatever a model calls its tensors, dims and nodes is data in every file that is written and on every terminal.
source tests/cli/lib.sh "$1"
names=$build/bin/names
as=/usr/lib/llvm-19/bin/llvm-as

clean() { "$names" clean "$work/out" "$work/err" "$@" || fail "$last: not clean"; }
reads() { "$names" holds "$@" || fail "$last: $1 does not read back"; }
# tarn_json ARGS…: tarn prints JSON, and both streams are clean.
tarn_json() {
  try 0 "$@" --json && "$json" schema <"$work/out" >/dev/null || fail "$last: no JSON"
  clean
}
header() { # DIR: the header says what it does to both languages, and no more
  echo '#include "model.h"' >"$work/h.c"
  cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$1" "$work/h.c" || fail "$1/model.h in C"
  if command -v clang >/dev/null; then
    clang -std=c99 -Weverything -Werror -fsyntax-only -I"$1" "$work/h.c" || fail "$1/model.h for clang"
  fi
  cp "$work/h.c" "$work/h.cc"
  if command -v c++ >/dev/null; then
    c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$1" "$work/h.cc" || fail "$1/model.h in C++"
  fi
}

"$names" write "$work" || fail "no models"
for file in "$work"/*.onnx; do
  k=$(basename "$file" .onnx)
  name=$work/$k.name
  IFS= read -r -d '' dim <"$name" # all of it, its ends of lines too
  shape=(--shape "d$dim=3")
  dir=$work/out-$k
  tarn_json compile "$file" "${shape[@]}" -o "$dir" --iters 4 --explain "$work/proof"
  is name "model_$k"
  header "$dir"
  reads "$dir/program.tarn" "$name"
  reads "$work/proof" "$name"
  "$names" clean "$dir/model.h" "$dir/program.tarn" "$dir/report.json" "$work/proof" || fail "$file: not clean"
  try 0 compile "$file" "${shape[@]}" -o "$work/ll" --iters 1 --emit ll --dump terms,form,phases,graph,schedules,plan
  clean "$work/ll/model.ll"
  [ ! -x $as ] || $as "$work/ll/model.ll" -o /dev/null || fail "$file: model.ll"
  tarn_json proof check "$work/proof" --model "$file" "${shape[@]}"
  is ok true

  tarn_json run "$dir" -o "$work/y-$k"
  [ -s "$work/y-$k/$(ls "$work/y-$k")" ] && [ "$(ls -A "$work/y-$k" | wc -l)" = 1 ] || fail "$last: not one file"
  [ $(wc -c <"$name") -lt 200 ] || is "outputs.y$(<"$name").file" "$work/y-$k/output_0.npy"
  try 0 run "$dir"
  clean
  tarn_json run "$file" "${shape[@]}" --reference
  tarn_json check "$dir"
  tarn_json bench "$dir" --repeat 1 --html "$work/bench.html" --trace "$work/trace.json"
  "$json" schema <"$work/trace.json" >/dev/null || fail "$last: --trace"
  page "$work/bench.html"
  try 0 bench "$dir" --repeat 1
  clean "$work/bench.html" "$work/trace.json"

  tarn_json explore "$file" "${shape[@]}" --iters 2 --html "$work/page.html" --dot "$work/g.dot" --egraph "$work/g.json"
  "$json" <"$work/g.json" || fail "$last: --egraph"
  page "$work/page.html"
  try 0 explore "$file" "${shape[@]}" --iters 2
  clean "$work/page.html" "$work/g.dot" "$work/g.json"
  if command -v dot >/dev/null; then dot -Tplain "$work/g.dot" >/dev/null || fail "$last: --dot"; fi
  # What HTML gives a meaning stands in no page. (A long name is cut where a name would not end.)
  if grep -q '[<>"]' "$name"; then
    "$names" lacks "$work/page.html" "$name" || fail "$last: --html"
    "$names" lacks "$work/bench.html" "$name" || fail "$last: bench --html"
  fi
  # Programs of two sizes, of a GPU and of an accelerator, and what is printed and drawn of their runs.
  tarn_json compile "$file" --shape "d$dim=2,3" -o "$dir-sizes" --iters 1
  for hw in cuda-sm80 systolic-f32; do
    tarn_json compile "$file" --shape "d$dim=16" -o "$dir-$hw" --iters 1 --hw $hw
    pages=(--html "$work/sim.html" --trace "$work/sim.json")
    [ $hw = systolic-f32 ] || pages=()
    tarn_json sim "$dir-$hw" --check "${pages[@]}"
    try 0 sim "$dir-$hw" "${pages[@]}"
    clean
  done
  "$json" <"$work/sim.json" || fail "$last: --trace"
  page "$work/sim.html"
  ! grep -q '[<>"]' "$name" || "$names" lacks "$work/sim.html" "$name" || fail "$last: sim --html"
  for other in sizes cuda-sm80 systolic-f32; do
    header "$dir-$other"
    find "$dir-$other" "$work"/sim.* -type f ! -name '*.so' ! -name '*.o' ! -name '*.bin' -exec "$names" clean {} + ||
      fail "$dir-$other: not clean"
  done
  # What is wrong is said in one line.
  try 3 compile "$file" -o "$work/none"
  says --shape
  clean
done

# A name that proofs give to what stands for others is refused there, and nowhere else.
for name in '?0' const:w; do
  echo "(program (inputs ($name ((8) ()) f32)) (outputs (y (compute (map (exp \$0)) (input $name ((8) ()) f32)))))" >"$work/p.tarn"
  try 0 compile "$work/p.tarn" -o "$work/p"
  refused 3 "$name" -- compile "$work/p.tarn" -o "$work/p" --explain "$work/proof"
done

# The other languages of terms: a program's text, terms of any operators, an e-graph's JSON.
printf '(program (inputs ("" ((8) ()) f32) ("a b" ((8) ()) f32)) (outputs ("" (input "" ((8) ()) f32)) ("\\x1b" (input "a b" ((8) ()) f32))))' >"$work/p.tarn"
tarn_json compile "$work/p.tarn" -o "$work/p"
header "$work/p"
tarn_json run "$work/p" -o "$work/p-out"
[ "$(find "$work/p-out" -name '*.npy' | wc -l)" = 2 ] || fail "$last: not two files"
printf '("f )" "\\x1b[31m" "1e999" ("g;" ""))' >"$work/free.term"
echo '(rule r ("g;" ?x) => ?x)' >"$work/free.rules"
tarn_json explore --free --rules "$work/free.rules" "$work/free.term" --egraph "$work/g.json"
value best.0.term >"$work/again.term"
value best.0.term | grep -F '("f )" "\x1b[31m" "1e999" "")' >/dev/null || fail "$last: $(cat "$work/again.term")"
try 0 explore --free --rules "$work/free.rules" "$work/g.json"
grep -F '("f )" "\x1b[31m" "1e999" "")' "$work/out" >/dev/null || fail "$last: another term"
clean "$work/again.term" "$work/g.json"
finish

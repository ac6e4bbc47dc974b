#!/usr/bin/env bash
# What the documentation shows works: its rules, its description, its C, its commands; its links lead somewhere.
source tests/cli/lib.sh "$1"

block() { awk -v open='```'"$2" '$0 == open { on = 1; next } $0 == "```" { on = 0 } on' "$1"; } # FILE LANGUAGE
block docs/developing.md rules >"$work/shown.rules"
try 0 rules check "$work/shown.rules" --json
is 'rules.#' 1
is ok true
try 0 rules check "$work/shown.rules" --mutate
diff <(block docs/rules.md rules) <(grep -v '^;' examples/rules/pooled.rules) || fail "docs/rules.md shows another rule than there is"
try 1 rules check examples/rules/wrong.rules
grep -q 'the sides have different values' "$work/out" || fail "no counterexample of wrong.rules"
block docs/hardware.md hw >"$work/shown.hw"
try 0 hw check "$work/shown.hw"
try 0 hw derive "$work/shown.hw"
grep -q '^(rule my-board.fma' "$work/out" || fail "hw derive: no rule from the multiply-add"

try 0 compile $digits --shape n=1 -o "$work/digits"
block README.md c | sed '/^#include <access/,$d' >"$work/classify.c"
cat >>"$work/classify.c" <<'C'
int main(void) {
  float image[64] = {0}, p[10], sum = 0;
  if (classify(image, p)) return 1;
  for (int i = 0; i < 10; i++) sum += p[i];
  return !(sum > 0.99f && sum < 1.01f);
}
C
san= # a program that links a library with a sanitizer in it wants it too
! sanitized "$build/lib/libtarn-rt.so" || san=-fsanitize=address,undefined
cc $san -I"$work/digits" -I. "$work/classify.c" "$work/digits/model.o" -L"$build/lib" -ltarn-rt -lm -o "$work/classify" &&
  LD_LIBRARY_PATH=$build/lib "$work/classify" || fail "README's C"

block README.md "" | grep -E '^tarn (explore|extract) ' | sed 's/g\.json/"$work\/&"/; s/ *#.*//; s/^tarn/try 0/' >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 2 ] || fail "README's commands are not found"
source "$work/commands"
cc -O2 -shared -fPIC -I. -o "$work/rounds.so" examples/extractor/rounds.c || fail "the extractor of the examples"
try 0 extract "$work/g.json" --plugin "$work/rounds.so" --json
value dag_cost >/dev/null

block docs/exploring.md sh | sed 's/--html page.html/--html "$work\/page.html"/; s/eight.json/"$work\/&"/g; s/^tarn/try 0/' >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 4 ] || fail "the commands of docs/exploring.md are not found"
source "$work/commands"
# Transcripts: the commands give what is shown, but for times.
timeless() { sed -E 's/ *[0-9]+\.[0-9]{3}/ T/g'; }
awk '/^tarn> /{ on = 1 } /^```$/ { on = 0 } on' docs/exploring.md >"$work/session"
sed -n 's/^tarn> //p' "$work/session" | "$tarn" explore - --free >"$work/out" || fail "the session of docs/exploring.md fails"
diff <(grep -v '^tarn> ' "$work/session" | timeless) <(timeless <"$work/out") || fail "docs/exploring.md shows another session"
[ "$(wc -l <"$work/out")" -gt 5 ] || fail "no session in docs/exploring.md"
awk '/^```$/ { on = 0 } on; /^\$ tarn explore --free --rules bench\/egraph\/lambda/ { on = 1 }' docs/free-proofs.md | tail -n +2 >"$work/shown"
try 0 explore --free --rules bench/egraph/lambda.rules --scheduler backoff --cost none \
  --prove "(if (= (var a) (var b)) (+ (var a) (var a)) (+ (var a) (var b)))" "(+ (var a) (var b))"
diff "$work/shown" <(sed -n '/^proved/,$p' "$work/out") || fail "docs/free-proofs.md shows another proof"
block docs/library.md "c compile" | diff - examples/compile/compile.c || fail "docs/library.md shows another compile than there is"
block docs/library.md c | diff - examples/egraph/shifts.c || fail "docs/library.md shows another example than there is"

# Commands with what they print, in a folder of their own; times, prices and sizes of graphs may be others.
figures() { sed -E 's/predicted [0-9.e-]+ ms/predicted T ms/; s/[0-9]+ e-nodes in [0-9]+ iterations/N e-nodes in N iterations/; s/; [0-9.]+ s$/; T s/; s/[0-9.]+ s\)$/T s)/'; }
transcript() { # FILE: its console blocks; what is shown may end early
  local line shown="$work/shown" here="$work/console" path
  mkdir -p "$here" && ln -sfn "$PWD/examples" "$here/examples" && ln -sfn "$PWD/bench" "$here/bench"
  path=$(realpath "$build")
  block "$1" console >"$work/console.txt"
  [ -s "$work/console.txt" ] || fail "$1: no console block"
  while read -r -u 3 line; do
    [[ $line == '$ '* ]] || continue
    (cd "$here" && PATH=$path:$PATH && eval "${line#??}") 2>&1 | figures >"$work/printed"
    awk -v at="$line" '/^\$ / { on = $0 == at; next } on' "$work/console.txt" | figures >"$shown"
    diff "$shown" <(head -n "$(wc -l <"$shown")" "$work/printed") || fail "$1: another output of $line"
  done 3<"$work/console.txt"
}
transcript docs/rules.md
transcript docs/exploring.md

for page in docs/*.md; do
  [[ $page = docs/@(rule-list|operators).md ]] || # tables that the program prints
    [ "$(wc -l <"$page")" -le 300 ] || fail "$page has more than 300 lines"
done
for page in *.md docs/*.md bench/notes/*.md; do
  while read -r link; do
    [[ $link == http* || -e $(dirname "$page")/${link%%#*} ]] || fail "$page: no $link"
  done < <(grep -oE '\]\([^)]+\)' "$page" | sed 's/^](//; s/)$//')
done
for word in $(grep -ohE '`(access|base|bench|cli|compile|egraph|extract|fleet|hw|kernel|lab|lower|model|plan|price|rules|runtime|tests|tools|docs)/[A-Za-z0-9_./-]*`' *.md docs/*.md | tr -d '`' | sort -u); do
  [ -e "${word%.}" ] || fail "the documentation names $word, which is not there"
done
finish

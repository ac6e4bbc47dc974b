#!/usr/bin/env bash
# What a compile leaves that failed or was interrupted: what was there before, and nothing else.
source tests/cli/lib.sh "$1"
mkdir "$work/place"

# Nothing of ours where something failed: no folder, no temporary one.
echo '(rule' >"$work/bad.rules"
for wrong in "--shape n=x" "" "--shape n=1 --no-rules nonsense" "--shape n=1 --rules $work/bad.rules" "--shape n=1 --emit exe" \
  "--shape n=1 --explain /dev/full" "--shape n=1 --hw tests/data/hw/plain.hw" "--shape n=1 --db $work/none.db"; do
  # shellcheck disable=SC2086
  "$tarn" compile $digits $wrong -o "$work/place/new" >/dev/null 2>&1 && fail "compile $wrong succeeds"
  [ -z "$(ls -A "$work/place")" ] || fail "compile $wrong leaves $(ls -A "$work/place")"
done
# Hardware of a kind without an emitter is refused at once: a model that is no model is not even read.
for command in "compile -o $work/place/new" "compile --dump terms -o $work/place/new" tune; do
  # shellcheck disable=SC2086
  refused 3 "plain is an accelerator" "no instructions" -- $command "$work/bad.rules" --hw "tests/data/hw/plain.hw"
done
[ -z "$(ls -A "$work/place")" ] || fail "--hw leaves $(ls -A "$work/place")"

# A folder that no compile wrote keeps what it has, whatever the model is called.
mkdir "$work/net" && echo mine >"$work/net/model.h" && cp $digits "$work/net.onnx"
(cd "$work" && "$tarn" compile net.onnx --shape n=1) >/dev/null 2>"$work/err" && fail "compile writes into net"
grep -q "holds other files" "$work/err" || fail "compile into net: $(cat "$work/err")"
try 0 compile "$work/net.onnx" --shape n=1 --emit ll -o "$work/net"
[ "$(ls "$work/net" | tr '\n' ' ')" = "model.h model.ll program.tarn report.json " ] || fail "compile -o leaves $(ls "$work/net")"

# interrupt SIGNAL FOLDER FILE ARGS…: tarn, ended as soon as FILE is in a temporary folder in FOLDER.
interrupt() {
  local signal=$1 folder=$2 file=$3 pid code
  shift 3
  for _ in 1 2 3 4 5; do
    env --default-signal="$signal" "$tarn" "$@" >/dev/null 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! compgen -G "$folder/.new-*/$file" >/dev/null; do sleep 0.01; done
    kill -"$signal" $pid 2>/dev/null
    wait $pid
    code=$?
    [ $code -gt 128 ] && return
  done 2>/dev/null
  fail "tarn $*: not interrupted by $signal: $code"
}
digest() { (cd "$1" && find . -type f | sort | xargs -r sha256sum; find . -type d); }
for signal in INT TERM HUP; do
  for file in "" model.o; do
    rm -rf "$work/place/new"
    interrupt $signal "$work/place" "$file" compile $digits --shape n=1 -o "$work/place/new"
    [ -n "$(ls -A "$work/place/new" 2>/dev/null)" ] || [ -z "$(ls -A "$work/place")" ] || fail "$signal leaves $(ls -A "$work/place")"
  done
done
rm -rf "$work/place/new"
try 0 compile $digits --shape n=1 -o "$work/place/new"
echo mine >"$work/place/new/notes"
digest "$work/place" >"$work/before"
for signal in INT TERM; do
  interrupt $signal "$work/place/new" model.o compile $digits --shape n=2 -o "$work/place/new"
  digest "$work/place" | diff "$work/before" - >/dev/null || fail "$signal changes what was there"
done
try 0 compile $digits --shape n=1 -o "$work/place/new"
digest "$work/place" | sed 's/.*report.json//' >"$work/after"
sed 's/.*report.json//' "$work/before" | diff - "$work/after" || fail "a compile that is done changes more than its files"
[ "$(stat -c %a "$work/place/new")" = "$(stat -c %a "$work/place")" ] || fail "a new folder has other permissions than mkdir gives"

# A model that run compiles for now, in a folder that the process has open.
opened() { for fd in /proc/"$1"/fd/*; do readlink "$fd"; done 2>/dev/null | grep -m 1 '^/tmp/tarn-......$'; }
for _ in {1..20}; do
  "$tarn" run $digits --shape n=1 >/dev/null 2>&1 &
  pid=$!
  while kill -0 $pid 2>/dev/null && ! folder=$(opened $pid); do sleep 0.01; done
  kill -TERM $pid 2>/dev/null
  wait $pid
  code=$?
  [ $code -gt 128 ] && break
done 2>/dev/null
[ $code -gt 128 ] && [ -n "$folder" ] || fail "run: not interrupted"
[ ! -e "$folder" ] || fail "run leaves $folder"
finish

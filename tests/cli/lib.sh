# For the tests here: sourced with the build folder as $1. Runs from the top of the tree.
set -uo pipefail
build=$1
tarn=$build/tarn
json=$build/bin/json_get
digits=examples/digits/digits.onnx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Is this file of the build made with sanitizers? (With grep -q, nm would end by SIGPIPE.)
sanitized() { [ "$(nm -D "$1" | grep -c __asan_init)" != 0 ]; } # FILE
fail() { echo "FAILED: $*"; failed=1; }
# try CODE ARGS…: runs tarn; leaves $work/out and $work/err.
try() {
  local want=$1 got
  shift
  "$tarn" "$@" >"$work/out" 2>"$work/err"
  got=$?
  last="tarn $*"
  [ "$got" = "$want" ] || { fail "$last: exit code $got, expected $want"; sed 's/^/    /' "$work/err"; return 1; }
}
# says WORD…: standard error of the last try is one line of ours that holds every word.
says() {
  local line
  line=$(cat "$work/err")
  [ "$(grep -c . "$work/err")" = 1 ] && [[ $line == tarn:* ]] || fail "$last: expected one line, got: $line"
  for word in "$@"; do [[ $line == *"$word"* ]] || fail "$last: \"$word\" is not in: $line"; done
}
# refused CODE WORDS… -- ARGS…: both of these, and nothing on standard output.
refused() {
  local code=$1 words=()
  shift
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  shift
  try "$code" "$@" && says "${words[@]}"
  [ ! -s "$work/out" ] || fail "$last: something on standard output"
}
# value PATH: of the JSON on standard output of the last try.
value() { "$json" "$@" <"$work/out" || fail "$last: JSON has no $*"; }
# is PATH WANT
is() {
  local got
  got=$(value "$1")
  [ "$got" = "$2" ] || fail "$last: $1 is $got, expected $2"
}
# page FILE WORD…: a page for a browser that is closed, fetches nothing and holds every word
page() {
  local file=$1
  shift
  tail -n 1 "$file" | grep '</html>$' >/dev/null || fail "$file: not closed"
  ! grep -E 'https?://|src=|@import|url\(' "$file" || fail "$file: fetches something"
  for word in "$@"; do grep -F "$word" "$file" >/dev/null || fail "$file: no $word"; done
}
finish() { exit $failed; }

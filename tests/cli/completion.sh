#!/usr/bin/env bash
# What tarn completion prints completes commands, options, values and files; every option of --help is there.
source tests/cli/lib.sh "$1"

refused 2 usage -- completion
refused 2 usage -- completion fish
try 0 completion bash && source "$work/out" || fail "completion bash: not read"
here=$work/here
mkdir -p "$here/folder" && touch "$here/model.onnx"
# completes WORDS… : what is offered for the last word, a line each
completes() {
  COMP_WORDS=(tarn "$@")
  COMP_CWORD=$#
  local word=${*: -1} before=tarn
  [ $# -lt 2 ] || before=${*: -2:1}
  (cd "$here" && _tarn tarn "$word" "$before" && printf '%s\n' "${COMPREPLY[@]}")
}
offers() { # WORDS… -- WANTED…
  local words=()
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  shift
  completes "${words[@]}" >"$work/offered"
  for want in "$@"; do grep -qx -- "$want" "$work/offered" || fail "tarn ${words[*]}: $want is not offered"; done
}
offers "" -- compile inspect help --version
offers comp -- compile completion
[ "$(completes insp)" = inspect ] || fail "tarn insp: not inspect alone"
offers compile "" -- model.onnx folder
offers compile model.onnx -o "" -- folder
! grep -qx model.onnx "$work/offered" || fail "a file is offered as a folder"
offers compile --numerics "" -- exact reassoc approx
offers compile --hw "" -- host cuda cuda-sm80 vta-pynq
offers kernel --emit l -- ll
offers rules "" -- list check learn derive stats
offers rules check --prov -- --prove
offers hw "" -- show check derive import export peaks
offers hw import "" -- model.onnx
offers run digits -i image = "" -- model.onnx
offers help co -- compile
for c in $(awk '/^  [a-z]/ { print $1 }' <("$tarn" --help)); do
  "$tarn" "$c" --help | grep -oE '^  (-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+' >"$work/options"
  completes "$c" -- >"$work/offered"
  while read -r o; do grep -qx -- "$o" "$work/offered" || fail "tarn $c: $o is not offered"; done <"$work/options"
done
try 0 completion zsh
head -1 "$work/out" | grep -qx '#compdef tarn' || fail "zsh: no #compdef"
if command -v zsh >/dev/null; then
  zsh -n "$work/out" || fail "zsh: not read"
fi
finish

#!/usr/bin/env bash
# tests/newcomer.sh [LAST | after [no-torch]]: what a newcomer does. In the clone that is the current folder, runs every
# command of the blocks of README without a language, in order and as printed, up to the first that contains LAST; README's C
# is written to the file that its command names, and commands on a file that the reader brings (model.gguf) are left out. Then
# what else they try, which `after` runs alone: the manual page, completion, the application, the wheel in an environment of its
# own with the notebooks, torch.compile on five networks. Fails on the first command that fails. As root on a bare Debian 12:
# make check is among them.
set -uo pipefail
last=${1:-} torch=${2:-torch} prefix=${PREFIX:-/usr/local}
[ -f README.md ] || { echo "newcomer.sh: not at the top of a clone" >&2; exit 2; }
n=0
run() { # a command as it is printed
  echo "\$ $1"
  local start=$SECONDS
  eval "$1" </dev/null >newcomer.log 2>&1 || {
    tail -n 20 newcomer.log >&2
    echo "newcomer.sh: this fails: $1" >&2
    exit 1
  }
  n=$((n + 1))
  echo "  ($((SECONDS - start)) s)"
}
readme() {
  awk '$0 == "```c" { on = 1; next } $0 == "```" { on = 0 } on' README.md >classify.c
  while IFS= read -r -u 3 line; do
    run "$line"
    [ -z "$last" ] || [[ $line != *"$last"* ]] || exit 0
  done 3< <(awk '/^```/ { on = $0 == "```" && !inside; inside = !inside; next } on' README.md |
    grep -E '^(make|ldconfig|tarn|mkdir|cc) ?' | grep -v 'model\.gguf')
  [ "$n" -ge 10 ] || { echo "newcomer.sh: README has only $n commands" >&2; exit 1; }
  echo "$n commands of README ran as printed"
}
completed() { # what bash offers after "tarn in"
  bash -c "source $prefix/share/bash-completion/completions/tarn && COMP_WORDS=(tarn in) COMP_CWORD=1 && _tarn tarn in tarn &&
    [ \"\${COMPREPLY[*]}\" = inspect ]"
}
after() {
  local python=newcomer-venv/bin/python
  run "zcat -f $prefix/share/man/man1/tarn.1* | grep -q '^.SH NAME'"
  run completed
  run "PATH=$prefix/bin:\$PATH examples/folder/run.sh build"
  run "make wheel"
  run "python3 -m venv newcomer-venv"
  run "$python -m pip install -q build/wheel/tarn-*.whl numpy"
  run "(mkdir -p newcomer-here && cd newcomer-here && ../$python ../tests/python/examples.py ../docs/python.md ../examples/notebooks/*.ipynb)"
  [ "$torch" = no-torch ] && return
  run "$python -m pip install -q torch torchvision transformers onnxscript"
  run "(cd tests/python && ../../$python -m unittest -q test_torch)"
  run "$python bench/torch_models.py squeezenet1_1 resnet18 mobilenet_v2 bert gpt2"
}
[ "$last" = after ] || readme
after
echo "$n commands ran"

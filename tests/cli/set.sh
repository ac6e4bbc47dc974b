#!/usr/bin/env bash
# --set: inputs bound to numbers and files; the report keeps them for whoever checks the program.
source tests/cli/lib.sh "$1"
model=tests/cases/if_condition_given_later/model.onnx
k=tests/cases/if_condition_given_later/in_k.npy
x=tests/cases/if_condition_given_later/in_x.npy

# The branch, the shape and the scale are known then; x is the only input left.
try 0 compile $model -o "$work/a" --set c=true --set k=3,2 --set s=0.5 --json
is 'set.#' 3
is set.1 k=3,2
try 0 check "$work/a"
try 0 run "$work/a" -i x=$x -o "$work/a" --json
is outputs.y.shape.0 3
cp "$work/a/y.npy" "$work/y.npy"
for c in "run --reference" run; do
  # shellcheck disable=SC2086
  try 0 $c $model --set c=1 --set k=$k --set s=.5 -i x=$x -o "$work/b" --json
  cmp "$work/y.npy" "$work/b/y.npy" || fail "$c: another result"
done
try 0 run $model --set c=false --set k=3,2 --set s=0.5 -i x=$x -o "$work/b"
! cmp -s "$work/y.npy" "$work/b/y.npy" || fail "the other branch has the same result"

# A file is found from elsewhere, too.
cp $k "$work/k.npy"
top=$PWD
bin=$(realpath "$tarn")
(cd "$work" && "$bin" compile "$top/$model" -o c --set c=1 --set k=k.npy --set s=2 2>/dev/null) || fail "a file beside"
try 0 check "$work/c"

# Everything bound: a program without inputs. Programs and terms are bound alike.
try 0 compile $model -o "$work/d" --set c=1 --set k=3,2 --set s=0.5 --set x=2
try 0 check "$work/d"
echo '(compute (map (add $0 $1)) (input a ((3) ()) f32) (input b ((3) ()) f32))' >"$work/t.term"
try 0 compile "$work/t.term" -o "$work/e" --set b=1,2,3 --json
try 0 check "$work/e"
refused 2 b -- run "$work/e" -i "b=$work/y.npy"

# A condition of the run: the same program takes either branch. The shape must be known.
try 0 compile $model -o "$work/f" --set k=3,2 --set s=0.5
try 0 check "$work/f"
try 0 run "$work/f" -i c=tests/cases/if_runtime_condition/in_c.npy -i x=$x -o "$work/f"
refused 3 "depends on the inputs" "decides k" Reshape -- compile $model -o "$work/none" --set c=1 --set s=1
refused 3 c=maybe bool -- compile $model -o "$work/none" --set c=maybe
refused 3 k=1.5,2 i64 -- compile $model -o "$work/none" --set k=1.5,2
refused 3 in_x.npy f32 i64 '(2,3)' '(2)' -- compile $model -o "$work/none" --set k=$x
refused 3 --set nothing -- compile $model -o "$work/none" --set nothing=1
refused 3 --set nothing -- compile "$work/t.term" -o "$work/none" --set nothing=1
refused 2 --set c twice -- compile $model -o "$work/none" --set c=1 --set c=0
refused 2 NAME=VALUE -- compile $model -o "$work/none" --set c
refused 2 compiled already -- check "$work/a" --set s=1
finish

#!/usr/bin/env bash
# --outputs: the last row of an output alone, and no more computed than it needs.
source tests/cli/lib.sh "$1"
cat >"$work/head.tc" <<'END'
def head(float(B,S,K) x, float(K,V) w, float(V) b) -> (logits, sums) {
  logits(i,s,v) +=! x(i,s,k) * w(k,v)
  logits(i,s,v) = logits(i,s,v) + b(v)
  sums(i,k) +=! x(i,s,k)
}
END
head=$work/head.tc
dims=(--shape B=1 --shape K=32 --shape V=64)

for how in "" "--outputs last" "--outputs logits=last --outputs last"; do
  # shellcheck disable=SC2086
  try 0 compile "$head" "${dims[@]}" --shape S=16 $how --hw x86-64-v3 --name head -o "$work/d" --json
  flop=$(grep -o '"flop": *[0-9]*' "$work/out" | grep -o '[0-9]*$' | sort -n | tail -n 1)
  rows=$([ -z "$how" ] && echo 16 || echo 1)
  [ $((flop % (rows * 64))) = 0 ] && [ $((flop / (rows * 64))) -lt 80 ] && [ $((flop / (rows * 64))) -ge 64 ] ||
    fail "$last: $flop operations"
  try 0 check "$work/d"
  try 0 run "$work/d" -o "$work/d" --json
  is outputs.logits.shape.1 "$rows"
  is 'outputs.sums.shape.#' 2
done
grep 'logits  f32\[1,1,64\]' "$work/d/model.h" >/dev/null || fail "model.h: another shape"
try 0 bench "$work/d" --json

# The same row as that of all.
for o in all last; do
  # shellcheck disable=SC2046
  try 0 run --reference "$head" "${dims[@]}" --shape S=16 --seed 5 $([ $o = last ] && echo --outputs last) -o "$work/$o"
done
cmp <(tail -c 256 "$work/all/logits.npy") <(tail -c 256 "$work/last/logits.npy") || fail "another row"
cmp "$work/all/sums.npy" "$work/last/sums.npy" || fail "another sum"
try 0 check "$head" "${dims[@]}" --shape S=16 --outputs last

# One artefact for all lengths; one row is all there is of one.
try 0 compile "$head" "${dims[@]}" --shape S=1..64 --outputs last -o "$work/s"
try 0 check "$work/s"
try 0 compile "$head" "${dims[@]}" --shape S=1 --outputs last -o "$work/one"
try 0 check "$work/one"

# A decoder: its caches stay whole.
try 0 compile tests/data/gguf/chat.gguf --shape batch_size=1 --shape sequence_length=4 --shape past_sequence_length=3 \
  --outputs last -o "$work/decoder"
try 0 check "$work/decoder"
try 0 run "$work/decoder" -o "$work/decoder" --json
is outputs.logits.shape.1 1
[ "$(grep -c 'f32\[1,[0-9]*,7,[0-9]*\]' "$work/decoder/model.h")" -ge 4 ] || fail "model.h: other caches"

refused 3 head.tc nothing "no such output" -- compile "$head" "${dims[@]}" --shape S=16 --outputs nothing=last -o "$work/no"
refused 3 head.tc logits=last "no rows" -- compile "$head" "${dims[@]}" --shape S=0 --outputs logits=last -o "$work/no"
for word in first logits=first =last ""; do
  refused 2 "--outputs $word" "NAME=last" -- compile "$head" "${dims[@]}" --shape S=16 --outputs "$word" -o "$work/no"
done
echo '(compute (map (exp $0)) (input a ((3) ()) f32))' >"$work/t.term"
refused 3 out=last "no rows" f32 -- compile "$work/t.term" --outputs out=last -o "$work/no"
refused 3 "three dims" NAME=last -- compile "$work/t.term" --outputs last -o "$work/no"
refused 2 "compiled already" -- check "$work/d" --outputs last
[ ! -e "$work/no" ] || fail "a folder of what was refused"
finish

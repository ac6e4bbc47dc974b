#!/usr/bin/env bash
# compile --schedule: what --dump schedules prints is taken as it is and gives the same program; another schedule is the
# kernel's; one that is not legal, or of no kernel, is refused in one line and leaves nothing.
source tests/cli/lib.sh "$1"
mkdir "$work/place"
compile() { try 0 compile "$@" --price analytic --dump schedules; }
same() { # MODEL OPTIONS…
  compile "$@" -o "$work/a"
  cp "$work/out" "$work/all"
  compile "$@" -o "$work/b" --schedule "$work/all"
  cmp "$work/out" "$work/all" || fail "$last: other schedules than those handed in"
  for f in model.o model.h program.tarn; do cmp "$work/a/$f" "$work/b/$f" || fail "$last: $f is another one"; done
  diff <(sed '/"seconds"/,/}/d' "$work/a/report.json") <(sed '/"seconds"/,/}/d' "$work/b/report.json") || fail "$last: the report"
}
same $digits --shape n=1 --hw x86-64-v3
same $digits --shape n=4 --numerics exact --threads 2
for model in softmax blocks quantised; do
  same tests/data/onnx/$model.onnx --hw x86-64-vnni
done

# Every other schedule that tarn kernel lists for some kernel becomes that kernel's, and the outputs stay right.
model=($digits --shape n=1 --threads 2)
compile "${model[@]}" -o "$work/a"
grep -A 1 '^(kernel' "$work/out" >"$work/all"
tried=0
for line in 1 4 7; do
  sed -n "${line}p" "$work/all" >"$work/sig"
  grep -q '^(kernel' "$work/sig" || continue
  "$tarn" kernel "$work/sig" --price analytic --threads 2 --top 60 | grep '^(schedule' | sort -u | awk 'NR % 20 == 1' >"$work/others"
  while IFS= read -r other; do
    { cat "$work/sig"; echo "$other"; } >"$work/s"
    compile "${model[@]}" -o "$work/c" --schedule "$work/s"
    grep -F -A 1 -f "$work/sig" "$work/out" | grep -qxF "$other" || fail "$last: the kernel has another schedule"
    try 0 check "$work/c" --threads 2
    tried=$((tried + 1))
  done <"$work/others"
done
[ $tried -ge 4 ] || fail "only $tried other schedules were tried"

# One line that says why, and nothing is left.
bad() { # WORDS… -- TEXT
  local words=()
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  printf '%s\n' "$2" >"$work/s"
  refused 3 "$work/s:" "${words[@]}" -- compile "${model[@]}" --price analytic --schedule "$work/s" -o "$work/place/new"
  [ -z "$(ls -A "$work/place")" ] || fail "$last: leaves $(ls -A "$work/place")"
}
sig=$(sed -n 1p "$work/all")
sched=$(sed -n 2p "$work/all")
"$tarn" kernel "$sig" --price analytic --threads 2 --top 9 | grep '^(schedule' | grep -vxF "$sched" | head -1 >"$work/other"
bad ":2:1: " "acc beyond its levels" -- "$sig
$(sed -E 's/\(acc [0-9]+\)/(acc 48)/' <<<"$sched")"
bad ":2:" "walks dim 15" -- "$sig
$(sed -E 's/\((serial|parallel|unroll|vector) [0-9]+ /(\1 15 /' <<<"$sched")"
bad ":2:" "no level" -- "$sig
$(sed -E 's/\((serial|parallel|unroll|vector) /(warp /' <<<"$sched")"
bad ":1:1: " "no schedule follows" -- "$sig"
bad ":1:1: " "no kernel" -- "$sched"
bad ":4:1: " "another schedule" "line 2" -- "$sig
$sched
$sig
$(cat "$work/other")"
bad ":1:1: " "no kernel of the program has this signature" -- "(kernel (nest (stages (children 2) (shared) (split 2)
  (stage (own 196 1024) (reduce 64) (red sum (mul \$0 \$1))
    (child 0 (index ((196 1024) (64)) (12544) ((+ (* 64 d0) d2))))
    (child 1 (index ((196 1024) (64)) (65536) ((+ d1 (* 1024 d2))))) out)))
 (in f32 (12544) (1)) (const f32 (65536) (1)) (out f32 (196 1024) (1024 1)))
(schedule (stage (acc 2) (serial 1 16) (serial 0 6) (serial 2 1) (unroll 0 1) (unroll 1 8) (vector 1 1)))"
refused 3 "$work/none" -- compile "${model[@]}" --schedule "$work/none" -o "$work/place/new"
try 0 compile "${model[@]}" --schedule /dev/null -o "$work/c"
finish

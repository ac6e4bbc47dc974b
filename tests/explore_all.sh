#!/usr/bin/env bash
# tests/explore_all.sh BUILD: the larger workloads of bench/egraph through tarn explore --free: matches, e-nodes and classes after chosen
# iterations, sizes of the least terms, limits. Part of `ctest -C all`; tests/cli/explore.sh has the small ones.
source tests/cli/lib.sh "$1"
at=bench/egraph
run() { # RULES TERM OPTIONS…
  local rules=$1 term=$2
  shift 2
  try 0 explore --free --rules $at/$rules.rules $at/$term.term --count-matches --nodes 30000000 --json "$@"
}
rows() { # WHAT IT:M/N/C…
  local what=$1 row it
  shift
  for row in "$@"; do
    it=$((${row%%:*} - 1))
    [ "$(value iterations.$it.matches)/$(value iterations.$it.nodes)/$(value iterations.$it.classes)" = "${row#*:}" ] ||
      fail "$what, iteration $((it + 1)): $(value iterations.$it.matches)/$(value iterations.$it.nodes)/$(value iterations.$it.classes), expected ${row#*:}"
  done
}
least() { # WHAT COST…
  local what=$1 i=0
  shift
  for c in "$@"; do is best.$((i++)).cost "$c"; done
}
for n in 10 11; do # saturated: 2^n - 1 classes, 3^n - 2^(n+1) + 1 + n e-nodes
  run ac assoc$n --cost none
  is stop saturated
  is nodes $((3 ** n - 2 ** (n + 1) + 1 + n))
  is classes $((2 ** n - 1))
done
rows assoc11 10:$(value iterations.9.matches)/173063/2047
run pure math7 --iters 11
rows pure-s11 8:7797/8113/3576 9:23804/28303/12445 10:117203/136446/58464 11:915328/1047896/443832
least pure-s11 4 6 6 7 11 13 15
run pure math7 --iters 100 --scheduler backoff
rows pure-b100 20:1943/24329/13470 40:9478/92137/54663 56:58992/262421/156106 60:67986/320438/188259 80:5/709503/443379 \
  99:285607/1861957/1195404 100:65139/1861957/1195404
least pure-b100 4 6 6 7 11 13 15
run math math7 --iters 7
rows math7-s7 5:7581/3643/1176 6:28944/10397/3939 7:96279/52432/20449
run math diff --iters 14
rows diff-s14 13:128878/21439/4202 14:1020205/91695/18623
least diff 7
run math poly --iters 11
rows poly-s11 10:171056/26207/7340 11:1365014/252534/83023
least poly 11
run math ints --iters 8
rows ints-s8 7:32889/21688/8381 8:299888/211705/86108
least ints 6
run math diff --iters 100 --scheduler backoff
rows diff-b100 10:3111/1012/224 50:19789/20889/2462 90:54534/72194/8514 100:34314/95176/20357
least diff 7
run math poly --iters 100 --scheduler backoff
rows poly-b100 10:3423/1160/192 50:2905/19655/3499 90:249287/87726/6803 100:466199/96415/7365
least poly 11
run math five --iters 40 --scheduler backoff
rows five-b40 10:2197/2179/265 20:6253/5343/428 30:14336/10831/903 40:14030/45188/7012
least five 4
# Limits are hard.
try 0 explore --free --rules $at/math.rules $at/five.term --nodes 1000000 --cost none --json
is stop nodes
[ "$(value nodes)" -le 1000000 ] || fail "$(value nodes) e-nodes of at most 1,000,000"
# Sums, differences and what a saturated run finds are proved.
for pair in "(d x (+ 1 (* 2 x)))|2" "(i (+ x (cos x)) x)|(+ (sin x) (i x x))" "(+ (* y (+ x y)) (- (+ x 2) (+ x x)))|(+ 2 (- (* y (+ x y)) x))"; do
  try 0 explore --free --rules $at/math.rules --iters 12 --nodes 100000 --prove "${pair%|*}" "${pair#*|}" --cost none --json
  is proof.found true
done
# A network whose products are tiled: rules of both levels meet, and the values are those of the model.
try 0 compile $digits --shape n=1 --hw x86-64-v3 --price analytic --rules tiling -o "$work/tiled"
try 0 check "$work/tiled"
finish

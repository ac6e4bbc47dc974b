#!/usr/bin/env bash
# tarn explore -: commands from a pipe and, where there is script(1), from a terminal.
source tests/cli/lib.sh "$1"
at=bench/egraph

# session CODE OPTIONS… <commands
session() {
  local want=$1 got
  shift
  last="tarn explore - $*"
  "$tarn" explore - "$@" >"$work/out" 2>"$work/err"
  got=$?
  [ "$got" = "$want" ] || { fail "$last: exit code $got, expected $want"; sed 's/^/    /' "$work/err"; }
}
shows() { for word in "$@"; do grep -qF -- "$word" "$work/out" || { fail "$last: no $word"; cat "$work/out"; }; done; }
shows_not() { ! grep -qF -- "$1" "$work/out" || fail "$last: $1"; }

# What is loaded, run and asked for; in steps as at once.
session 3 --free --rules $at/ac.rules <<S
load $at/assoc7.term
run 3
explain (+ 1 (+ 2 (+ 3
  (+ 4 (+ 5 (+ 6 7)))))) (+ (+ 1 2) (+ 3 (+ 4 (+ 5 (+ 6 7)))))
explain (+ 1 2) (+ 1 3)
run
size
best
stats
S
shows "276        108" "proved in 1 steps" "by assoc" "1939 e-nodes, 127 classes, 8 iterations" "        13  (+"
[ "$(cat "$work/err")" = "tarn: line 5: not equal so far" ] || fail "errors: $(cat "$work/err")"

# Errors are one line, leave everything as it was, and the session goes on.
echo '(rule a (f ?x) => ?x) (rule b (g ?x) => ?y)' >"$work/bad.rules"
session 3 --free <<S
rules $work/bad.rules
nonsense
run
add (f a) (b
) (
))
add (f a)
run two
undo 3
load $work/none.term
rules
(rule a (f ?x) => ?x)
run
best
set scheduler quickly
set seconds x
class 99999
quit
nonsense after the end
S
[ "$(wc -l <"$work/err")" = 10 ] || { fail "$last: errors"; cat "$work/err"; }
grep -vq '^tarn: ' "$work/err" && fail "$last: an error that is not ours"
grep -q "line 1: $work/bad.rules:1:.*?y is not bound" "$work/err" || fail "$last: the reason of a bad rule"
shows "         1  a"
shows_not "(rule b"

# Undoing restores exactly: the graph, what rules have seen, their bans.
for k in 1 2; do
  again=$'run 12\nundo'
  session 0 --free <<S
rules $at/math.rules   ; a comment
load $at/math7.term
set scheduler backoff
run 9
$([ $k = 1 ] || echo "$again")
run 12
json $work/end$k.json
stats
S
  cut -c 1-70 "$work/out" | sed -n '/^rule /,$p' >"$work/stats$k"
done
cmp "$work/end1.json" "$work/end2.json" || fail "undo and run again: another graph"
[ -s "$work/stats1" ] && diff "$work/stats1" "$work/stats2" || fail "undo and run again: other rules"
try 0 explore --free --rules $at/math.rules $at/math7.term --scheduler backoff --iters 21 --egraph "$work/once.json"
cmp "$work/end1.json" "$work/once.json" || fail "a session in steps: another graph than at once"
session 0 --free <<S
rules $at/ac.rules
(+ a (+ b c))
run
(+ d e)
(rule zero (+ ?x 0) => ?x)
undo
undo
size
rules
undo
size
undo
size
S
shows "15 e-nodes, 7 classes, 4 it" "5 e-nodes, 5 classes" "0 e-nodes, 0 classes"
! grep -q "^(rule zero" "$work/out" || fail "undo: the rule is still there"

# Goals, proofs, phases and rules by name, patterns, other costs, files.
session 0 --free <<S
rules $at/math.rules
(/ (* 6 x) (+ 1 2))
goal (* ?a 2)
run
goal none
prove (* 2 x) (+ x x)
run 1 comm-add
match (* ?a x)
best depth
best pow=10,*=3
growth
class
dot $work/s.dot
json $work/s.json
html $work/s.html
set
help
S
shows "stopped: goal" "goal reached" "= (+ x x)   by" "4 matches" "count-matches" "take back"
for f in s.dot s.json s.html; do [ -s "$work/$f" ] || fail "session: no $f"; done
# What is known of classes may be declared late: the terms are kept, their growth is not.
session 0 --free <<'S'
(+ 1 (+ 2 x))
(rule assoc (+ ?a (+ ?b ?c)) => (+ (+ ?a ?b) ?c))
run
(analysis value constant ((+ ?a ?b) (add ?a ?b)))
run
best
S
shows "starts again from its 1 terms" "         3  (+ 3 x)"

# An e-graph of a file, with other terms; undone, and begun again when an analysis comes.
session 0 --free <<S
rules $at/math.rules
load $at/math7.term
run 3
json $work/three.json
new free
rules $at/ac.rules
(+ 1 y)
load $work/three.json
size
run 1
(analysis v constant ((+ ?a ?b) (add ?a ?b)))
size
undo 3
size
S
n=$(sed -n 's/^\(stopped: iterations; \)\([0-9]*\) e-nodes.*/\2/p' "$work/out" | head -1)
[ -n "$n" ] && grep -q "0 iterations, 8 terms" "$work/out" || fail "$last: a graph is not loaded"
shows "starts again from its 8 terms" "3 e-nodes, 3 classes, 0 iterations, 1 terms"

# Typed terms: continued as at once, undone, proved.
session 3 <<'S'
(transpose (1 0) (transpose (1 0) (input x ((4 8) ()) f32)))
run 1
size
undo
size
run
best
explain (transpose (1 0) (transpose (1 0) (input x ((4 8) ()) f32))) (input x ((4 8) ()) f32)
prove (transpose (1 0) (input x ((4 8) ()) f32)) (input x ((4 8) ()) f32)
(transpose (1) (input x ((4 8) ()) f32))
class
new free
(f a)
size
S
shows "4 e-nodes, 3 classes, 1 iterations" "3 e-nodes, 3 classes, 0 iterations" "stopped: saturated" "(step 2 rule transpose-identity" \
  "f32 ((4 8) ())" "2 e-nodes, 2 classes"
[ "$(wc -l <"$work/err")" = 2 ] || fail "typed session: $(cat "$work/err")"

# An interrupt ends a run with what was found so far: from a pipe the session goes on; of a file there is a result.
export input=/dev/null
interrupted() { # CODE ARGS…: a run that would not end for long, interrupted when it is under way
  local want=$1 got
  shift
  last="tarn $* (interrupted)"
  python3 - "$tarn" "$@" >"$work/out" 2>"$work/err" <<'P'
import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdin=open(os.environ['input']))
while p.poll() is None:  # again, as the first may come before the run has begun to look
    time.sleep(0.3)
    state = open(f'/proc/{p.pid}/status').read()
    held = int(next(l for l in state.splitlines() if l.startswith('SigBlk')).split()[1], 16)
    if held >> (signal.SIGINT - 1) & 1: p.send_signal(signal.SIGINT); break
sys.exit(p.wait())
P
  got=$?
  [ "$got" = "$want" ] || { fail "$last: exit code $got, expected $want"; cat "$work/err"; }
}
if command -v python3 >/dev/null && [ -r /proc/self/status ]; then
  interrupted 0 explore --free --rules $at/pure.rules $at/math7.term --nodes 100000000 --json
  is stop interrupted
  is 'best.#' 7
  interrupted 4 explore --free --rules $at/pure.rules $at/math7.term --nodes 100000000 --goal "(never there)"
  shows "stopped: interrupted" "goal not reached"
  printf 'rules %s/pure.rules\nload %s/math7.term\nrun\nsize\nbest\n' $at $at >"$work/piped"
  input=$work/piped interrupted 0 explore --free --nodes 100000000 -
  shows "stopped: interrupted" "7 terms" "  4  "
fi

# On a terminal: prompt, history, completion of commands, files, rules and operators.
if command -v script >/dev/null; then
  cp $at/ac.rules "$work/unusual-name.rules"
  printf '%s\n' "rul	$work/unus	" '(plus 1 (plus 2 3))' '(pl	 7 8)' 'run 2 com	' $'\x10\x10' 'si	' 'quit' |
    script -qec "exec $tarn explore --free" /dev/null >"$work/out" 2>&1 || fail "a session on a terminal fails"
  last="a session on a terminal"
  shows "tarn> " "stopped: saturated; 8 e-nodes" "8 e-nodes, 8 classes, 1 iterations, 3 terms"
  # Ctrl-C: a line is dropped; a run that would not end for long stops, and what it found is there.
  shown() { grep -o -- "$1" "$work/out" | wc -l; }
  until_shown() { # WHAT TIMES, meanwhile typing $3
    for ((i = 0; i < 600; i++)); do
      [ "$(shown "$1")" -ge "$2" ] && return
      sleep 0.1
      printf '%s' "${3-}"
    done
  }
  : >"$work/out"
  {
    until_shown 'tarn> ' 1
    printf 'rules %s/pure.rules\n' $at
    until_shown 'tarn> ' 2
    printf 'load %s/math7.term\n' $at
    until_shown 'tarn> ' 3
    printf '(never finished\n'
    until_shown '\.\.\. ' 1
    printf '(nor this'
    until_shown 'nor this' 1
    printf '\003'
    until_shown 'tarn> ' 4
    printf 'run\n'
    until_shown '> run' 1
    until_shown 'stopped: ' 1 $'\003'
    until_shown 'tarn> ' 5
    printf '%s\n' 'size' 'undo' 'size' 'quit'
  } | timeout 120 script -qefc "exec $tarn explore --free --nodes 100000000" /dev/null >"$work/out" 2>&1 || fail "a session with Ctrl-C fails"
  last="a session with Ctrl-C"
  shows "stopped: interrupted; " "undone: run" "35 e-nodes, 35 classes, 0 iterations, 7 terms"
  n=$(sed -n 's/.*stopped: interrupted; \([0-9]*\) e-nodes.*/\1/p' "$work/out")
  grep -q "^$n e-nodes, .*7 terms" "$work/out" || fail "$last: not what was found"
fi
finish

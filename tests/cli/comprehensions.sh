#!/usr/bin/env bash
# Tensor comprehensions: the examples, what docs/comprehensions.md shows, refusals with their place.
source tests/cli/lib.sh "$1"

block() { # FILE LANGUAGE
  awk -v open='```'"$2" '/^```/ { inside = !inside; if (on) print ""; on = inside && $0 == open; next } on' "$1"
}
page=docs/comprehensions.md
block $page tc >"$work/page.tc"
block $page "tc wrong" >"$work/wrong.tc"
# Commands are run where the page's files are; the lines behind a refused one are what it prints.
block $page "" | awk '/^\$ tarn/ || on { on = 1; print } /^$/ { on = 0 }' >"$work/session"
top=$PWD
run_shown() { # COMMAND EXPECTED
  local got code
  got=$(cd "$work" && eval "\"$tarn\" ${1#tarn }" 2>&1 >/dev/null)
  code=$?
  if [ -n "$2" ]; then
    [ "$code" = 3 ] && [ "$got" = "$2" ] || fail "$page: $1 prints otherwise: $got"
  else
    [ "$code" = 0 ] || fail "$page: $1 fails: $got"
  fi
}
[[ $tarn == /* ]] || tarn=$top/$tarn
command= expected= count=0
while IFS= read -r line || [ -n "$line" ]; do
  if [[ $line == '$ '* ]]; then
    [ -z "$command" ] || run_shown "$command" "$expected"
    command=${line#\$ } expected=
    count=$((count + 1))
  else
    [ -z "$line" ] || expected+=${expected:+$'\n'}$line
  fi
done <"$work/session"
run_shown "$command" "$expected"
[ $count -ge 8 ] || fail "$page: $count commands are found"
sizes="--shape N=6 --shape M=9 --shape H=6 --shape W=6 --shape B=3 --shape I=4 --shape O=2 --shape D=4 --shape E=9 --shape L=2 --shape K=3"
for def in $(sed -n 's/^def \([a-z0-9]*\).*/\1/p' "$work/page.tc"); do
  head=$(sed -n "/^def $def(/p" "$work/page.tc" | sed 's/->.*//')
  with=
  for s in N M H W B I O D E L K; do grep -qE "[(,]$s[,)]" <<<"$head" && with+=" --shape $s=$(sed -n "s/.*$s=\([0-9]*\).*/\1/p" <<<"$sizes")"; done
  [ $def = conv2d ] && with="--shape in=1,2,5,5 --shape weight=3,2,3,3 --shape sh=1 --shape sw=2"
  try 0 check "$work/page.tc" --def "$def" $with
done

# The examples, in small.
example() { # FILE SHAPES…
  local file=examples/tc/$1.tc with=()
  shift
  for s in "$@"; do [[ $s == --* ]] && with+=("${s%%:*}" "${s#*:}") || with+=(--shape "$s"); done
  try 0 check "$file" "${with[@]}"
  shown+="$file"$'\n'
}
example matvec M=5 K=7
example matmul M=5 K=7 N=9
example fc_relu B=4 I=8 O=6
example conv2d N=1 C=3 H=8 W=9 O=4 KH=3 KW=2
example conv2d_strided N=1 C=3 H=9 W=9 O=4 KH=3 KW=3 sh=2 sw=2
example maxpool N=1 C=2 H=7 W=8
example gather N=10 D=4 A=2 B=3
example tmm M=16 K=8 N=8
example tbmm B=3 N=4 M=5 K=6
example gconv N=2 G=3 C=4 F=5 H=7 W=7 KH=3 KW=3
example 2lut B=4 D=8 L1=5 L2=5 E1=20 E2=30
example 2lut B=3 D=70 L1=7 L2=40 E1=60000 E2=30 # a table that no L2 holds
example c3 B=4 WX=8 WY=6
example mlp --def:MLP1 B=4 M=8 N=6
example mlp --def:MLP3 B=4 N=8 O=6 P=5 Q=2
example kronecker M=3 D0=2 D1=3 D2=4 N0=4 N1=3 N2=2
example kru B=2 P=2 Q=3 R=4 I=5
example outer P=2 Q=3 R=4 S=5 T=6
for file in examples/tc/*.tc; do grep -qxF "$file" <<<"$shown" || fail "$file is not tried"; done

# The call from C, and what tuning leaves for it.
block docs/library.md "c call" | sed '$d' | diff - examples/tc/call.c || fail "docs/library.md shows another call than there is"
if [ -e "$build/lib/libtarn-tune.so" ]; then
  san=
  ! sanitized "$build/lib/libtarn-rt.so" || san=-fsanitize=address,undefined
  cc $san -D_GNU_SOURCE -I. examples/tc/call.c -L"$build/lib" -ltarn-tune -ltarn-codegen -ltarn -ltarn-select -o "$work/call" ||
    fail "call.c does not compile"
  said() { LD_LIBRARY_PATH=$build/lib "$work/call" "$1" | paste -sd ';'; }
  [ "$(said "$work/a.db")" = "321 654, compiled;321 654, called before" ] || fail "call.c: the first process"
  [ "$(said "$work/a.db")" = "321 654, in the file;321 654, called before" ] || fail "call.c: the second process"
  try 0 tune examples/tc/matvec.tc --shape A=2,3 --trials 4 --db "$work/b.db" -o "$work/b.price"
  [ "$(said "$work/b.db")" = "321 654, in the file;321 654, called before" ] || fail "call.c: after tarn tune"
fi

# What a compiled folder was made of is in its report.
try 0 compile examples/tc/mlp.tc --def MLP1 --shape B=2 --shape M=3 --shape N=4 -o "$work/mlp"
try 0 check "$work/mlp" && try 0 run "$work/mlp" --reference

# A subscript that is data gathers along its own axis, with the tensor that it reads as it is.
gathers() { # TERM FILE SHAPES…
  local term=$1 file=$2 with=()
  shift 2
  for s in "$@"; do with+=(--shape "$s"); done
  try 0 compile "$file" "${with[@]}" --dump terms -o "$work/gathers"
  grep -qF "$term" "$work/out" || fail "$last: $term is not there: $(cat "$work/out")"
}
of_i='(compute (map $0) (input I ((5 4) ()) i32))'
gathers "(gather 0 (input X ((9 6) ()) f32) $of_i)" examples/tc/gather.tc N=9 D=6 A=5 B=4
echo 'def f(float(C,N,D) X, int(5,4) I) -> (Z) { Z(c,b,d) max=! X(c,I(b,l),d) }' >"$work/axis.tc"
gathers "(gather 1 (input X ((3 9 6) ()) f32) $of_i)" "$work/axis.tc" C=3 N=9 D=6

# One kernel, so nothing between the statements is stored. Two threads: on one, sums side by side gain nothing.
one_kernel() { # FILE DEF SHAPES…
  local file=$1 def=$2 with=(--threads 2 --hw x86-64-v3 --price analytic) # not by what this machine is
  [ -e "$file" ] || file=examples/tc/$1.tc
  shift 2
  for s in "$@"; do with+=(--shape "$s"); done
  try 0 compile "$file" --def "$def" "${with[@]}" -o "$work/one"
  cat "$work/out" "$work/err" | grep -q ": 1 kernels, 0 copies" || fail "$last: $(head -n 1 "$work/err")"
}
one_kernel 2lut 2LUT B=128 D=64 L1=50 L2=50 E1=1000 E2=1000
cat >"$work/bags.tc" <<'END'
# The means of one table's rows beside the largest of another's, of other widths.
def bags(float(E1,D) T, int(B,L1) I, float(E2,F) U, int(B,L2) J) -> (M, N) {
  M(b,d) +=! T(I(b,l),d)
  M(b,d) = M(b,d) * 0.02
  N(b,f) max=! U(J(b,k),f)
}
END
one_kernel "$work/bags.tc" bags B=128 D=64 F=32 L1=50 L2=40 E1=1000 E2=2000
try 0 compile "$work/bags.tc" --def bags --shape B=128 --shape D=64 --shape F=32 --shape L1=50 --shape L2=40 --shape E1=1000 --shape E2=2000 \
  --threads 2 -o "$work/one"
try 0 check "$work/one"
one_kernel outer outer P=8 Q=32 R=64 S=32 T=64
one_kernel mlp MLP1 B=128 M=200 N=128

# Rows of 5 places fill no vector: the weights are copied so that one goes along their filters, in place of a copy of windows.
try 0 compile examples/tc/gconv.tc --hw x86-64-vnni --shape N=32 --shape G=8 --shape C=16 --shape F=16 --shape H=7 --shape W=7 \
  --shape KH=3 --shape KW=3 --dump graph -o "$work/gconv"
slot=$(sed -n 's/.*(slot \([0-9]*\)) (order 8:2304 16:1 16:144 3:48 3:16).*/\1/p' "$work/out")
[ -n "$slot" ] && grep -q "(copy [0-9]* (slot $slot) .* chosen)" "$work/out" || fail "$last: the weights are not copied"

# Refusals: one line, then the line of the file with a caret below the place.
bad() { # PLACE WORDS TEXT ARGS…
  local place=$1 words=$2 line col
  printf '%b' "$3" >"$work/bad.tc"
  shift 3
  try 3 compile "$work/bad.tc" -o "$work/bad" "$@" || return
  head -1 "$work/err" | grep -qF "tarn: $work/bad.tc:$place: " || fail "$last: $(head -1 "$work/err"), expected $place"
  head -1 "$work/err" | grep -qF "$words" || fail "$last: $(head -1 "$work/err"), expected $words"
  line=${place%:*} col=${place#*:}
  [ "$(sed -n 2p "$work/err")" = "  $(sed -n "${line}p" "$work/bad.tc")" ] || fail "$last: another line is shown"
  [ "$(sed -n 3p "$work/err")" = "$(printf '%*s^' $((col + 1)) '')" ] || fail "$last: the caret is elsewhere"
  [ ! -e "$work/bad" ] || fail "$last: something is left"
}
bad 2:16 "there is no type" 'def f(float(N) x,\n      float y, reel z) -> (a) {\n a(i) = x(i)\n}\n'
bad 1:26 "'->' is expected" 'def f(float(N) x, int n) (a) { a(i) = x(i) }'
bad 1:14 "N is not known" 'def f(float (N) x) -> (a) { a(i) = x(i) }'
bad 2:12 "stands on the right side only" 'def f(float(N) x) -> (a) {\n  a(i) = x(k)\n}' --shape N=3
bad 2:8 "has 1 dims, 2 subscripts" 'def f(float(N) x) -> (a) {\n a(i) =x(i,i)\n}' --shape N=3
bad 2:8 "neither a tensor" 'def f(float(N) x) -> (a) {\n a(i) =u(i)\n}' --shape N=3
bad 2:9 "has no value yet" 'def f(float(N) x) -> (a) {\n a(i)   += x(i)\n}' --shape N=3
bad 2:27 "depends on j" 'def f(float(N) x) -> (a) {\n a(j) +=! x(k) where k in j:3, j in 0:3\n}' --shape N=3
bad 2:9 "goes from 0 to 4" 'def f(float(N) x) -> (a) {\n a(j)=x(j) where j in 0:5\n}' --shape N=3
bad 1:23 "no statement gives" 'def f(float(N) x) -> (b) { a(j)=x(j) }' --shape N=3
bad 2:4 "nothing is left" 'def f(float(N) x) -> (b) {\n b(j)=x(j+9) }' --shape N=3
bad 2:9 "whole number" 'def f(float(N) x) -> (b) {\n b(j)=x(x(j)) }' --shape N=3
finish

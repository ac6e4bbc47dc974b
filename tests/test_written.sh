#!/usr/bin/env bash
# tests/test_written.sh BUILD: kernels written by hand, from the declaration to the compiled program, and what is refused.
set -uo pipefail
build=$(realpath "$1")
top=$(cd "$(dirname "$0")/.." && pwd)
tarn=$build/tarn
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
say() { echo "test_written: $*"; bad=1; }

out=$("$top/examples/kernels/run.sh" "$tarn" 2>&1) || say "the example fails: $out"
for words in '1 of 1 rules hold' 'in the chosen program' 'ok: largest difference' \
  '4 steps evaluated on both sides, 0 skipped' 'given: product-in-tiles, by the function tile8' '"symbol": "tile8"' \
  '"flop": 16777216' 'the price of the kernel tile8 at K = 512 is not measured yet'; do
  grep -qF "$words" <<<"$out" || say "the example does not say: $words: $out"
done

cd "$work"
cp "$top"/examples/kernels/tile8.* "$top"/examples/kernels/product.term .
cc -O2 -fPIC -I "$top" -c tile8.c || exit 1
compile() { timeout 120 "$tarn" compile product.term -o out --hw x86-64-v3 --rules "$@" 2>&1; }
refused() { # FILE, WORDS: exit code 3, one line with these words, nothing written
  local text
  rm -rf out
  text=$(compile "$1") && say "$1 is taken"
  [ $? = 0 ] || true
  [ "$(wc -l <<<"$text")" = 1 ] || say "$1: more than a line: $text"
  grep -qF -- "$2" <<<"$text" || say "$1: no '$2' in: $text"
  [ ! -e out ] || say "$1: something was written"
}
changed() { sed "$1" tile8.rules >"$2.rules"; }

changed 's/(link "tile8.o")/(link "absent.o")/' file && refused file.rules 'file.rules:2:1: absent.o: No such file'
changed 's/(link "tile8.o")/(link "tile8.o") (symbol other)/' symbol && refused symbol.rules 'tile8.o has no function other'
changed 's/(link "tile8.o")//' nolink && refused nolink.rules 'has no (link FILE)'
changed 's/(dims 8 8)/(dims 8 M)/' size && refused size.rules 'no operand has the size M'
changed 's/(order 1 0)/(order 1 1)/' order && refused order.rules 'each of the 2 dims once'
changed 's/(type f32) (dims 8 8)/(type f99) (dims 8 8)/' type && refused type.rules 'type.rules:5:17: an element type'
changed 's/(cycles.*$//' price && refused price.rules 'its price is needed'
changed 's/(cycles.*$/(seconds (- K 600))/' negative && refused negative.rules 'negative.rules:6:12: the kernel tile8 costs -88 at these sizes'
changed 's/(cycles.*$/(cycles (\/ 0 0))/' nothing && refused nothing.rules 'nothing.rules:6:11: the kernel tile8 costs'
changed 's/call tile8/call tile9/' name && refused name.rules 'no (kernel tile9 …) stands before this rule'
echo 'int tile8; ' >data.c && echo text >text.o && changed 's/"tile8.o"/"text.o"/' text && refused text.rules 'text.o'
text=$(timeout 60 "$tarn" compile product.term -o out --hw cuda-sm80 --rules tile8.rules 2>&1) && say "a GPU takes it"
grep -qF 'calls the function tile8, and cuda-sm80 (GPU) takes none' <<<"$text" || say "a GPU: $text"

# A shared object, with a name of its own and without; what needs what nothing brings.
for so in plain.so libnamed.so; do
  name=()
  [ $so = libnamed.so ] && name=(-Wl,-soname,libnamed.so)
  cc -shared "${name[@]}" -o $so tile8.o && changed "s/\"tile8.o\"/\"$so\"/" shared
  text=$(compile shared.rules) || say "$so: $text"
  (cd / && timeout 60 "$tarn" check "$work/out" >/dev/null) || say "the program with $so is not right"
  timeout 120 "$tarn" rules check shared.rules --samples 3 >/dev/null || say "rules check with $so"
done
changed 's/"tile8.o"/"plain.so"/; s/(link/(symbol other) (link/' other && refused other.rules 'plain.so has no function other'
sed 's/\* right/* right + not_there_at_all()/' tile8.c >body.c
{ echo 'float not_there_at_all(void);' && cat body.c; } >needs.c
cc -O2 -fPIC -I "$top" -c needs.c && changed 's/"tile8.o"/"needs.o"/' needs
text=$(compile needs.rules) && say "an object that needs what is not there is taken"
[ "$(wc -l <<<"$text")" = 1 ] && grep -q 'undefined symbol: not_there_at_all' <<<"$text" || say "needs.o: $text"

# Types that do not fit: the rule never applies, and both commands say so.
changed 's/(operand a (type f32)/(operand a (type f64)/' wide
text=$(compile wide.rules) || say "another type: $text"
grep -qF 'rule product-in-tiles (wide.rules:' <<<"$text" || say "another type: $text"
text=$(timeout 120 "$tarn" rules check wide.rules --samples 3) && say "rules check takes another type"
grep -qF 'operand a of the kernel tile8 has another type or shape' <<<"$text" || say "rules check, another type: $text"

# A function that computes something else is found; one that is not there is not tried.
sed 's/\* right/* right * 1.01f/' tile8.c >wrong.c && cc -O2 -fPIC -I "$top" -c wrong.c
changed 's/"tile8.o"/"wrong.o"/' wrong
text=$(timeout 120 "$tarn" rules check wrong.rules) && say "a wrong function is taken"
grep -q 'WRONG product-in-tiles' <<<"$text" || say "a wrong function: $text"
compile wrong.rules >/dev/null && timeout 60 "$tarn" check out >/dev/null 2>&1 && say "check takes a wrong function"
text=$(timeout 60 "$tarn" rules check file.rules) || say "an absent file is wrong: $text"
grep -qF 'absent.o: No such file' <<<"$text" || say "an absent file: $text"

# Storage orders: what does not lie so is copied; a function that fails ends the run with its message.
for how in '' '(packed)' '(order 0 1)'; do
  changed "s/ (order 1 0) (packed)/ $how/" lies
  sed 's/k \* b->stride\[1\]/k * b->stride[1]/; s/memcpy(&right, .*/for (int i = 0; i < 8; i++) right[i] = y[i * b->stride[0] + k * b->stride[1]];/;
    s/x\[k \* a->stride\[1\] + i\]/x[k * a->stride[1] + i * a->stride[0]]/' tile8.c >any.c
  sed -i 's/"tile8.o"/"any.o"/; s/(\* 4.5 K)/(* 0.01 K)/' lies.rules && cc -O2 -fPIC -I "$top" -c any.c
  grep -q 'in the chosen program' <<<"$(compile lies.rules)" || say "order '$how' is not chosen"
  timeout 60 "$tarn" check out >/dev/null 2>&1 || say "order '$how' gives other values"
done
# A measured price: a function that takes no time is called once it is measured, and not again after it changes.
echo '#include <runtime/ref.h>
int tile8(tarn_ref_call *call) { return call->nin == 2 ? TARN_REF_OK : TARN_REF_FAILED; }' >idle.c
cc -O2 -fPIC -I "$top" -c idle.c && changed 's/"tile8.o"/"idle.o"/; s/(cycles.*$/(measured)/' idle
measured() { timeout 120 "$tarn" compile product.term -o out --rules idle.rules ${1:+--db "$1"} 2>&1; }
grep -q 'idle.rules:2: the price of the kernel tile8 at K = 512 is not measured yet' <<<"$(measured)" || say "nothing is said of a price that is not measured"
timeout 120 "$tarn" tune product.term --rules idle.rules --db idle.db --trials 2 -o idle.price >/dev/null 2>&1 || say "tune fails"
text=$(measured idle.db)
grep -q 'not measured' <<<"$text" && say "tune does not measure it: $text"
grep -q 'in the chosen program' <<<"$text" || say "the measured price is not taken: $text"
"$tarn" tune --export idle.txt --db idle.db >/dev/null && "$tarn" tune --import idle.txt --db other.db >/dev/null || say "the store is not exported"
grep -q 'in the chosen program' <<<"$(measured other.db)" || say "a measured price is lost on the way"
sed -i s/2/3/ idle.c && cc -O2 -fPIC -I "$top" -c idle.c && grep -q 'not measured yet' <<<"$(measured idle.db)" || say "a changed function keeps its price"
changed 's/(cycles.*$/(measured) (cycles 3)/' twice && refused twice.rules 'its price is told already'
sed 's/return TARN_REF_OK/return (memcpy(call->message, "no luck", 8), TARN_REF_FAILED)/' tile8.c >fails.c
cc -O2 -fPIC -I "$top" -c fails.c && changed 's/"tile8.o"/"fails.o"/' fails
compile fails.rules >/dev/null
text=$(timeout 60 "$tarn" run out 2>&1) && say "a failing function succeeds"
grep -qF 'no luck' <<<"$text" || say "a failing function: $text"
exit $bad

#!/usr/bin/env bash
# examples/llm: a prompt in, text out, in C and in Python, by a small random model whose tokens PyTorch gave.
source tests/cli/lib.sh "$1"
sanitized "$build/lib/libtarn-rt.so" && finish # the program would have to be sanitized, too

gguf=tests/data/gguf/chat.gguf
prompt='<|user|> the son   thecafé.'
sizes() { # FOLDER NEW PAST
  try 0 compile $gguf --shape batch_size=1 --shape sequence_length="$2" --shape past_sequence_length="$3" \
    --cache 'past_key_values.*=present.*' --cache-rows 64 -o "$work/$1"
}
sizes step 1 0..63
sizes parts 1,4 0,4,5 # a step of four, then some of one
sizes one 1 5
cc -O1 -std=gnu17 -Wall -Wextra -Werror -I. examples/llm/*.c -L"$build/lib" -Wl,-rpath,"$build/lib" -ltarn-rt -lm -o "$work/chat" ||
  fail "chat.c: the compiler has words for it"
chat() { "$work/chat" "$@" >"$work/out" 2>"$work/err"; } # leaves both
same() { cmp -s "$1" "$2" || fail "$3: $(cat "$1"; cat "$work/err")"; }
wrong() { # WORDS ARGS…
  local words=$1
  shift
  chat "$@" && fail "chat $*: succeeds"
  [[ $(cat "$work/err") == *"$words"* ]] || fail "chat $*: $(cat "$work/err")"
}

chat -n 24 "$work/step/model.so" $gguf "$prompt"
same "$work/out" tests/data/gguf/chat.txt "other text than PyTorch's"
chat -n 24 -j 2 "$work/step/model.so" $gguf "$prompt"
same "$work/out" tests/data/gguf/chat.txt "other text with two threads"
chat -n 2 "$work/step/model.so" $gguf '<|user|>cats'
cp "$work/out" "$work/two"
chat -n 2 "$work/parts/model.so" $gguf '<|user|>cats'
same "$work/out" "$work/two" "other text with a prompt in one step"
chat "$work/parts/model.so" $gguf '<|user|>cats'
grep -q 'the context is full' "$work/err" || fail "a full context: $(cat "$work/err")"

# Of the likeliest tokens: always the same by one seed, and the best alone where they are to have no probability.
chat -t 1.5 -p 0.9 -s 7 -n 20 "$work/step/model.so" $gguf "$prompt"
cp "$work/out" "$work/drawn"
cmp -s "$work/out" tests/data/gguf/chat.txt && fail "a drawn text is the likeliest one"
chat -t 1.5 -p 0.9 -s 7 -n 20 "$work/step/model.so" $gguf "$prompt"
same "$work/out" "$work/drawn" "one seed, two texts"
chat -t 1.5 -p 0 -n 24 "$work/step/model.so" $gguf "$prompt"
same "$work/out" tests/data/gguf/chat.txt "top-p 0 is not the best token"

head -c 1000 $gguf >"$work/cut.gguf"
wrong "is truncated" "$work/step/model.so" "$work/cut.gguf" a
wrong "is no GGUF file" "$work/step/model.so" README.md a
wrong "has no tokenizer" "$work/step/model.so" tests/data/gguf/llama.gguf a
wrong "no token" "$work/step/model.so" $gguf 'the 1'
wrong "is empty" "$work/step/model.so" $gguf ''
wrong "several sizes" "$work/one/model.so" $gguf a
wrong "sizes for" "$work/parts/model.so" $gguf "$prompt"
wrong "No such file" "$work/step/model.so" "$work/none.gguf" a

if python3 -c 'import numpy' 2>/dev/null; then
  read -r ids tokens < <(python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
print(",".join(map(str, d["ids"])), *d["tokens"])' tests/data/gguf/chat.json)
  python3 examples/llm/chat.py -n 24 "$work/step/model.so" - "${ids//,/ }" >"$work/out" 2>"$work/err"
  [ "$(xargs <"$work/out")" = "$tokens" ] || fail "chat.py: $(cat "$work/out" "$work/err")"
  python3 examples/llm/chat.py -t 1 -p 0 -n 2 "$work/parts/model.so" - "1 9 7 26" >"$work/out" 2>"$work/err"
  python3 examples/llm/chat.py -n 2 "$work/step/model.so" - "1 9 7 26" >"$work/two" 2>"$work/err"
  same "$work/out" "$work/two" "chat.py, a prompt in one step"
fi
finish

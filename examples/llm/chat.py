#!/usr/bin/env python3
"""A language model compiled by tarn, as a program: a prompt in, text out.  chat.c says how it is compiled.

    chat.py [-n TOKENS] [-t TEMPERATURE] [-p TOP_P] [-s SEED] [-j THREADS] step/model.so tokenizer.json "Once upon a time"

Needs numpy and tokenizers.  Instead of tokenizer.json may stand `-`: tokens are numbers then, "1 35 43".  More than
one thread needs libtarn-rt.
"""
import argparse
import ctypes
import sys
import time

import numpy as np


class Port(ctypes.Structure):  # runtime/rt.h
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("n", ctypes.c_int32),
                ("dim", ctypes.POINTER(ctypes.c_int64)), ("bytes", ctypes.c_uint64), ("pair", ctypes.c_uint32),
                ("axis", ctypes.c_uint32), ("rows", ctypes.c_int64)]


class Model(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("nin", ctypes.c_uint32), ("nout", ctypes.c_uint32),
                ("nkernel", ctypes.c_uint32), ("workspace", ctypes.c_uint64), ("per_thread", ctypes.c_uint64),
                ("inputs", ctypes.POINTER(Port)), ("outputs", ctypes.POINTER(Port))]  # and more


class Sized(ctypes.Structure):
    _fields_ = [("size", ctypes.POINTER(ctypes.c_int64)), ("model", ctypes.POINTER(Model)), ("family", ctypes.c_void_p)]


SIZES = ctypes.POINTER(ctypes.c_int64)
POINTERS = ctypes.POINTER(ctypes.c_void_p)


class Sizes(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("nsize", ctypes.c_uint32), ("nprogram", ctypes.c_uint32),
                ("name", ctypes.POINTER(ctypes.c_char_p)), ("program", ctypes.POINTER(Sized)),
                ("run", ctypes.CFUNCTYPE(ctypes.c_int, SIZES, POINTERS, POINTERS, ctypes.c_void_p, ctypes.c_void_p)),
                ("workspace", ctypes.CFUNCTYPE(ctypes.c_size_t, SIZES, ctypes.c_uint32))]


VERSION = 8
NONE = ctypes.c_size_t(-1).value  # the workspace of sizes that there are not


def memory(n):
    """n bytes, aligned to 64."""
    raw = np.zeros(n + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin:begin + n]


class Decoder:
    """A compiled model and its caches, which each step fills further."""

    def __init__(self, path, threads):
        self.library = ctypes.CDLL(path)
        self.sizes = s = Sizes.in_dll(self.library, "tarn_sizes")
        if s.version != VERSION:
            sys.exit("chat: %s: is of another version of tarn" % path)
        self.names = [s.name[i].decode() for i in range(s.nsize)]
        programs = [s.program[i].model.contents for i in range(s.nprogram)]
        largest = programs[-1]
        outputs = [largest.outputs[i] for i in range(largest.nout)]
        inputs = [largest.inputs[i] for i in range(largest.nin)]
        out = [memory(p.bytes) for p in outputs]
        ins = [out[p.pair - 1] if p.pair else memory(p.bytes) for p in inputs]
        self.held = out + ins
        self.inputs = {p.name.decode(): m.view(np.int64) for p, m in zip(inputs, ins) if not p.pair}
        self.logits, self.words = next((m.view(np.float32), p.dim[p.n - 1]) for p, m in zip(outputs, out)
                                       if p.name == b"logits")
        self.ins = (ctypes.c_void_p * len(ins))(*[m.ctypes.data for m in ins])
        self.outs = (ctypes.c_void_p * len(out))(*[m.ctypes.data for m in out])
        self.threads, self.pool, self.filled = threads, None, 0
        if threads > 1:
            runtime = ctypes.CDLL("libtarn-rt.so.0")
            runtime.tarn_rt_pool_new.restype = ctypes.c_void_p
            self.pool = runtime.tarn_rt_pool_new(threads)
        self.space = memory(max(m.workspace + threads * m.per_thread for m in programs))

    def sizes_of(self, n):
        """The sizes of a step with n new tokens; None: the program has none."""
        of = {"sequence_length": n, "past_sequence_length": self.filled}
        size = (ctypes.c_int64 * len(self.names))(*[of[name] for name in self.names])
        there = n == 1 or "sequence_length" in self.names
        return size if there and self.sizes.workspace(size, self.threads) != NONE else None

    def step(self, tokens):
        """The logits behind the last of these tokens; None: the context is full."""
        logits = None
        while tokens:
            n = next((n for n in range(len(tokens), 0, -1) if self.sizes_of(n)), 0)
            if not n:
                return None
            given = {"input_ids": tokens[:n], "position_ids": range(self.filled, self.filled + n),
                     "attention_mask": [1] * (self.filled + n)}
            for name, memory in self.inputs.items():
                memory[:len(given[name])] = given[name]
            failed = self.sizes.run(self.sizes_of(n), self.ins, self.outs, self.space.ctypes.data, self.pool)
            if failed:
                sys.exit("chat: a step failed with %d" % failed)
            self.filled += n
            logits, tokens = self.logits[(n - 1) * self.words:n * self.words], tokens[n:]
        return logits


def chosen(logits, o, random):
    """The likeliest token, or one of the likeliest, which together have the probability top-p."""
    if not o.temperature:
        return int(logits.argmax())
    p = np.exp((logits - logits.max()) / o.temperature, dtype=np.float64)
    order = np.argsort(-p)
    p = p[order] / p.sum()
    kept = int(np.searchsorted(p.cumsum(), o.top_p)) + 1
    return int(random.choice(order[:kept], p=p[:kept] / p[:kept].sum()))


class Numbers:
    """Tokens as they are."""

    def encode(self, text):
        return [int(w) for w in text.split()]

    def decode(self, ids):
        return "".join("%d " % i for i in ids)

    def ends(self, _):
        return False


class Text:
    def __init__(self, path):
        import tokenizers
        self.t = tokenizers.Tokenizer.from_file(path)

    def encode(self, text):
        return self.t.encode(text).ids

    def decode(self, ids):
        return self.t.decode(ids)

    def ends(self, token):
        return self.t.id_to_token(token) in ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>",
                                             "<end_of_turn>", "<eos>")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("-n", dest="tokens", type=int, default=128)
    a.add_argument("-t", dest="temperature", type=float, default=0)
    a.add_argument("-p", dest="top_p", type=float, default=0.95)
    a.add_argument("-s", dest="seed", type=int, default=1)
    a.add_argument("-j", dest="threads", type=int, default=1)
    a.add_argument("model")
    a.add_argument("tokenizer")
    a.add_argument("prompt")
    o = a.parse_args()
    t = Numbers() if o.tokenizer == "-" else Text(o.tokenizer)
    ids, told, said = t.encode(o.prompt), [], ""
    decoder, random = Decoder(o.model, o.threads), np.random.default_rng(o.seed)
    begin = time.perf_counter()
    logits = decoder.step(ids)
    read = time.perf_counter()
    if logits is None:
        sys.exit("chat: the prompt is empty, or longer than the program has sizes for")
    while logits is not None and len(told) < o.tokens:
        token = chosen(logits, o, random)
        if t.ends(token):
            break
        told.append(token)
        text = t.decode(told)
        if not text.endswith("\ufffd"):  # a part of a letter
            print(text[len(said):], end="", flush=True)
            said = text
        logits = decoder.step([token])
    print()
    print("prompt: %d tokens, %.1f a second; %d more, %.1f a second" %
          (len(ids), len(ids) / (read - begin), len(told), len(told) / (time.perf_counter() - read)), file=sys.stderr)


if __name__ == "__main__":
    main()

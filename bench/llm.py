#!/usr/bin/env python3
"""A language model as its users have it: are its tokens right, and how many a second, beside other engines?

    bench/llm.py FOLDER [--tarn build/tarn] [--threads 1,2] [--past 16,512,4096] [--prompt 512] [--work DIR]
                        [--only tokens|speed|perplexity] [--window 512] [--models gguf,f32,int4] [--peers]

FOLDER holds model.gguf, int4/ and f32/ (model.onnx; each may be absent) and reference.json: a list of prompts with
their "ids" and greedy "tokens".  Needs numpy; --peers also onnxruntime and llama-cpp-python, and the tokens of int4
onnxruntime and onnx, where they are installed.

Tokens: one program takes a prompt and its reference tokens at once, so that the logits of each position are those that
a greedy decoder sees.  A difference counts unless the two best logits there are within 1e-3.  Reference texts do not end:
the token that ends one (genai_config.json) is not among the candidates.  The int4 model has other weights: on the same texts,
with activations in f32 (accuracy_level 1), it is compared with ONNX Runtime.
Perplexity: of 4,096 tokens of README.md and docs/, in windows, and beside it that of ONNX Runtime on the same model and on one
whose activations are f32.  Needs tokenizers.
Speed: the median of `tarn bench` for a step after so many others (--past) and for a prompt of so many (--prompt), and
a peer's in the same run.  The load of the machine stands above.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

CLOSE = 1e-3


def tarn(o, *args):
    done = subprocess.run([o.tarn, *args], capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s %s: %s" % (o.tarn, args[0], done.stderr.strip()))
    return done.stdout


def generator(folder):
    """What ONNX Runtime's generator says of a model beside it."""
    return json.load(open(os.path.join(folder, "genai_config.json")))["model"]


def head_size(path):
    return generator(os.path.dirname(path))["decoder"]["head_size"]  # open in the model


def ends(o):
    for d in (os.path.join(o.folder, n) for n in ("f32", "int4")):
        if os.path.exists(os.path.join(d, "genai_config.json")):
            e = generator(d)["eos_token_id"]
            return e if isinstance(e, list) else [e]
    return []


def sizes(new, past, path):
    s = {"batch_size": 1, "sequence_length": new, "past_sequence_length": past}
    if path.endswith(".onnx"):
        s["total_sequence_length"] = new + past
        s["kv_cache_dim"] = head_size(path)
    return [w for k, v in s.items() for w in ("--shape", "%s=%d" % (k, v))]


def models(o):
    known = (("gguf", "model.gguf"), ("f32", "f32/model.onnx"), ("int4", "int4/model.onnx"))
    return [(n, os.path.join(o.folder, p)) for n, p in known if os.path.exists(os.path.join(o.folder, p))]


def compiled(o, name, path, new, past):
    """The folder of a program, its inputs, and the CPU seconds that it took."""
    folder = os.path.join(o.work, "%s-%d-%d" % (name, new, past))
    before = os.times()
    tarn(o, "compile", path, *sizes(new, past, path), "-o", folder)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    return folder, json.load(open(os.path.join(folder, "report.json"))), seconds


def step_inputs(o, folder, names, ids, past):
    """Arguments -i for the inputs that say which tokens; caches without rows are not there."""
    new = len(ids)
    value = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, past + new), np.int64),
             "position_ids": np.arange(past, past + new, dtype=np.int64)[None]}
    args = []
    for n in (n for n in names if n in value):
        path = os.path.join(o.work, n + ".npy")
        np.save(path, value[n])
        args += ["-i", "%s=%s" % (n, path)]
    return args


def in_f32(o, path):
    """A copy of the model whose activations stay f32; None where none can be made."""
    try:
        import onnx
    except ImportError as e:
        return print("no %s here, so tokens of int4 are not compared" % e.name)
    model = onnx.load(path, load_external_data=False)
    for a in (a for n in model.graph.node for a in n.attribute if a.name == "accuracy_level"):
        a.i = 1
    copy = os.path.join(o.work, "in_f32.onnx")
    for f in os.listdir(os.path.dirname(path)):
        link = os.path.join(o.work, f)
        if f.endswith((".data", ".json")) and not os.path.exists(link):
            os.link(os.path.join(os.path.dirname(path), f), link)
    onnx.save(model, copy)
    return copy


def session_of(path, threads=0):
    """ONNX Runtime's; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError as e:
        return print("no %s here, so int4 is not compared" % e.name)
    so = onnxruntime.SessionOptions()
    so.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, so, providers=["CPUExecutionProvider"])


def fed(session, path, ids, past):
    """What a session of ONNX Runtime is given for these tokens after so many others."""
    feed = {"input_ids": np.array([ids], np.int64), "attention_mask": np.ones((1, past + len(ids)), np.int64),
            "position_ids": np.arange(past, past + len(ids), dtype=np.int64)[None]}
    names = [i.name for i in session.get_inputs()]
    for i in (i for i in session.get_inputs() if i.name.startswith("past")):
        feed[i.name] = np.zeros((1, i.shape[1], past, head_size(path)), np.float32)
    return {k: v for k, v in feed.items() if k in names}


def tokens(o, name, path, reference):
    """Prompts whose greedy tokens are the reference's, each up to the first step that is too close to call."""
    other = None
    if name == "int4":
        path = in_f32(o, path)
        other = path and session_of(path)
        if not other:
            return True
        name = "int4-f32"
    length = max(len(r["ids"]) + len(r["tokens"]) for r in reference) - 1
    folder, report, _ = compiled(o, name, path, length, 0)
    right = 0
    for r in reference:
        n, known = len(r["ids"]), r["ids"] + r["tokens"]
        ids = (known + [0] * length)[:length]
        out = os.path.join(o.work, "out")
        names = [i["name"] for i in report["inputs"]]
        tarn(o, "run", folder, *step_inputs(o, folder, names, ids, 0), "-o", out)
        logits = np.load(os.path.join(out, "logits.npy"))[0]
        logits[:, ends(o)] = -np.inf
        best = np.sort(logits, axis=-1)[:, -2:]
        wrong, expected = None, r["tokens"]
        if other:
            theirs = other.run(["logits"], fed(other, path, ids, 0))[0][0]
            theirs[:, ends(o)] = -np.inf
            expected = theirs[n - 1:len(known) - 1].argmax(axis=-1)
        for k, want in enumerate(expected):
            if best[n - 1 + k, 1] - best[n - 1 + k, 0] < CLOSE:
                break
            if int(logits[n - 1 + k].argmax()) != want:
                wrong = k
                break
        right += wrong is None
        if wrong is not None:
            print("%s: prompt %r differs at token %d" % (name, r.get("prompt"), wrong))
    print("tokens  %-5s %d of %d prompts right" % (name, right, len(reference)), flush=True)
    return right == len(reference)


def texts():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    pages = [os.path.join(top, "README.md")]
    pages += sorted(os.path.join(top, "docs", f) for f in os.listdir(os.path.join(top, "docs")) if f.endswith(".md"))
    return "".join(open(p).read() for p in pages)


def surprise(logits, ids):
    """The sum of -log p of each token but the first."""
    x = logits[:-1].astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return float((np.log(np.exp(x).sum(axis=-1)) - x[np.arange(len(x)), ids[1:]]).sum())


def perplexity(o, name, path):
    import tokenizers
    ids = tokenizers.Tokenizer.from_file(os.path.join(o.folder, "tokenizer.json")).encode(texts()).ids
    n, out = o.window, os.path.join(o.work, "out")
    windows = [ids[i:i + n] for i in range(0, min(len(ids), 4096) - n + 1, n)]
    folder, report, _ = compiled(o, name, path, n, 0)
    names = [i["name"] for i in report["inputs"]]

    def ours(w):
        tarn(o, "run", folder, *step_inputs(o, folder, names, w, 0), "-o", out)
        return np.load(os.path.join(out, "logits.npy"))[0]
    by = [("tarn", ours)]
    if path.endswith(".onnx") and o.peers:
        for what, file in (("ONNX Runtime", path), ("ONNX Runtime in f32", in_f32(o, path))):
            s = session_of(file)
            by.append((what, lambda w, s=s, file=file: s.run(["logits"], fed(s, file, w, 0))[0][0]))
    for what, run in by:
        total = sum(surprise(run(w), w) for w in windows)
        print("perplexity %-5s %s: %.4f" % (name, what, np.exp(total / (len(windows) * (n - 1)))), flush=True)


def median(run, least=5, seconds=3.0):
    took, end = [], time.perf_counter() + seconds
    while len(took) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return sorted(took)[len(took) // 2]


def onnx_runtime(path, new, past, threads):
    s = session_of(path, threads)
    if not s:
        raise ImportError(name="onnxruntime")
    feed = fed(s, path, [1] * new, past)
    return median(lambda: s.run(None, feed))


def llama_cpp(path, new, past, threads):
    import llama_cpp
    m = llama_cpp.Llama(path, n_ctx=past + new + 256, n_threads=threads, n_threads_batch=threads, verbose=False)
    if past:
        m.eval([1] * past)

    def step():
        m.n_tokens = past
        m.eval([1] * new)
    return median(step)


def peer(name, path, new, past, threads):
    try:
        return ("llama.cpp", llama_cpp(path, new, past, threads)) if name == "gguf" else \
            ("ONNX Runtime", onnx_runtime(path, new, past, threads))
    except ImportError as e:
        print("no %s here" % e.name)
        return None


def speed(o, name, path, new, past):
    folder, _, seconds = compiled(o, name, path, new, past)
    what = "prompt  %-5s of %d" % (name, new) if new > 1 else "step    %-5s past %d" % (name, past)
    size = os.path.getsize(os.path.join(folder, "model.so"))
    data = sum(os.path.getsize(os.path.join(os.path.dirname(path), f)) for f in os.listdir(os.path.dirname(path))
               if f.startswith(os.path.basename(path)))
    print("compile %-5s %d past %d: %.1f CPU s, model.so %.2f of the file" % (name, new, past, seconds, size / data),
          flush=True)
    for threads in o.threads:
        said = json.loads(tarn(o, "bench", folder, "--threads", str(threads), "--json"))
        took, line = said["seconds"]["median"], ""
        other = peer(name, path, new, past, threads) if o.peers else None
        if other:
            line = ", %s %.1f, ratio %.2f" % (other[0], new / other[1], other[1] / took)
        print("%s, %d threads: %.1f tokens/s%s" % (what, threads, new / took, line), flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder")
    a.add_argument("--tarn", default="build/tarn")
    a.add_argument("--work", default="build/llm")
    a.add_argument("--only", choices=("tokens", "speed", "perplexity"))
    a.add_argument("--models", default="gguf,f32,int4")
    a.add_argument("--peers", action="store_true")
    a.add_argument("--threads", type=lambda s: [int(x) for x in s.split(",")], default=[1, 2])
    a.add_argument("--past", type=lambda s: [int(x) for x in s.split(",")], default=[16, 512, 4096])
    a.add_argument("--prompt", type=int, default=512, help="new tokens of a prompt; 0: none is timed")
    a.add_argument("--window", type=int, default=512, help="tokens of a window whose perplexity is measured")
    o = a.parse_args()
    os.makedirs(o.work, exist_ok=True)
    chosen = [m for m in models(o) if m[0] in o.models.split(",")]
    right = True
    if o.only == "perplexity":
        for n, p in chosen:
            perplexity(o, n, p)
        return 0
    if o.only != "speed":
        reference = json.load(open(os.path.join(o.folder, "reference.json")))
        right = all([tokens(o, n, p, reference) for n, p in chosen])
    if o.only != "tokens":
        print("load %.1f, %.1f, %.1f" % os.getloadavg())
        for n, p in chosen:
            for past in o.past:
                speed(o, n, p, 1, past)
            if o.prompt:
                speed(o, n, p, o.prompt, 0)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())

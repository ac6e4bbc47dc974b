#!/usr/bin/env python3
"""Write small GGUF files with random weights, and what PyTorch's networks and the package gguf make of them.

    generate.py OUT_DIR          needs the packages torch, transformers, gguf and numpy

NAME.gguf is a model of an architecture, NAME.npy the logits of its TOKENS by the network in transformers, from the same
weights.  chat.gguf has a tokenizer as well; chat.json holds a prompt, and how the network goes on,
chat.txt the same as bytes.  types.gguf holds a tensor of each type, random bytes but for the scales; TYPE.npy is what gguf reads it as.
"""
import json
import math
import os
import struct
import sys

import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType, quants

TOKENS = [1, 17, 30, 8, 8, 41, 5]
WIDTH, HIDDEN, HEADS, GROUPS, LAYERS, WORDS = 32, 64, 4, 2, 2, 48
random = np.random.default_rng(11)


class File:
    """The container: keys and tensors, little-endian, aligned to 32 bytes."""

    def __init__(self):
        self.keys, self.tensors = [], []

    @staticmethod
    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()

    def key(self, name, value):
        if isinstance(value, list):
            kind = 8 if isinstance(value[0], str) else 5
            items = [self.text(v) if kind == 8 else struct.pack("<i", v) for v in value]
            self.keys.append(self.text(name) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(items))
            return
        kind, body = (8, self.text(value)) if isinstance(value, str) else \
            (6, struct.pack("<f", value)) if isinstance(value, float) else (4, struct.pack("<I", value))
        self.keys.append(self.text(name) + struct.pack("<I", kind) + body)

    def tensor(self, name, shape, kind, data):
        self.tensors.append((name, shape, int(kind), bytes(data) + bytes(-len(data) % 32)))

    def write(self, path):
        with open(path, "wb") as f:
            head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)) + b"".join(self.keys)
            at = 0
            for name, shape, kind, data in self.tensors:
                dims = struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", d) for d in reversed(shape))
                head += self.text(name) + dims + struct.pack("<IQ", kind, at)
                at += len(data)
            f.write(head + bytes(-len(head) % 32) + b"".join(t[3] for t in self.tensors))


# ---- one tensor of each type

def random_blocks(kind, rows, blocks, elements, size):
    raw = random.integers(0, 256, (rows, blocks, size), np.uint8)
    scales = {"Q6_K": [208]}.get(kind, [0, 2] if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else [0])
    for at in scales:
        raw[:, :, at:at + 2] = random.uniform(-0.1, 0.1, (rows, blocks, 1)).astype(np.float16).view(np.uint8)
    return raw.reshape(rows, blocks * size)


def types(out):
    f = File()
    f.key("general.architecture", "types")
    for kind in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        number = GGMLQuantizationType[kind]
        elements, size = quants.GGML_QUANT_SIZES[number]
        columns = 512 if elements == 256 else 64
        if elements == 1:
            numbers = random.uniform(-1, 1, (3, columns)).astype(np.float32)
            raw = quants.quantize(numbers, number) if kind != "F16" else numbers.astype(np.float16)
            raw = raw.view(np.uint8)
        else:
            raw = random_blocks(kind, 3, columns // elements, elements, size)
        want = {"F32": lambda: raw.view(np.float32), "F16": lambda: raw.view(np.float16).astype(np.float32)}
        np.save(f"{out}/{kind}.npy", want.get(kind, lambda: quants.dequantize(raw, number))())
        f.tensor(kind, (3, columns), number, raw.tobytes())
    f.write(f"{out}/types.gguf")


# ---- networks

def stored(f, name, parameter, kind, change=lambda w: w):
    """Rounds the parameter to what the type can hold, and adds it."""
    number = GGMLQuantizationType[kind]
    raw = quants.quantize(parameter.detach().numpy(), number)
    parameter.data = torch.from_numpy(np.ascontiguousarray(quants.dequantize(raw, number)))
    f.tensor(name, tuple(parameter.shape), number, change(raw).tobytes())


def vector(f, name, parameter, plus=0.0):
    f.tensor(name, tuple(parameter.shape), 0, (parameter.detach().numpy() + np.float32(plus)).tobytes())


def neighbours(heads):
    """Rows of halves as rows of neighbours: what converters do to queries and keys of Llama."""
    return lambda raw: np.ascontiguousarray(
        raw.reshape(heads, 2, -1, raw.shape[-1]).swapaxes(1, 2).reshape(raw.shape))


def scramble(model):
    torch.manual_seed(3)
    for name, p in model.named_parameters():
        p.data = torch.randn_like(p) * (0.3 if p.dim() > 1 else 0.2) + (1.0 if name.endswith("norm.weight") else 0.0)


def attention(f, i, layer, llama, fused):
    a, b = layer.self_attn, f"blk.{i}."
    if fused:
        stored(f, b + "attn_qkv.weight", a.qkv_proj.weight, "Q8_0")
    else:
        stored(f, b + "attn_q.weight", a.q_proj.weight, "Q8_0", neighbours(HEADS) if llama else lambda w: w)
        stored(f, b + "attn_k.weight", a.k_proj.weight, "Q5_1", neighbours(GROUPS) if llama else lambda w: w)
        stored(f, b + "attn_v.weight", a.v_proj.weight, "Q4_1")
        for x in "qkv":
            p = getattr(a, f"{x}_proj").bias
            if p is not None:
                vector(f, f"{b}attn_{x}.bias", p)
    for x in "qk":
        if hasattr(a, f"{x}_norm"):
            vector(f, f"{b}attn_{x}_norm.weight", getattr(a, f"{x}_norm").weight)
    stored(f, b + "attn_output.weight", a.o_proj.weight, "Q5_0")


def network(out, name, architecture, config, keys, one=0.0):
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    scramble(model)
    f, body = File(), model.model
    f.key("general.architecture", architecture)
    usual = {"block_count": LAYERS, "embedding_length": WIDTH, "feed_forward_length": HIDDEN, "context_length": 64,
             "attention.head_count": HEADS, "attention.head_count_kv": GROUPS,
             "attention.layer_norm_rms_epsilon": float(config.rms_norm_eps)}
    for k, v in {**usual, **keys}.items():
        f.key(f"{architecture}.{k}", v)
    stored(f, "token_embd.weight", body.embed_tokens.weight, "Q8_0")
    vector(f, "output_norm.weight", body.norm.weight, one)
    if not config.tie_word_embeddings:
        stored(f, "output.weight", model.lm_head.weight, "F16")
    fused = architecture == "phi3"
    for i, layer in enumerate(body.layers):
        b = f"blk.{i}."
        vector(f, b + "attn_norm.weight", layer.input_layernorm.weight, one)
        attention(f, i, layer, architecture == "llama", fused)
        vector(f, b + "ffn_norm.weight", layer.post_attention_layernorm.weight, one)
        if fused:
            stored(f, b + "ffn_up.weight", layer.mlp.gate_up_proj.weight, "Q4_0")
        else:
            stored(f, b + "ffn_gate.weight", layer.mlp.gate_proj.weight, "Q4_0")
            stored(f, b + "ffn_up.weight", layer.mlp.up_proj.weight, "Q4_1")
        stored(f, b + "ffn_down.weight", layer.mlp.down_proj.weight, "BF16")
    return model, f


def write(out, name, model, f):
    f.write(f"{out}/{name}.gguf")
    with torch.no_grad():
        np.save(f"{out}/{name}.npy", model(torch.tensor([TOKENS])).logits.numpy())


SHAPE = dict(hidden_size=WIDTH, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
             num_key_value_heads=GROUPS, vocab_size=WORDS, max_position_embeddings=64, pad_token_id=0)


def llama(out):
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 16, "rope_theta": 500000.0}
    config = transformers.LlamaConfig(**SHAPE, rope_parameters=scaling, tie_word_embeddings=False)
    model, f = network(out, "llama", "llama", config, {"rope.dimension_count": WIDTH // HEADS, "rope.freq_base": 500000.0})
    plain = 500000.0 ** (-np.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS))
    factors = (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)
    f.tensor("rope_freqs.weight", factors.shape, 0, factors.tobytes())
    write(out, "llama", model, f)


def chat(out):
    config = transformers.LlamaConfig(**SHAPE, tie_word_embeddings=False, eos_token_id=0)
    model, f = network(out, "chat", "llama", config, {"rope.dimension_count": WIDTH // HEADS, "rope.freq_base": 10000.0})
    merges = ["t h", "th e", "Ġ the", "a n", "i n", "in g", "Ġ a", "o n", "e r", "e s", "Ġ s", "o r", "a t"]
    tokens = ["<|end|>", "<|user|>", "Ġ", "Ċ", ".", "Ã", "©"] + [c for c in "abcdefghijklmnopqrstuvwxyz"]
    tokens += [m.replace(" ", "") for m in merges]
    tokens += ["<|unused|>"] * (WORDS - len(tokens))
    f.key("tokenizer.ggml.model", "gpt2")
    f.key("tokenizer.ggml.pre", "gpt-2")
    f.key("tokenizer.ggml.tokens", tokens)
    f.key("tokenizer.ggml.token_type", [3 if t.startswith("<|") else 1 for t in tokens])
    f.key("tokenizer.ggml.merges", merges)
    f.key("tokenizer.ggml.eos_token_id", 0)
    f.write(f"{out}/chat.gguf")
    prompt = ["<|user|>", "Ġthe", "Ġs", "on", "Ġ", "Ġ", "Ġthe", "c", "a", "f", "Ã", "©", "."]
    ids = torch.tensor([[tokens.index(t) for t in prompt]])
    with torch.no_grad():
        y = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)[0, ids.shape[1]:].tolist()
    text = "".join(tokens[t] for t in y if t != 0).replace("Ġ", " ").replace("Ċ", "\n")
    with open(f"{out}/chat.txt", "wb") as to:
        to.write(text.encode("latin-1") + b"\n")
    json.dump({"prompt": "<|user|> the son   thecaf\u00e9.", "ids": ids[0].tolist(), "tokens": y}, open(f"{out}/chat.json", "w"))


def others(out):
    qwen2 = transformers.Qwen2Config(**SHAPE, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    write(out, "qwen2", *network(out, "qwen2", "qwen2", qwen2, {"rope.freq_base": 1000000.0}))
    qwen3 = transformers.Qwen3Config(**SHAPE, head_dim=16, tie_word_embeddings=True)
    wide = {"attention.key_length": 16, "attention.value_length": 16}
    write(out, "qwen3", *network(out, "qwen3", "qwen3", qwen3, {**wide, "rope.freq_base": 10000.0}))
    gemma = transformers.GemmaConfig(**SHAPE, head_dim=16, tie_word_embeddings=True)
    write(out, "gemma", *network(out, "gemma", "gemma", gemma, wide, 1.0))


def phi3(out, name, original):
    """original 5: the seven tokens are a long text."""
    half = WIDTH // HEADS // 2 // 2
    long, short = [float(x) for x in (4.0, 6.0)[:half]], [float(x) for x in (1.5, 2.0)[:half]]
    rope = {"rope_type": "longrope", "long_factor": long, "short_factor": short, "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5, "original_max_position_embeddings": original}
    config = transformers.Phi3Config(**SHAPE, rope_parameters=rope, sliding_window=4,
                                     original_max_position_embeddings=original, tie_word_embeddings=False)
    factor = math.sqrt(1 + math.log(64 / original) / math.log(original))
    model, f = network(out, name, "phi3", config, {
        "rope.dimension_count": 2 * half, "attention.sliding_window": 4, "rope.freq_base": 10000.0,
        "rope.scaling.original_context_length": original, "rope.scaling.attn_factor": factor})
    for kind, values in (("long", long), ("short", short)):
        f.tensor(f"rope_factors_{kind}.weight", (half,), 0, np.array(values, np.float32).tobytes())
    write(out, name, model, f)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    types(sys.argv[1])
    llama(sys.argv[1])
    others(sys.argv[1])
    phi3(sys.argv[1], "phi3", 16)
    phi3(sys.argv[1], "phi3-long", 5)
    chat(sys.argv[1])

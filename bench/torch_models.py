#!/usr/bin/env python3
"""torch.compile(model, backend="tarn") on networks of torchvision and transformers, with random weights.

    bench/torch_models.py [NAME…] [--inductor] [--threads N] [--limit SECONDS]

Needs tarn (pip install ./python), torch, torchvision, transformers and onnxscript. One row for each network: the largest error
against PyTorch as a part of the largest result, the parts of it that tarn compiled and those that run in PyTorch, seconds of the
first call, and milliseconds of a run (least of several), beside PyTorch's own and, with --inductor, its compiler's. A row fails
above 1e-5.
"""
import argparse
import subprocess
import sys
import time
import warnings

VISION = {
    "alexnet": 224, "convnext_tiny": 224, "densenet121": 224, "efficientnet_b0": 224, "efficientnet_v2_s": 224,
    "googlenet": 224, "inception_v3": 299, "maxvit_t": 224, "mnasnet1_0": 224, "mobilenet_v2": 224, "mobilenet_v3_small": 224,
    "mobilenet_v3_large": 224, "regnet_x_400mf": 224, "regnet_y_400mf": 224, "resnet18": 224, "resnet50": 224,
    "resnext50_32x4d": 224, "shufflenet_v2_x1_0": 224, "squeezenet1_1": 224, "swin_t": 224, "vgg11": 224, "vit_b_16": 224,
    "fcn_resnet50": 128, "deeplabv3_mobilenet_v3_large": 128, "lraspp_mobilenet_v3_large": 128, "r3d_18": 32,
}
# Of transformers: the class, its configuration, and what is small in it.
SMALL = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, vocab_size=1000)
DECODER = dict(SMALL, num_key_value_heads=2, max_position_embeddings=128)
TEXT = {
    "bert": ("BertModel", "BertConfig", SMALL),
    "roberta": ("RobertaModel", "RobertaConfig", SMALL),
    "electra": ("ElectraModel", "ElectraConfig", SMALL),
    "albert": ("AlbertModel", "AlbertConfig", dict(SMALL, embedding_size=64)),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(dim=128, n_layers=2, n_heads=4, hidden_dim=256, vocab_size=1000)),
    "deberta_v2": ("DebertaV2Model", "DebertaV2Config", SMALL),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL),
    "gpt2": ("GPT2Model", "GPT2Config", dict(n_embd=128, n_layer=2, n_head=4, vocab_size=1000)),
    "opt": ("OPTModel", "OPTConfig", dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, ffn_dim=256,
                                         vocab_size=1000, word_embed_proj_dim=128)),
    "llama": ("LlamaModel", "LlamaConfig", DECODER),
    "mistral": ("MistralModel", "MistralConfig", DECODER),
    "qwen2": ("Qwen2Model", "Qwen2Config", DECODER),
    "phi": ("PhiModel", "PhiConfig", DECODER),
    "gemma": ("GemmaModel", "GemmaConfig", dict(DECODER, head_dim=32)),
    "t5_encoder": ("T5EncoderModel", "T5Config", dict(d_model=128, num_layers=2, num_heads=4, d_ff=256, d_kv=32, vocab_size=1000)),
    "vit": ("ViTModel", "ViTConfig", dict(SMALL, image_size=64, patch_size=16)),
    "deit": ("DeiTModel", "DeiTConfig", dict(SMALL, image_size=64, patch_size=16)),
}


def vision(name):
    import torch
    import torchvision.models as zoo

    more = dict(weights=None) | (dict(weights_backbone=None) if name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large",
                                                                         "lraspp_mobilenet_v3_large") else {})
    if name in ("googlenet", "inception_v3"):
        more |= dict(init_weights=False, aux_logits=False)
    n = VISION[name]
    shape = (1, 3, 8, n, n) if name == "r3d_18" else (1, 3, n, n)
    make = zoo.get_model
    return make(name, **more), (torch.randn(shape),)


def text(name):
    import torch
    import transformers

    model, config, options = TEXT[name]
    if "num_key_value_heads" in options or name in ("gpt2", "opt"):
        options = dict(options, use_cache=False)
    made = getattr(transformers, model)(getattr(transformers, config)(**options))
    n = options.get("image_size")
    return made, (torch.randn(1, 3, n, n) if n else torch.randint(0, 1000, (1, 16)),)


def flat(x):
    import torch

    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, dict) or hasattr(x, "values"):
        x = list(x.values())
    return [t for one in x if one is not None for t in flat(one)]


def error(want, got):
    pairs = list(zip(flat(want), flat(got), strict=True))
    return max(float((w - g).abs().max() / w.abs().max().clamp(min=1)) for w, g in pairs)


def least(f, threads, seconds=1.0):
    """Milliseconds; of one thread its time on the processor, which others do not disturb."""
    now = time.perf_counter if threads > 1 else time.thread_time
    best, end = 1e9, time.perf_counter() + seconds
    while time.perf_counter() < end or best == 1e9:
        start = now()
        f()
        best = min(best, now() - start)
    return 1e3 * best


def row(name, threads, inductor):
    import torch

    import tarn._torch as parts

    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model, x = (vision if name in VISION else text)(name)
    model.eval()
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(m.running_mean, 0, 0.2)
            torch.nn.init.uniform_(m.running_var, 0.5, 1.5)
    for p in model.parameters():  # such as the head of a vision transformer, which would hide all before it
        if not p.any():
            torch.nn.init.normal_(p, 0, 0.05)
    compiled = []
    whole = parts.compile
    parts.compile = lambda *a, **k: compiled.append(1) or whole(*a, **k)
    with torch.no_grad(), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        want = model(*x)
        start = time.perf_counter()
        net = torch.compile(model, backend="tarn", options={"threads": threads})
        got = net(*x)
        first = time.perf_counter() - start
        fell = [str(w.message) for w in said if issubclass(w.category, parts.Fallback)]
        off = error(want, got)
        ms = least(lambda: net(*x), threads), least(lambda: model(*x), threads)
        other = ""
        if inductor:
            torch._dynamo.reset()
            fast = torch.compile(model)
            fast(*x)
            other = f"{least(lambda: fast(*x), threads):.2f}"
    good = "" if off <= 1e-5 else " **wrong**"
    print(f"| {name} | {off:.1e}{good} | {len(compiled)} | {len(fell)} | {first:.0f} | {ms[0]:.2f} | {ms[1]:.2f} | {other} |")
    for why in fell:
        print(f"  {name}: {why}", file=sys.stderr)
    return off <= 1e-5


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--inductor", action="store_true")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--limit", type=float, default=600)
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        return not row(a.names[0], a.threads, a.inductor)
    print("| network | error | parts | in PyTorch | first call, s | tarn, ms | PyTorch, ms | Inductor, ms |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|", flush=True)
    failed = 0
    for name in a.names or [*VISION, *TEXT]:
        command = [sys.executable, __file__, "--one", name, f"--threads={a.threads}", *["--inductor"] * a.inductor]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=a.limit)
        except subprocess.TimeoutExpired:
            print(f"| {name} | more than {a.limit:.0f} s |", flush=True)
            failed += 1
            continue
        line = [x for x in done.stdout.splitlines() if x.startswith("| ")]
        why = [x for x in done.stderr.strip().splitlines() if x.strip()]
        print(line[0] if line else f"| {name} | {why[-1] if why else 'nothing'} |", flush=True)
        for x in why if line else []:
            if x.startswith(f"  {name}: "):
                print(x, file=sys.stderr, flush=True)
        failed += done.returncode != 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

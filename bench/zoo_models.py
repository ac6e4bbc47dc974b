#!/usr/bin/python3
"""Writes networks that are hard to compile, for bench/zoo.py: concatenations, large expressions, unrolled recurrences.

    apt-get install -y --no-install-recommends python3-torch python3-torchvision python3-onnx
    /usr/bin/python3 bench/zoo_models.py OUT_DIR [NAME...]

Weights and the statistics of batch norms are random.
"""
import os
import sys

import torch
import torchvision.models as zoo
from torch import nn
from torch.nn import functional as F


class DenseLayers(nn.Module):
    """Layers that each read all results before them, one concatenation within the other."""

    def __init__(self, layers=24, growth=16, first=32):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(first + i * growth, growth, 3, padding=1) for i in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.cat([x, layer(x).relu()], 1)
        return x


class Recurrence(nn.Module):
    """A recurrent layer, written out step by step."""

    def __init__(self, steps=64, width=64):
        super().__init__()
        self.steps, self.width = steps, width
        self.of_input, self.of_state = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        h = torch.zeros(1, self.width)
        for t in range(self.steps):
            h = torch.tanh(self.of_input(x[:, t]) + self.of_state(h))
        return h


class Mamba(nn.Module):
    """A selective state space block (Gu and Dao, 2023), its scan written out."""

    def __init__(self, steps, width=64, state=8):
        super().__init__()
        self.steps, self.inner, self.state = steps, 2 * width, state
        self.enter, self.leave = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.window = nn.Conv1d(2 * width, 2 * width, 4, padding=3, groups=2 * width)
        self.select, self.step = nn.Linear(2 * width, 2 * state + 4), nn.Linear(4, 2 * width)
        self.decay = nn.Parameter(torch.rand(2 * width, state))
        self.direct = nn.Parameter(torch.ones(2 * width))

    def forward(self, u):
        x, gate = self.enter(u).chunk(2, -1)
        x = F.silu(self.window(x.transpose(1, 2))[:, :, :self.steps].transpose(1, 2))
        step, b, c = self.select(x).split([4, self.state, self.state], -1)
        step = F.softplus(self.step(step))
        keep = torch.exp(-step[..., None] * self.decay)
        add = step[..., None] * b[:, :, None] * x[..., None]
        h, ys = torch.zeros(u.shape[0], self.inner, self.state), []
        for t in range(self.steps):
            h = keep[:, t] * h + add[:, t]
            ys.append((h * c[:, t, None]).sum(-1))
        return self.leave((torch.stack(ys, 1) + self.direct * x) * F.silu(gate))


class StateSpace(nn.Module):
    """A diagonal state space of 16 channels by 8, written out; every step's state goes into an output."""

    def __init__(self, steps, width=16, state=8):
        super().__init__()
        self.steps, self.decay = steps, nn.Parameter(-torch.rand(width, state))
        self.enter, self.leave, self.step = nn.Linear(width, state), nn.Linear(width, state), nn.Linear(width, width)

    def forward(self, x):
        h, ys = torch.zeros(self.decay.shape), []
        step, b, c = F.softplus(self.step(x)), self.enter(x), self.leave(x)
        for t in range(self.steps):
            keep = torch.exp(step[t][:, None] * self.decay)
            h = keep * h + step[t][:, None] * b[t][None] * x[t][:, None]
            ys.append((h * c[t][None]).sum(1))
        return torch.stack(ys)


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.middle = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past_k, past_v):
        q, k, v = (t.view(1, 1, self.heads, -1).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, -1))
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        weights = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(1, 1, -1))
        return x + self.down(F.gelu(self.up(self.middle(x)))), k, v


class Decoder(nn.Module):
    """One token of a decoder: takes the keys and values of the tokens before it, returns them with its own."""

    def __init__(self, layers=4, width=256, heads=8, words=2048):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.last, self.words = nn.LayerNorm(width), nn.Linear(width, words)
        self.past = (1, heads, 5, width // heads)

    def forward(self, x, *past):
        present = []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, past[2 * i], past[2 * i + 1])
            present += [k, v]
        return (self.words(self.last(x)), *present)

    def export(self, shape, path):
        old = [f"past_{i}" for i in range(2 * len(self.layers))]
        torch.onnx.export(self, (torch.randn(shape), *(torch.randn(self.past) for _ in old)), path, opset_version=17,
                          input_names=["x", *old], output_names=["y", *(f"present_{i}" for i in range(len(old)))],
                          dynamic_axes={name: {2: "past"} for name in old})


def conv(inputs, outputs, k, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, k, stride, k // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())


class CrossStage(nn.Module):
    def __init__(self, inputs, outputs, n):
        super().__init__()
        half = outputs // 2
        self.a, self.b, self.join = conv(inputs, half, 1), conv(inputs, half, 1), conv(2 * half, outputs, 1)
        self.steps = nn.ModuleList(nn.Sequential(conv(half, half, 1), conv(half, half, 3)) for _ in range(n))

    def forward(self, x):
        y = self.a(x)
        for step in self.steps:
            y = y + step(y)
        return self.join(torch.cat([y, self.b(x)], 1))


class Detector(nn.Module):
    """A detector in the style of YOLOv5: SiLU, cross-stage blocks, a pyramid joined by concatenations, three heads."""

    def __init__(self, w=(16, 32, 64, 128, 256)):
        super().__init__()
        self.stem = nn.Sequential(conv(3, w[0], 3, 2), conv(w[0], w[1], 3, 2), CrossStage(w[1], w[1], 1), conv(w[1], w[2], 3, 2),
                                  CrossStage(w[2], w[2], 2))
        self.mid = nn.Sequential(conv(w[2], w[3], 3, 2), CrossStage(w[3], w[3], 3))
        self.deep = nn.Sequential(conv(w[3], w[4], 3, 2), CrossStage(w[4], w[4], 1), conv(w[4], w[3], 1))
        self.pooled = conv(4 * w[3], w[4], 1)
        self.up1, self.up2 = conv(w[4], w[3], 1), conv(w[3], w[2], 1)
        self.n1, self.n2 = CrossStage(2 * w[3], w[3], 1), CrossStage(2 * w[2], w[2], 1)
        self.down1, self.down2 = conv(w[2], w[2], 3, 2), conv(w[3], w[3], 3, 2)
        self.n3, self.n4 = CrossStage(2 * w[2], w[3], 1), CrossStage(2 * w[3], w[4], 1)
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * 85, 1) for c in w[2:])

    def forward(self, x):
        fine = self.stem(x)
        middle = self.mid(fine)
        pools = [self.deep(middle)]
        for _ in range(3):
            pools.append(F.max_pool2d(pools[-1], 5, 1, 2))
        up1 = self.up1(self.pooled(torch.cat(pools, 1)))
        up2 = self.up2(self.n1(torch.cat([F.interpolate(up1, scale_factor=2), middle], 1)))
        low = self.n2(torch.cat([F.interpolate(up2, scale_factor=2), fine], 1))
        mid = self.n3(torch.cat([self.down1(low), up2], 1))
        top = self.n4(torch.cat([self.down2(mid), up1], 1))
        boxes = []
        for head, y in zip(self.heads, (low, mid, top)):
            y = head(y)
            boxes.append(y.view(1, 3, 85, -1).permute(0, 1, 3, 2).reshape(1, -1, 85).sigmoid())
        return torch.cat(boxes, 1)


IMAGE = (1, 3, 224, 224)
MODELS = {
    "densenet121": (zoo.densenet121, IMAGE),
    "inception_v3": (lambda: zoo.inception_v3(aux_logits=False, init_weights=False), (1, 3, 299, 299)),
    "swin_t": (zoo.swin_t, IMAGE),
    "detector": (Detector, (1, 3, 320, 320)),
    "dense24": (DenseLayers, (1, 32, 28, 28)),
    "recurrence64": (Recurrence, (1, 64, 64)),
    **{f"mamba{n}": (lambda n=n: Mamba(n), (1, n, 64)) for n in (4, 8, 16, 32)},
    "ssm128": (lambda: StateSpace(128), (128, 16)),
    "decoder": (Decoder, (1, 1, 256)),
}


def plain(model, shape, path):
    torch.onnx.export(model, torch.randn(shape), path, opset_version=14, input_names=["x"], output_names=["y"])


def main():
    out, names = sys.argv[1], sys.argv[2:] or MODELS
    os.makedirs(out, exist_ok=True)
    for name in names:
        torch.manual_seed(1)
        make, shape = MODELS[name]
        model = make().eval()
        for m in model.modules():
            if isinstance(m, nn.BatchNorm2d):
                nn.init.normal_(m.running_mean, 0, 0.2)
                nn.init.uniform_(m.running_var, 0.5, 1.5)
        getattr(model, "export", lambda *to: plain(model, *to))(shape, f"{out}/{name}.onnx")
        print(name, flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Writes the seven networks that tests/networks.sh and bench/run.sh use, as ONNX files.

    tools/export_models.py OUT_DIR [NAME…]

Weights are random, from a fixed seed; statistics of batch norms too, so that folding them wrongly shows. Beside NAME.onnx stand
NAME.in.npy, a random input, and NAME.out.npy, what PyTorch makes of it. Needs Debian's python3-torch, python3-torchvision and
python3-onnx, which /usr/bin/python3 finds.
"""
import math
import pathlib
import sys

import numpy
import torch
import torchvision
from torch import nn


class Attention(nn.Module):
    """Self-attention over a fixed number of tokens."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.reshape(1, -1, self.heads, self.each).permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weight = torch.softmax(torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.each), dim=3)
        return self.out(torch.matmul(weight, v).permute(0, 2, 1, 3).reshape(x.shape))


class Layer(nn.Module):
    """A transformer layer, normalised after each half as in BERT."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.after_attention = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.after_feed = nn.LayerNorm(width)

    def forward(self, x):
        x = self.after_attention(x + self.attention(x))
        return self.after_feed(x + self.feed(x))


def transformer(width, heads, layers):
    return nn.Sequential(*(Layer(width, heads) for _ in range(layers)))


def generator(width=64):
    """DCGAN's: 1 x 1 to 64 x 64 by transposed convolutions."""
    stages, before = [], 100
    for k, after in enumerate((8 * width, 4 * width, 2 * width, width)):
        stages += [nn.ConvTranspose2d(before, after, 4, 2 if k else 1, 1 if k else 0, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*stages, nn.ConvTranspose2d(before, 3, 4, 2, 1, bias=False), nn.Tanh())


IMAGE = (1, 3, 224, 224)
NETWORKS = {
    "resnet18": (lambda: torchvision.models.resnet18(weights=None), IMAGE),
    "resnet50": (lambda: torchvision.models.resnet50(weights=None), IMAGE),
    "mobilenet_v2": (lambda: torchvision.models.mobilenet_v2(weights=None), IMAGE),
    "squeezenet": (lambda: torchvision.models.squeezenet1_1(weights=None), IMAGE),
    "dcgan": (generator, (1, 100, 1, 1)),
    "bert_tiny": (lambda: transformer(256, 4, 4), (1, 128, 256)),
    "bert_base": (lambda: transformer(768, 12, 12), (1, 128, 768)),
}


def export(name, folder):
    torch.manual_seed(1)
    make, shape = NETWORKS[name]
    model = make().eval()
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.2)
            part.running_var.uniform_(0.5, 1.5)
            nn.init.uniform_(part.weight, 0.5, 1.2)
            nn.init.normal_(part.bias, 0, 0.2)
    x = torch.randn(shape)
    with torch.no_grad():
        y = model(x)
    # In this mode batch norms stay nodes of their own: folding them is what is to be tested.
    torch.onnx.export(model, x, str(folder / f"{name}.onnx"), opset_version=13, input_names=["x"], output_names=["y"],
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    numpy.save(folder / f"{name}.in.npy", x.numpy())
    numpy.save(folder / f"{name}.out.npy", y.numpy())
    print(f"{name}: {tuple(shape)} to {tuple(y.shape)}", flush=True)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        export(name, folder)


if __name__ == "__main__":
    main()

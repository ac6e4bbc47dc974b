#!/usr/bin/python3
"""ResNets of other sizes of image and other widths than the networks', with random weights: the shipped price learns from a
sample of the schedules of their kernels.  Needs Debian's python3-torch, python3-torchvision and python3-onnx:

    bench/tune/resnets.py DIR
    for m in DIR/*.onnx; do tarn tune $m --spread --per-kernel 70 --trials 2500 --threads 1 --db STORE.db; done
"""
import sys

import torch
from torch import nn
from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet

FIFTY, THIRTY_FOUR = (Bottleneck, [3, 4, 6, 3]), (BasicBlock, [3, 4, 6, 3])
# name, blocks, channels of the first stage, places a side of the image
NETWORKS = [("r50-160", FIFTY, 64, 160), ("r50-192", FIFTY, 64, 192), ("r50-240", FIFTY, 64, 240),
            ("r50-256", FIFTY, 64, 256), ("r50-288", FIFTY, 64, 288), ("r34-192", THIRTY_FOUR, 64, 192),
            ("r50-w48", FIFTY, 48, 224), ("r50-w56-272", FIFTY, 56, 272), ("r50-w72-208", FIFTY, 72, 208),
            ("r50-w80-192", FIFTY, 80, 192), ("r50-w96", FIFTY, 96, 224), ("r50-w112-176", FIFTY, 112, 176),
            ("r50-w128-144", FIFTY, 128, 144)]


def network(blocks, width):
    net = ResNet(*blocks)

    def channels(n):
        return round(n * width / 64 / 16) * 16

    for path, layer in list(net.named_modules()):
        if isinstance(layer, nn.Conv2d):
            into = 3 if layer.in_channels == 3 else channels(layer.in_channels)
            other = nn.Conv2d(into, channels(layer.out_channels), layer.kernel_size, layer.stride, layer.padding, bias=False)
        elif isinstance(layer, nn.BatchNorm2d):
            other = nn.BatchNorm2d(channels(layer.num_features))
        elif isinstance(layer, nn.Linear):
            other = nn.Linear(channels(layer.in_features), layer.out_features)
        else:
            continue
        *above, name = path.split(".")
        parent = net
        for part in above:
            parent = getattr(parent, part)
        setattr(parent, name, other)
    return net.eval()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(0)
    for name, blocks, width, side in NETWORKS:
        torch.onnx.export(network(blocks, width), torch.randn(1, 3, side, side), f"{sys.argv[1]}/{name}.onnx", opset_version=13)


main()

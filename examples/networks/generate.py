#!/usr/bin/env python3
"""Writes a network with seeded weights as ONNX: generate.py dcgan|mobilenet FILE.onnx

dcgan       the generator of Radford et al. 2015 (arXiv:1511.06434): 100 numbers to a 64 x 64 image
mobilenet   MobileNetV2 of Sandler et al. 2018 (arXiv:1801.04381), for images of 224 x 224

Only Python's own modules are used. What is written is the wire format of onnx.proto3.
"""
import array
import math
import random
import struct
import sys

FLOAT = 1


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, float):
        kind, body = 1, varint(2 << 3 | 5) + struct.pack("<f", value)
    elif isinstance(value, int):
        kind, body = 2, number(3, value)
    else:
        kind, body = 7, b"".join(number(8, v) for v in value)
    return text(5, text(1, name) + body + number(20, kind))


def port(name, dims):
    shape = b"".join(text(1, number(1, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, FLOAT) + text(2, shape)))


class Network:
    """Nodes in order; each method returns the name of what it computes."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, dims, low, high):
        name = f"w{len(self.constants)}"
        draw, width = self.random.random, high - low
        data = array.array("f", (low + width * draw() for _ in range(math.prod(dims))))
        if sys.byteorder == "big":
            data.byteswap()
        body = b"".join(number(1, d) for d in dims) + number(2, FLOAT) + text(8, name)
        self.constants.append(text(5, body + text(9, data.tobytes())))
        return name

    def weights(self, dims, fan_in):
        bound = math.sqrt(6 / fan_in)
        return self.constant(dims, -bound, bound)

    def node(self, operator, *inputs, **attributes):
        self.count += 1
        out = f"t{self.count}"
        body = b"".join(text(1, i) for i in inputs) + text(2, out)
        body += text(3, f"{operator}{self.count}") + text(4, operator)
        body += b"".join(attribute(k, v) for k, v in attributes.items())
        self.nodes.append(text(1, body))
        return out

    def batch_norm(self, x, channels):
        ranges = ((0.5, 1.2), (-0.2, 0.2), (-0.2, 0.2), (0.5, 1.5))
        return self.node("BatchNormalization", x, *(self.constant([channels], *r) for r in ranges))

    def relu6(self, x):
        return self.node("Clip", x, self.constant([], 0, 0), self.constant([], 6, 6))

    def convolution(self, x, channels, out, kernel=1, stride=1, group=1):
        fan_in = channels // group * kernel * kernel
        w = self.weights([out, channels // group, kernel, kernel], fan_in)
        pad = kernel // 2
        x = self.node("Conv", x, w, strides=[stride] * 2, pads=[pad] * 4, group=group)
        return self.batch_norm(x, out)

    def write(self, file, name, shape, result, out_shape):
        graph = b"".join(self.nodes) + text(2, name) + b"".join(self.constants)
        graph += text(11, port("x", shape))
        graph += text(12, port(result, out_shape))
        model = number(1, 8) + text(7, graph) + text(8, number(2, 17))
        with open(file, "wb") as f:
            f.write(model)


def dcgan(net):
    x, channels = "x", 100
    for out, stride, pad in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1), (3, 2, 1)):
        w = net.weights([channels, out, 4, 4], channels * 16 // stride**2)
        x = net.node("ConvTranspose", x, w, strides=[stride] * 2, pads=[pad] * 4)
        x = net.node("Relu", net.batch_norm(x, out)) if out > 3 else net.node("Tanh", x)
        channels = out
    return [1, 100, 1, 1], x, [1, 3, 64, 64]


def mobilenet(net):
    x = net.relu6(net.convolution("x", 3, 32, 3, 2))
    channels = 32
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, out, repeat, first in table:
        for i in range(repeat):
            stride = first if i == 0 else 1
            wide = channels * expand
            y = net.relu6(net.convolution(x, channels, wide)) if expand > 1 else x
            y = net.relu6(net.convolution(y, wide, wide, 3, stride, wide))
            y = net.convolution(y, wide, out)
            x = net.node("Add", x, y) if stride == 1 and channels == out else y
            channels = out
    x = net.relu6(net.convolution(x, channels, 1280))
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    w, b = net.weights([1000, 1280], 1280), net.constant([1000], -0.1, 0.1)
    x = net.node("Gemm", x, w, b, transB=1)
    return [1, 3, 224, 224], x, [1, 1000]


NETWORKS = {"dcgan": dcgan, "mobilenet": mobilenet}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in NETWORKS:
        sys.exit(f"usage: generate.py {'|'.join(NETWORKS)} FILE.onnx")
    net = Network(1)
    net.write(sys.argv[2], sys.argv[1], *NETWORKS[sys.argv[1]](net))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""One model of convolutions and transposed convolutions of few filters, the last layers of networks that make images: lanes go
along the places, and a tile's window shares most of what it reads.  The shipped price learns from a sample of their schedules:

    bench/tune/few_filters.py few_filters.onnx
    tarn tune few_filters.onnx --spread --per-kernel 100 --trials 2000 --threads 1 --db STORE.db
"""
import sys

import onnx

from kinds import Graph, places, window_of

# images, channels, places a side, filters, window, step, padding
TRANSPOSED = [(1, 48, 48, 3, 4, 2, 1), (8, 48, 40, 3, 4, 2, 1), (12, 96, 32, 3, 4, 2, 1), (4, 32, 64, 1, 4, 2, 1), (16, 24, 48, 4, 4, 2, 1),
              (1, 128, 24, 6, 4, 2, 1), (4, 40, 32, 8, 2, 2, 0)]
CONVOLUTIONS = [(1, 64, 64, 3, 3, 1, 1), (4, 32, 96, 3, 3, 1, 1), (1, 32, 128, 1, 5, 1, 2), (8, 48, 32, 4, 3, 1, 1), (2, 16, 112, 6, 3, 2, 1),
                (1, 24, 80, 2, 7, 1, 3)]


def model():
    g = Graph()
    for i, (b, c, side, m, w, step, pad) in enumerate(TRANSPOSED):
        n = (side - 1) * step + w - 2 * pad
        g.layer(f"transposed{i}", [b, c, side, side], [b, m, n, n], "ConvTranspose", [("w", [c, m, w, w])], **window_of(w, step, pad))
    for i, (b, c, side, m, w, step, pad) in enumerate(CONVOLUTIONS):
        n = places(side, w, step, pad)
        g.layer(f"conv{i}", [b, c, side, side], [b, m, n, n], "Conv", [("w", [m, c, w, w]), ("b", [m])], **window_of(w, step, pad))
    return g.model("few_filters")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(model(), sys.argv[1])

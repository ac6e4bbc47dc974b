"""What a row should give: the ONNX file in float64 (PyTorch), at no more than 65536 places chosen at random."""
import os

import numpy as np
import torch

from peers import feed_of
from peers.onnx_torch import Module

PLACES = 65536


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        path = os.path.join(folder, "reference.npz")
        if os.path.exists(path):
            return
        torch.set_num_threads(threads)
        with torch.inference_mode():
            module = Module(model).eval().double()
            y = module(*[torch.from_numpy(v).double() for v in feed_of(model).values()])[0].numpy()
        places = np.random.default_rng(1).permutation(y.size)[:PLACES] if y.size <= 1 << 20 else \
            np.random.default_rng(1).integers(0, y.size, PLACES)
        np.savez(path, places=places, values=y.ravel()[places], largest=np.abs(y).max(), shape=y.shape)

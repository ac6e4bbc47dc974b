"""PyTorch, exported and compiled ahead of time by Inductor, with frozen weights."""
import os

import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package

from peers import Unsupported, feed_of
from peers.onnx_torch import Module

OPTIONS = {"freezing": True, "cpp.dynamic_threads": True}  # one package for any number of threads


def package(folder):
    return os.path.join(folder, "torch.pt2")


def operands(feed):
    return tuple(torch.from_numpy(v) for v in feed.values())


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        path = package(folder)
        if os.path.exists(path):
            return
        torch.set_num_threads(threads)
        with torch.no_grad():
            exported = torch.export.export(Module(model).eval(), operands(feed_of(model)))
            aoti_compile_and_package(exported, package_path=path, inductor_configs=OPTIONS)

    def __init__(self, model, threads, folder, feed):
        if not os.path.exists(package(folder)):
            raise Unsupported("not compiled")
        torch.set_num_threads(threads)
        self.module = aoti_load_package(package(folder))
        self.operands, self.out = operands(feed), None

    def run(self):
        with torch.inference_mode():
            self.out = self.module(*self.operands)

    def result(self):
        out = self.out if isinstance(self.out, (tuple, list)) else [self.out]
        return [o.detach().numpy() for o in out]

"""PyTorch. What is all products and convolutions calls the same functions either way and is traced, frozen and optimised
for inference; anything else is exported and compiled ahead of time by Inductor with frozen weights."""
import os

import onnx
import torch
from torch._inductor import aoti_compile_and_package, aoti_load_package

from peers import feed_of
from peers.onnx_torch import Module


CALLS = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Relu", "BatchNormalization", "Transpose"}


def only_calls(model):
    """Nothing that Inductor would generate code for."""
    nodes = onnx.load(model, load_external_data=False).graph.node
    return len(nodes) <= 3 and all(n.op_type in CALLS for n in nodes)


def operands(feed):
    return tuple(torch.from_numpy(v) for v in feed.values())


def package(folder):
    return os.path.join(folder, "torch.pt2")


OPTIONS = {"freezing": True, "cpp.dynamic_threads": True}  # one package for any number of threads


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        path = package(folder)
        if only_calls(model) or os.path.exists(path):
            return
        torch.set_num_threads(threads)
        with torch.no_grad():
            exported = torch.export.export(Module(model).eval(), operands(feed_of(model)))
            aoti_compile_and_package(exported, package_path=path, inductor_configs=OPTIONS)

    def __init__(self, model, threads, folder, feed):
        torch.set_num_threads(threads)
        self.operands, self.out = operands(feed), None
        if only_calls(model):
            with torch.no_grad():
                traced = torch.jit.trace(Module(model).eval(), self.operands, check_trace=False)
                self.module = torch.jit.optimize_for_inference(torch.jit.freeze(traced.eval()))
                self.run()
        else:
            self.module = aoti_load_package(package(folder))

    def run(self):
        with torch.inference_mode():
            self.out = self.module(*self.operands)

    def result(self):
        out = self.out if isinstance(self.out, (tuple, list)) else [self.out]
        return [o.detach().numpy() for o in out]

"""PyTorch, traced, frozen and optimised for inference: convolutions and products call oneDNN and MKL with prepared weights, as
they do under Inductor, and nothing is generated."""
import torch

from peers.onnx_torch import Module


class Peer:
    @staticmethod
    def prepare(model, threads, folder):
        pass

    def __init__(self, model, threads, folder, feed):
        torch.set_num_threads(threads)
        self.operands, self.out = tuple(torch.from_numpy(v) for v in feed.values()), None
        with torch.no_grad():
            traced = torch.jit.trace(Module(model).eval(), self.operands, check_trace=False)
            self.module = torch.jit.optimize_for_inference(torch.jit.freeze(traced.eval()))
            self.run()

    def run(self):
        with torch.inference_mode():
            self.out = self.module(*self.operands)

    def result(self):
        out = self.out if isinstance(self.out, (tuple, list)) else [self.out]
        return [o.detach().numpy() for o in out]

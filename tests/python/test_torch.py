"""torch.compile(…, backend="tarn") and tarn.compile(module, …, dynamic_shapes=…)."""

import importlib.util
import unittest
import warnings

HAS = all(importlib.util.find_spec(name) for name in ("torch", "onnxscript"))
if HAS:
    import torch
    from torch import nn

    import tarn
    from tarn._torch import Fallback

    @torch.library.custom_op("tarn_test::odd", mutates_args=())
    def odd(x: torch.Tensor) -> torch.Tensor:
        """An operator that no exporter knows."""
        return torch.from_numpy(x.numpy() * 2 + 1)

    @odd.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    class Counter(nn.Module):
        """Writes into a buffer of its own."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x):
            self.seen.add_(x.sum(0))
            return x * self.seen

    class Odd(nn.Module):
        def forward(self, x):
            return (odd(x.tanh() * 3) + x).relu()

    class Strided(nn.Module):
        """Results that are a number, turned, an input, and the same twice."""

        def forward(self, x):
            y = (x + 1).transpose(1, 2)
            return y, x, y.sum(), y, x.shape[0]


@unittest.skipUnless(HAS, "PyTorch 2 and onnxscript are not installed")
class Compile(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(0)
        torch._dynamo.reset()

    def same(self, module, net, *inputs):
        got, want = net(*inputs), module(*inputs)
        flat = [(got, want)] if isinstance(want, torch.Tensor) else list(zip(got, want, strict=True))
        for g, w in flat:
            if isinstance(w, int):
                self.assertEqual(g, w)
                continue
            self.assertEqual((g.shape, g.dtype, g.stride()), (w.shape, w.dtype, w.stride()))
            self.assertLess(float((g - w).abs().max() / w.abs().max().clamp(min=1)), 1e-5)

    def compiled(self, module, *inputs, falls=0):
        with torch.no_grad(), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            net = torch.compile(module.eval(), backend="tarn", options={"threads": 1})
            self.same(module, net, *inputs)
            self.same(module, net, *inputs)
        fell = [str(w.message) for w in said if issubclass(w.category, Fallback)]
        self.assertEqual(len(fell), falls, fell)
        return net

    def test_small_modules(self):
        conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.GELU(), nn.AvgPool2d(2))
        self.compiled(conv, torch.randn(2, 3, 8, 8))
        mask = torch.ones(5, 5, dtype=torch.bool).triu(1)
        self.compiled(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), torch.randn(2, 5, 32), mask)
        self.compiled(nn.TransformerEncoderLayer(32, 4, norm_first=True, activation="gelu"), torch.randn(5, 2, 32))
        self.compiled(nn.Embedding(10, 4), torch.tensor([[1, 9, 0]]))

    def test_strides_and_values_that_are_no_tensors(self):
        self.compiled(Strided(), torch.randn(2, 3, 4))
        self.compiled(Strided(), torch.randn(2, 3, 4).transpose(1, 2))

    def test_what_no_exporter_knows_runs_in_pytorch(self):
        self.compiled(Odd(), torch.randn(3, 4))

    def test_what_tarn_refuses_runs_in_pytorch(self):
        net = torch.compile(nn.ReLU(), backend="tarn", options={"hw": "/nowhere.hw"})
        with torch.no_grad(), self.assertWarnsRegex(Fallback, "nowhere.hw"):
            self.same(nn.ReLU(), net, torch.randn(3))

    def test_gradients_are_pytorchs(self):
        module = nn.Linear(4, 4)
        with self.assertWarnsRegex(Fallback, "no_grad"):
            torch.compile(module, backend="tarn")(torch.randn(2, 4)).sum().backward()
        self.assertIsNotNone(module.weight.grad)

    def test_sizes(self):
        module = nn.Linear(4, 4)
        net = self.compiled(module, torch.randn(2, 4))
        with torch.no_grad():
            for n in (3, 5, 1, 3):
                self.same(module, net, torch.randn(n, 4))

    def test_a_weight_that_changes(self):
        module = nn.Linear(4, 4)
        net = self.compiled(module, torch.randn(2, 4))
        with torch.no_grad():
            for k in range(3):
                module.weight.mul_(k + 2)
                self.same(module, net, torch.randn(2, 4))
            module.weight = nn.Parameter(torch.randn(4, 4))
            self.same(module, net, torch.randn(2, 4))

    def test_a_buffer_that_it_writes(self):
        one, two = Counter(), Counter()
        net = torch.compile(one, backend="tarn", options={"threads": 1})
        with torch.no_grad():
            for _ in range(4):
                x = torch.randn(3, 4)
                torch.testing.assert_close(net(x), two(x))
        torch.testing.assert_close(one.seen, two.seen)

    def test_dynamic_shapes(self):
        module = nn.Sequential(nn.Linear(4, 8), nn.Tanh()).eval()
        n = torch.export.Dim("n")
        net = tarn.compile(module, torch.randn(2, 4), dynamic_shapes=({0: n},), threads=1)
        with torch.no_grad():
            for size in (3, 7, 3):
                self.same(module, net, torch.randn(size, 4))
        self.assertEqual(len(net.programs), 2)
        with self.assertRaisesRegex(ValueError, "5"):
            net(torch.randn(2, 5))


if __name__ == "__main__":
    unittest.main()

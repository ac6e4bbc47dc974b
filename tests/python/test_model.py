"""Models and comprehensions; with NumPy and PyTorch where they are installed."""

import contextlib
import copy
import ctypes
import importlib.util
import io
import os
import pickle
import tempfile
import threading
import unittest
from array import array
from pathlib import Path

import tarn

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"
MV = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }"
HAS = {name: importlib.util.find_spec(name) is not None for name in ("numpy", "onnx", "torch", "tqdm")}


def floats(values, shape=None):
    flat = memoryview(array("f", values)).cast("B")
    return flat.cast("f", shape or (len(values),))


def rows(n, k):
    return floats([float(i % 7 - 3) for i in range(n * k)], (n, k))


DECODER = """(program (inputs (x ((1 2 4) ()) f32) (past ((1 2 {past} 4) ()) f32))
 (let (%x (access 3 (reshape ((1 2 1 4) ()) (access 3 (input x ((1 2 4) ()) f32)))))
  (%k (concat 2 (input past ((1 2 {past} 4) ()) f32) (compute (map (mul $0 0.5)) (access 4 %x)))))
 (outputs (y (compute dotProd (cartProd 2 %x (access 3 %k)))) (present %k)))"""


class Module(unittest.TestCase):
    def test_says_its_version_and_names(self):
        self.assertRegex(tarn.__version__, r"^\d+\.\d+\.\d+$")
        self.assertLessEqual({*tarn.__all__, "__version__"}, set(dir(tarn)))
        for name in dir(tarn):
            getattr(tarn, name)


class Caches(unittest.TestCase):
    def compiled(self, past, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "decoder.tarn"
            path.write_text(DECODER.format(past=past))
            return tarn.compile(path, threads=1, price="analytic", **options)

    def test_new_outputs_hold_the_old_rows(self) -> None:
        net = self.compiled(3)
        x, past = floats(range(8), (1, 2, 4)), floats(range(24), (1, 2, 3, 4))
        y, present = net(x, past)
        rows = memoryview(present).tolist()[0]
        for h in range(2):
            self.assertEqual(rows[h][:3], past.tolist()[0][h])
            self.assertEqual(rows[h][3], [v / 2 for v in x.tolist()[0][h]])
        self.assertEqual(net.report["in_place"][0]["filled"], 3)
        with self.assertRaisesRegex(ValueError, "out= is needed"):
            self.compiled(3, cache_rows=8)(x, past)

    @unittest.skipUnless(HAS["numpy"], "NumPy")
    def test_steps_through_one_buffer(self) -> None:
        import numpy

        buffer = numpy.full((1, 2, 6, 4), -7, "f4")
        buffer[:, :, :2] = numpy.arange(16).reshape(1, 2, 2, 4)
        wanted = buffer.copy()
        for past in (2, 3, 4):
            net = self.compiled(past, cache_rows=6)
            x, y = numpy.random.rand(1, 2, 4).astype("f4"), numpy.empty((1, 2, 1, past + 1), "f4")
            wanted[0, :, past] = x[0] / 2
            net(x, buffer[:, :, :past], out=(y, buffer[:, :, : past + 1]))
            self.assertTrue((buffer == wanted).all())
            keys = wanted[0, :, : past + 1]
            self.assertTrue(numpy.allclose(y[0, :, 0], numpy.einsum("hd,hkd->hk", x[0], keys)))
        other = numpy.zeros((1, 2, 5, 4), "f4")
        net(x, other[:, :, :4], out=(y, buffer[:, :, :5]))  # is copied
        self.assertTrue((buffer[:, :, :4] == 0).all() and (buffer[:, :, 5] == -7).all())
        with self.assertRaisesRegex(ValueError, "with 6 along dim 2"):
            net(x, other[:, :, :4], out=(y, other))
        with self.assertRaisesRegex(ValueError, "shares memory"):
            net(x, buffer[:, :, 1:5], out=(y, buffer[:, :, :5]))


class Copies(unittest.TestCase):
    def test_a_program_is_pickled_and_copied(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = tarn.compile(DIGITS, shapes={"n": 1}, threads=1, price="analytic")
            image = floats([k % 7 / 7 for k in range(64)], (1, 1, 8, 8))
            wanted = memoryview(made(image)).tolist()
            tarn.compile(DIGITS, shapes={"n": 1}, threads=1, price="analytic", output=folder)
            here = tarn.load(folder, 1)
            for net in (made, here):
                again = pickle.loads(pickle.dumps(net))
                for one in (again, copy.copy(net), copy.deepcopy(again)):
                    self.assertEqual(memoryview(one(image)).tolist(), wanted)
                    self.assertEqual((repr(one), one.report), (repr(net), net.report))


class Progress(unittest.TestCase):
    def test_stages_and_an_exception(self) -> None:
        seen = []
        options = dict(shapes={"n": 1}, threads=1, price="analytic")
        tarn.compile(DIGITS, **options, progress=lambda *told: seen.append(told))
        stages = [stage for stage, _, _ in seen]
        wanted = ["reading the model", "rewriting", "choosing kernels", "generating code"]
        self.assertEqual([s for s in wanted if s not in stages], [])
        self.assertEqual(sorted(wanted, key=stages.index), wanted)
        self.assertTrue(all(done <= of for _, done, of in seen if of))

        def refuse(stage: str, done: int, of: int) -> None:
            if stage == "generating code":
                raise KeyError(stage)

        with self.assertRaisesRegex(KeyError, "generating code"):
            tarn.compile(DIGITS, **options, progress=refuse)

    @unittest.skipUnless(HAS["tqdm"], "tqdm")
    def test_bars(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            tarn.compile(DIGITS, shapes={"n": 1}, threads=1, price="analytic", progress=True)
        self.assertIn("generating code", said.getvalue())


class Cached(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.db = self.folder / "calls.db"

    def define(self, text, name=None, **options):
        return tarn.define(text, name, cache=self.db, **options)


class Comprehensions(Cached):
    def test_shapes_bind_at_the_call(self) -> None:
        mv = self.define(MV)
        for n, k in ((2, 3), (5, 4), (1, 1)):
            A, x = rows(n, k), floats([float(i) for i in range(k)])
            want = [sum(A[i, j] * x[j] for j in range(k)) for i in range(n)]
            self.assertEqual([float(v) for v in memoryview(mv(A, x))], want)
        self.assertEqual(len(mv._calls), 3)
        self.assertTrue(mv.check(rows(2, 3), floats([1, 2, 3])))

    def test_the_file_is_shared(self) -> None:
        args = rows(2, 3), floats([1, 2, 3])
        self.assertEqual(self.define(MV).bind(*args).found, "compiled")
        renamed = MV.replace("mv", "f").replace("A", "matrix").replace("k", "col")
        self.assertEqual(self.define(renamed).bind(*args).found, "here")
        other = tarn._code.Cache(str(self.db), "host", 1)
        f = self.define(MV)
        self.assertEqual(other.find(f._with(["A=2,3", "x=3"])).found, "stored")

    def test_scalars(self) -> None:
        axpy = self.define("def f(float a, float(N) x, float(N) y) -> (y) { y(i) += a * x(i) }")
        self.assertEqual(list(memoryview(axpy(2, floats([1, 2]), floats([10, 20])))), [12, 24])
        by_name = axpy(a=0.5, y=floats([0, 0]), x=floats([1, 2]))
        self.assertEqual(list(memoryview(by_name)), [0.5, 1])
        self.assertEqual(len(axpy._calls), 1)
        text = "def f(int s, float(N) x) -> (y) { y(i) = x(s * i) where i in 0:N / s }"
        every = self.define(text)
        x = floats([0, 1, 2, 3, 4, 5])
        self.assertEqual(list(memoryview(every(2, x))), [0, 2, 4])
        self.assertEqual(list(memoryview(every(3, x))), [0, 3])

    def test_whole_numbers_keep_their_range(self) -> None:
        f = self.define("def f(byte a, uint8 b, long c) -> (y) { y = long(a) + long(b) + c }")
        self.assertEqual(memoryview(f(-128, 255, 1 << 40)).tolist(), 127 + (1 << 40))
        for bad in ((128, 0, 0), (-129, 0, 0), (0, 256, 0), (0, -1, 0), (0, 0, 1 << 63)):
            with self.assertRaises(OverflowError, msg=str(bad)):
                f(*bad)

    def test_strides_and_outputs(self) -> None:
        mv = self.define(MV)
        out = array("f", [0, 0])
        self.assertIs(mv(rows(2, 3), floats([1, 1, 1]), out=out), out)
        self.assertEqual(list(out), [-6, 3])
        turned = floats([1, 4, 2, 5, 3, 6], (3, 2))
        if HAS["numpy"]:
            import numpy

            A = numpy.asarray(turned).T
            self.assertEqual(list(mv(A, floats([1, 10, 100]))), [321, 654])
            wide = numpy.zeros((2, 2), "f4")
            mv(A, floats([1, 10, 100]), out=wide[:, 1])
            self.assertEqual(wide.tolist(), [[0, 321], [0, 654]])

    def test_outputs_are_apart(self) -> None:
        f = self.define("def f(float(N) x) -> (y) { y(i) = x(N - 1 - i) }")
        x = floats([1, 2, 3])
        with self.assertRaisesRegex(ValueError, "y: it shares memory"):
            f(x, out=x)
        with self.assertRaisesRegex(ValueError, "y: it cannot be written"):
            f(x, out=bytes(12))

    def test_errors_name_the_place(self) -> None:
        with self.assertRaisesRegex(tarn.InputError, r"^define:1:\d+: "):
            self.define("def f(float(N) x) -> (y) { y(i) = x(i) + }")
        with self.assertRaisesRegex(tarn.InputError, "is not defined"):
            self.define(MV, "vm")
        mv = self.define(MV)
        for bad, kind in (
            ((rows(2, 3),), TypeError),
            ((rows(2, 3), floats([1, 2])), tarn.InputError),
            ((rows(2, 3), array("d", [1, 2, 3])), TypeError),
            ((rows(2, 3), "abc"), TypeError),
        ):
            with self.assertRaises(kind):
                mv(*bad)
        with self.assertRaisesRegex(TypeError, "unexpected argument .z.; the inputs are"):
            mv(rows(2, 3), z=1)

    def test_indices_are_checked(self) -> None:
        f = self.define("def f(float(E,D) T, int(L) I) -> (O) { O(d) +=! T(I(l),d) }")
        with self.assertRaisesRegex(tarn.InputError, "out of range"):
            f(rows(4, 2), array("i", [1, 4]))

    def test_many_threads(self) -> None:
        mv = self.define(MV, threads=2)
        A, x, wrong = rows(8, 5), floats([1, 2, 3, 4, 5]), []
        want = list(memoryview(mv(A, x)))

        def work() -> None:
            for _ in range(100):
                if list(memoryview(mv(A, x))) != want:
                    wrong.append(1)

        all_of_them = [threading.Thread(target=work) for _ in range(4)]
        for t in all_of_them:
            t.start()
        for t in all_of_them:
            t.join()
        self.assertEqual(wrong, [])


class Models(Cached):
    def test_a_path_and_bytes(self) -> None:
        net = tarn.compile(DIGITS, shapes={"n": 1}, threads=1)
        self.assertEqual([p.shape for p in net.inputs + net.outputs], [(1, 1, 8, 8), (1, 10)])
        image = floats([float(i % 5) for i in range(64)], (1, 1, 8, 8))
        result = memoryview(net(image)).tolist()[0]
        self.assertAlmostEqual(sum(result), 1, 5)
        self.assertGreater(net.report["kernels"], 0)
        again = tarn.compile(DIGITS.read_bytes(), shapes={"n": (1)}, output=self.folder / "d")
        self.assertEqual(memoryview(again(image)).tolist()[0], result)
        loaded = tarn.load(self.folder / "d", threads=1)
        self.assertEqual(memoryview(loaded(image=image)).tolist()[0], result)
        self.assertTrue((self.folder / "d" / "model.h").exists())

    def test_memory_that_does_not_fit(self) -> None:
        net = tarn.compile(DIGITS, shapes={"n": 1}, threads=1)
        odd = (ctypes.c_char * 260)()
        at = 1 + (-ctypes.addressof(odd)) % 4
        unaligned = memoryview(odd).cast("B")[at : at + 256].cast("f", (1, 1, 8, 8))
        with self.assertRaisesRegex(ValueError, "image: its memory is not aligned"):
            net(unaligned)
        words = r"argument image: expected \(1, 1, 8, 8\), got \(64,\)"
        with self.assertRaisesRegex(ValueError, words):
            net(floats([0.0] * 64))
        if HAS["numpy"]:
            import numpy

            with self.assertRaisesRegex(ValueError, "image: it is not row-major"):
                net(numpy.zeros((1, 1, 8, 16), "f4")[..., ::2])

    def test_refusals(self) -> None:
        for model, kind, words in (
            ("none.onnx", OSError, "none.onnx"),
            (b"no model", tarn.InputError, "not a protobuf"),
            (3, TypeError, "is expected, not int"),
        ):
            with self.assertRaisesRegex(kind, words):
                tarn.compile(model)
        for options in ({"numerics": "fast"}, {"hw": "no-such-machine"}, {"shapes": {"m": 1}}):
            with self.assertRaises((ValueError, OSError), msg=str(options)):
                tarn.compile(DIGITS, **options)
        with self.assertRaisesRegex(tarn.UsageError, "no code for this process"):
            other = "aarch64" if os.uname().machine != "aarch64" else "x86-64-v3"
            tarn.compile(DIGITS, shapes={"n": 1}, hw=other)

    def test_programs_of_several_sizes(self) -> None:
        for words in ({}, {"output": self.folder / "sizes"}):
            with self.assertRaisesRegex(tarn.UsageError, "several sizes"):
                tarn.compile(DIGITS, shapes={"n": "1..2"}, threads=1, **words)

    @unittest.skipUnless(HAS["numpy"], "numpy is not installed")
    def test_results_outlive_the_program(self) -> None:
        import numpy

        net = tarn.compile(DIGITS, shapes={"n": 1}, threads=1)
        image = numpy.ones((1, 1, 8, 8), "f4")
        raw = net._program.run((image,), None)[0]
        by_dlpack, by_buffer = numpy.from_dlpack(raw), numpy.asarray(raw)
        self.assertTrue(numpy.shares_memory(by_dlpack, by_buffer))
        want = by_buffer.copy()
        del net, raw, by_buffer
        self.assertTrue(numpy.array_equal(by_dlpack, want))
        half = self.define("def f(half(N) x) -> (y) { y(i) = x(i) * 2 }")
        self.assertEqual(half(numpy.ones(3, "f2")).dtype, numpy.float16)

    def test_bfloat16_goes_through_dlpack(self) -> None:
        f = self.define("def f(bfloat16 a, float(N) x) -> (y) { y(i) = bfloat16(x(i)) + a }")
        y = f(1.5, floats([1, 2]))
        self.assertEqual((y.dtype, y.shape, y.__dlpack_device__()), ("bf16", (2,), (1, 0)))
        with self.assertRaises(BufferError):
            memoryview(y)
        same = self.define("def f(bfloat16(N) x) -> (y) { y(i) = float(x(i)) }")
        self.assertEqual(list(memoryview(same(y))), [2.5, 3.5])

    @unittest.skipUnless(HAS["onnx"], "onnx is not installed")
    def test_a_model_proto(self) -> None:
        import onnx

        net = tarn.compile(onnx.load(str(DIGITS)), shapes={"n": 2}, threads=1)
        self.assertEqual(net.outputs[0].shape, (2, 10))

    @unittest.skipUnless(HAS["torch"], "torch is not installed")
    def test_a_module(self) -> None:
        import torch

        torch.manual_seed(0)
        first, last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
        module = torch.nn.Sequential(first, torch.nn.ReLU(), last)
        module.train()
        net = tarn.compile(module, example=torch.rand(2, 8), threads=1)
        self.assertTrue(module.training)
        x = torch.rand(2, 8)
        with torch.no_grad():
            self.assertLess(float((net(x) - module(x)).abs().max()), 1e-5)
        out = torch.zeros(2, 4)
        self.assertIs(net(x, out=out), out)
        self.assertTrue(torch.equal(out, net(x)))
        wants_gradient = torch.rand(2, 8, requires_grad=True)
        for bad in (wants_gradient, torch.rand(8, 2).t(), torch.rand(2, 8).double()):
            with self.assertRaises((RuntimeError, ValueError, TypeError)):
                net(bad)
        with self.assertRaisesRegex(TypeError, "example="):
            tarn.compile(module)


if __name__ == "__main__":
    unittest.main()

"""The commands of the program as functions; errors in Python's words."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

import tarn
from tarn._errors import speak

TOP = Path(__file__).resolve().parents[2]
DIGITS = TOP / "examples" / "digits" / "digits.onnx"
SUM = "(compute reduceSum (access 0 (input a ((4) ()) f32)))"
RULE = "(rule mine (transpose (1 0) (transpose (1 0) ?x)) => ?x)"
WRONG = "(rule wrong (compute (map (add $0 $1)) ?x ?y) => (compute (map (mul $0 $1)) ?x ?y))"


class Commands(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_inspect(self) -> None:
        for model in (DIGITS, DIGITS.read_bytes()):
            found = tarn.inspect(model)
            self.assertTrue(found)
            self.assertEqual([s["name"] for s in found.sizes], ["n"])
            self.assertEqual(found["inputs"][0]["type"], "f32[n,1,8,8]")
        self.assertEqual(tarn.inspect(DIGITS, shapes={"n": 2}).sizes, [])
        odd = DIGITS.read_bytes().replace(b"Flatten", b"Flattex")
        self.assertFalse(tarn.inspect(odd))
        self.assertEqual(tarn.inspect(odd).unsupported[0]["op"], "Flattex")
        self.assertIn("<table>", found._repr_html_())
        with self.assertRaisesRegex(AttributeError, "says nothing of weather"):
            found.weather

    def test_check_and_bench(self) -> None:
        folder = self.folder / "digits"
        tarn.compile(DIGITS, shapes={"n": 1}, threads=1, output=folder)
        self.assertTrue(tarn.check(folder, samples=2))
        timed = tarn.bench(folder, threads=1, repeat=1)
        self.assertLessEqual(timed.bound_fraction, 1)

    def test_equal(self) -> None:
        other = SUM.replace("reduceSum", "reduceMax")
        proved = tarn.equal(SUM, SUM)
        self.assertTrue(proved)
        self.assertEqual(proved.verdict, "proved")
        different = tarn.equal(SUM, other)
        self.assertFalse(different)
        self.assertEqual(different.verdict, "different")
        self.assertEqual(len(different.inputs["a"]), 4)

    def test_rules(self) -> None:
        self.assertTrue(tarn.check_rules(RULE, samples=5))
        self.assertFalse(tarn.check_rules(WRONG, samples=5))
        with self.assertRaises(tarn.InputError) as caught:
            tarn.check_rules("(rule broken ?x => ?y)")
        self.assertNotIn("/tmp", str(caught.exception))
        net = tarn.compile(DIGITS, shapes={"n": 1}, threads=1, rules=[RULE], price="analytic")
        self.assertEqual(len(net.outputs), 1)
        with self.assertRaisesRegex(tarn.InputError, "^rules 1:1") as caught:
            tarn.compile(DIGITS, shapes={"n": 1}, rules=["(rule broken ?x => ?y)"])
        bits = TOP / "examples" / "learn" / "bool.rules"
        learned = tarn.learn_rules(bits, size=3, variables=2)
        self.assertTrue(learned)
        self.assertIn("(rule ", learned.text)

    def test_proofs(self) -> None:
        chain = self.folder / "chain"
        two = tarn.equal(SUM, SUM)
        chain.write_text(two.proof)
        self.assertTrue(tarn.check_proof(chain))

    def test_simulate_refuses_a_cpu(self) -> None:
        folder = self.folder / "digits"
        tarn.compile(DIGITS, shapes={"n": 1}, threads=1, output=folder, price="analytic")
        with self.assertRaises(tarn.Error):
            tarn.simulate(folder)

    @unittest.skipUnless(importlib.util.find_spec("numpy"), "NumPy")
    def test_quantize(self) -> None:
        import numpy

        samples = [numpy.random.default_rng(k).random((2, 1, 8, 8), "f4") for k in range(2)]
        made = self.folder / "digits8.onnx"
        tarn.quantize(DIGITS, samples, made, shapes={"n": 2})
        self.assertTrue(tarn.inspect(made))

    def test_tune(self) -> None:
        store = self.folder / "tarn.db"
        matmul = TOP / "examples" / "tc" / "matmul.tc"
        tarn.tune(matmul, db=store, trials=2, threads=1, shapes={"M": 8, "K": 8, "N": 8})
        self.assertTrue(store.exists())


class Words(unittest.TestCase):
    def test_options_are_arguments(self) -> None:
        for said, spoken in (
            ("bind it with --shape image=… or --shape n=N",
             'bind it with shapes={"image": …} or shapes={"n": N}'),
            ("--shape a=1,2: the model has no such input",
             'shapes={"a": (1,2)}: the model has no such input'),
            ("--set k=3: no", 'sets={"k": 3}: no'),
            ("--no-rules x: no such family", "no_rules= x: no such family"),
            ("input a--b", "input a--b"),
        ):  # fmt: skip
            self.assertEqual(speak(said), spoken)
        with self.assertRaisesRegex(tarn.InputError, r'shapes={"n": N}'):
            tarn.compile(DIGITS)


if __name__ == "__main__":
    unittest.main()

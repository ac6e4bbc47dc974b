"""The e-graph of the Python module."""

import copy
import itertools
import json
import os
import pickle
import signal
import tempfile
import threading
import unittest
from fractions import Fraction
from pathlib import Path

import tarn
from tarn import Expr, Op, parse, rule, symbols, variables

a, b, c = variables("a b c")
x, y, z = symbols("x y z")
AC = [
    rule(a + b, b + a, name="comm"),
    rule(a + (b + c), (a + b) + c, name="assoc", both=True),
]


def total(n: int) -> Expr:
    e = Expr("x0")
    for i in range(1, n):
        e = e + Expr(f"x{i}")
    return e


class Terms(unittest.TestCase):
    def test_text_reads_back(self) -> None:
        for text in ("x", "(+ 1 (* x -2.5))", '("a b" "q\\"\\\\" ?x)', "(f ?*xs)"):
            self.assertEqual(str(parse(text)), text)

    def test_numbers_and_operators(self) -> None:
        e = (2 * x + 1.5) ** Fraction(1, 2) - True
        self.assertEqual(str(e), "(- (pow (+ (* 2 x) 1.5) 1/2) true)")
        self.assertEqual(Op("f")(x, 2.0), parse("(f x 2)"))

    def test_what_is_no_term(self) -> None:
        for text in ("", "(", "x y", "(f x))", "((f) x)", '"open'):
            with self.assertRaises(ValueError, msg=text):
                parse(text)
        with self.assertRaises(AttributeError):
            x.op = "y"  # type: ignore[misc]

    def test_shared_terms_stay_small(self) -> None:
        e = x
        for _ in range(200):  # 2^200 operators as a tree
            e = e + e
        g = tarn.EGraph()
        g.add(e)
        self.assertEqual((len(e.rows()), g.nodes), (201, 201))
        self.assertEqual(g.extract(e, method="greedy", cost={"+": 2}).cost, 401)

    def test_deep_terms(self) -> None:
        e = x
        for _ in range(50_000):
            e = Op("s")(e)
        g = tarn.EGraph([rule("(s (s ?a))", "?a", name="even")])
        g.add(e)
        g.run()
        self.assertTrue(g.equal(e, x))


class Copies(unittest.TestCase):
    def test_terms_and_rules_are_pickled_and_copied(self) -> None:
        deep = x
        for _ in range(100_000):
            deep = Op("s")(deep)
        shared = x
        for _ in range(100):
            shared = shared + shared
        for one in (x, 2 * x + y, deep, shared, rule("(s ?a)", "?a", name="s"), Op("s")):
            for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
                if isinstance(one, Expr):
                    self.assertEqual(again, one)
                else:
                    self.assertEqual(str(again), str(one))


class Runs(unittest.TestCase):
    def test_counts_are_those_of_the_theory(self) -> None:
        g = tarn.EGraph(AC)
        g.add(total(5))
        self.assertTrue(g.run().saturated)
        self.assertEqual(g.classes, 2**5 - 1)  # the nonempty subsets
        self.assertEqual(g.nodes, 5 + 3**5 - 2**6 + 1)

    def test_limits(self) -> None:
        g = tarn.EGraph(AC, nodes=1000)
        g.add(total(9))
        self.assertIn("nodes", g.run().stop)
        self.assertLessEqual(g.nodes, 1000)
        g = tarn.EGraph(AC)
        g.add(total(9))
        self.assertEqual((g.run(2).stop, len(g.run(1).iterations)), ("iterations", 1))

    def test_until(self) -> None:
        g = tarn.EGraph(AC)
        self.assertEqual(g.run(until=(x + (y + z), (z + y) + x)).stop, "goal")

    def test_interrupt_keeps_the_graph(self) -> None:
        g = tarn.EGraph(AC, nodes=50_000_000)
        e = total(16)
        g.add(e)
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            g.run()
        self.assertGreater(g.nodes, 31)
        self.assertEqual(g.extract(e).cost, 31)

    def test_one_thread_at_a_time(self) -> None:
        g = tarn.EGraph(AC, nodes=50_000_000)
        g.add(total(16))
        runner = threading.Thread(target=lambda: g.run(seconds=1))
        runner.start()
        refused = False
        while runner.is_alive() and not refused:
            try:
                g.nodes
            except RuntimeError as e:
                refused = "another thread" in str(e)
        runner.join()
        self.assertTrue(refused)

    def test_phases_and_analyses_of_a_file(self) -> None:
        text = """(analysis value constant ((+ ?a ?b) (add ?a ?b)))
            (rule late (f ?a) => (+ ?a 1))
            (rule early (g ?a) => (f (f ?a)))
            (phases (first (early) :iterations 1) (second (late)))"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "some.rules"
            path.write_text(text)
            g = tarn.EGraph(path)
        g.add("(g (g 1))")
        run = g.run()
        self.assertTrue(run.saturated)
        self.assertEqual(str(g.extract("(g (g 1))").term), "5")
        self.assertEqual([r.matches for r in run.rules], [4, 2])
        with self.assertRaises(tarn.UsageError):
            g.rules("(analysis more set)")

    def test_a_wrong_rule_is_named(self) -> None:
        g = tarn.EGraph("(analysis v constant ((+ ?a ?b) (add ?a ?b)))(rule odd (+ ?a ?b) => ?a)")
        g.add("(+ 1 1)")
        with self.assertRaises(tarn.InputError) as e:
            g.run()
        self.assertIn("odd", str(e.exception))

    def test_errors_have_places(self) -> None:
        g = tarn.EGraph()
        with self.assertRaises(tarn.InputError) as e:
            g.rules("(rule one (f ?a) => ?b)")
        self.assertRegex(str(e.exception), r"^rules:1:\d+: ")
        self.assertEqual(g.rule_names, [])


class Results(unittest.TestCase):
    def setUp(self) -> None:
        self.g = tarn.EGraph([*AC, rule(a * 2, a + a, name="twice"), rule(a + 0, a, name="zero")])

    def test_costs(self) -> None:
        t = (x + 0) * 2
        self.g.add(t)
        self.g.run(4)
        self.assertEqual(str(self.g.extract(t).term), "(* x 2)")
        self.assertEqual(str(self.g.extract(t, {"*": 5}).term), "(+ x x)")
        self.assertEqual(self.g.extract(t, {"*": 5}, "exact").cost, 2)
        self.assertEqual(self.g.extract(t, lambda op: 7 if op == "*" else 1).cost, 3)
        self.assertEqual(self.g.extract(t, "depth").cost, 2)
        for bad in ({"*": -1}, "weight", {"*": float("nan")}):
            with self.assertRaises(ValueError):
                self.g.extract(t, bad)
        with self.assertRaises(ValueError):
            self.g.extract(t, method="best")

    def test_several_share(self) -> None:
        s = x + y
        first, second = self.g.extract_all([Op("f")(s), Op("g")(s)], method="exact")
        self.assertEqual(first.cost, 5)  # f, g, +, x, y
        self.assertIs(first.term.args[0], second.term.args[0])
        self.assertTrue(first.optimal)

    def test_proofs(self) -> None:
        self.g.add((x + 0) * 2)
        self.g.run(4)
        proof = self.g.explain((x + 0) * 2, "(+ x x)")
        self.assertEqual({s.rule for s in proof.steps}, {"zero", "twice"})
        self.assertTrue(proof.check().ok)
        self.assertEqual(proof.check().assumed, [])
        text = proof.text.replace("(+ x x)", "(+ x y)")
        forged = tarn.Proof("", [], text, True, self.g._graph)
        self.assertFalse(forged.check().ok)
        with self.assertRaises(tarn.Error):
            self.g.explain(x, y)

    def test_existence(self) -> None:
        self.g.add((x + 0) * 2)
        self.g.run(4)
        made = self.g.existence("(+ x x)")
        self.assertIsNone(made[0].rule)
        self.assertIn("twice", [m.rule for m in made])
        self.assertEqual(made[-1].made, "(+ (+ x 0) (+ x 0))")  # the oldest that matches
        self.assertEqual([m.rule for m in self.g.existence((x + 0) * 2) if m.rule], [])
        with self.assertRaises(tarn.Error):
            self.g.existence("(sin x)")

    def test_matches(self) -> None:
        self.g.add((x + y) * z)
        found = self.g.match((b + a) * c)
        self.assertEqual(len(found), 1)
        v = found[0].variables
        self.assertEqual([str(v[n].extract()) for n in "abc"], ["y", "x", "z"])
        self.assertEqual(len(self.g.match("?a", limit=2)), 2)

    def test_union_and_classes(self) -> None:
        e, f = self.g.add(x), self.g.add(y)
        self.assertFalse(e == f)
        self.g.union(x, y)
        self.assertTrue(e == f and self.g.equal("(f x)", "(f y)"))
        with self.assertRaises(ValueError):
            tarn.EGraph().union(e, f)

    def test_written(self) -> None:
        self.g.add(x + 0)
        self.g.run()
        data = json.loads(self.g.to_json())
        self.assertIn("root_eclasses", data)
        self.assertTrue(self.g.to_dot().startswith("digraph"))
        page = self.g.to_html()
        self.assertIn('"op":"x"', page.replace(" ", ""))
        self.assertIn("<iframe", self.g._repr_html_())
        self.assertIn("is empty", tarn.EGraph().to_html())

    def test_costs_below_a_parent(self) -> None:
        g = tarn.EGraph([rule("(- ?a ?b)", "(+ ?a (neg ?b))", name="sub")])
        one, two = g.add(x - y), g.add("(f (neg y))")
        g.run()
        cost, below = {"-": 3, "neg": 2}, {("neg", "+"): 0.5, ("neg", "cos"): 9, ("tan", "+"): 9}
        for method in ("tree", "greedy", "exact"):
            best = g.extract(one, cost, method, below=below)
            self.assertEqual((str(best.term), best.cost), ("(+ x (neg y))", 3.5), method)
            self.assertEqual(two.extract(cost, method, below=below).cost, 4, method)
        # A node counts once for each cost that it is used at: f, +, x, y, neg, neg below +.
        self.assertEqual(g.extract_all([one, two], cost, "exact", below=below)[0].cost, 6.5)
        below[("neg", "f")] = 0.5  # still two things
        self.assertEqual(g.extract_all([one, two], cost, "exact", below=below)[0].cost, 5)
        # Below each parent another term may be the least of the same class.
        g = tarn.EGraph("(rule pq (p) => (q))")
        both = g.add("(h (f (p)) (g (p)))")
        g.run()
        best = g.extract(both, {"p": 2}, "exact", below={("p", "f"): 5, ("q", "g"): 5})
        self.assertEqual((str(best.term), best.cost), ("(h (f q) (g p))", 6))
        for wrong in ({("p", "f"): float("nan")}, {("p", "f"): float("-inf")}):
            with self.assertRaises(ValueError):
                g.extract(both, below=wrong)
        with self.assertRaises(ValueError):
            g.extract(both, "depth", below={("p", "f"): 2})

    def test_negative_costs(self) -> None:
        g = tarn.EGraph("(rule a (f ?x) => (g (h ?x)))")
        term = g.add("(f x)")
        g.run(3)
        best = g.extract(term, {"h": -5}, method="exact")
        self.assertEqual((str(best.term), best.cost, best.optimal), ("(g (h x))", -3.0, True))
        with self.assertRaises(tarn.InputError):
            g.extract(term, {"h": -5})


class Learning(unittest.TestCase):
    """Rules of functions of Python's: permutations, and what may have no value."""

    def test_permutations(self) -> None:
        every = list(itertools.permutations(range(3)))

        def back(p: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(p.index(i) for i in range(3))

        rules = tarn.learn(
            {"*": lambda p, q: tuple(p[i] for i in q), "inv": back},
            lambda r: r.choice(every),
            constants={"id": (0, 1, 2)},
            conditions={"still": lambda p: p[0] == 0},
        )
        g = tarn.EGraph([r for r in rules if ":if" not in r])
        g.add("(* (inv (* x y)) (* x (* y z)))")
        g.add("z")
        g.run(8)
        self.assertTrue(g.equal("(* (inv (* x y)) (* x (* y z)))", "z"))
        self.assertFalse(g.equal("(* x y)", "(* y x)"))
        self.assertTrue(any(r.endswith("(inv ?a) => ?a :if (still ?a))") for r in rules), rules)

    def test_no_value_and_exceptions(self) -> None:
        rules = tarn.learn(
            {"/": lambda a, b: Fraction(a, b) if b else None},
            lambda r: Fraction(r.randrange(-4, 5), r.randrange(1, 4)),
            constants={"1": Fraction(1)},
            size=3,
        )
        self.assertTrue(any("(/ ?a 1) => ?a" in r for r in rules), rules)
        self.assertFalse(any("(/ ?a ?a) => 1)" in r for r in rules), rules)
        with self.assertRaises(ZeroDivisionError):
            tarn.learn({"/": lambda a, b: a // b}, lambda r: r.randrange(3))
        with self.assertRaises(ValueError):
            tarn.learn({"f": lambda: 0}, lambda r: 0)


if __name__ == "__main__":
    unittest.main()

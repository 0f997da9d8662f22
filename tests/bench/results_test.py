#!/usr/bin/env python3
"""The results of benchmarks: what is resumed, what is measured again, what counts as a miss."""

import contextlib
import io
import json
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import AtLeast, AtMost, Benchmark, Figure, Spread, tree_state  # noqa: E402


def git(root, *arguments):
    subprocess.run(["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
                   check=True, capture_output=True)


class ResultsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.taken = 0
        git(self.root, "init", "-q")
        (self.root / ".gitignore").write_text("/build/\n")
        (self.root / "code").write_text("1")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "first")

    def take(self):
        self.taken += 1
        return {"rate": self.taken}

    def measure(self, configuration, name="b", fresh=False):
        with contextlib.redirect_stderr(io.StringIO()):
            return Benchmark(name, ["x"], fresh, self.root).measure(configuration, self.take)

    def test_same_commit_and_configuration_resume(self):
        self.assertEqual(self.measure({"stages": 1, "steps": 2}), {"rate": 1})
        self.assertEqual(self.measure({"steps": 2, "stages": 1}), {"rate": 1})
        self.assertEqual(self.measure({"steps": 3, "stages": 1}), {"rate": 2})
        self.assertEqual(self.measure({"steps": 2, "stages": 1}, name="c"), {"rate": 3})
        self.assertEqual(self.measure({"steps": 2, "stages": 1}, fresh=True), {"rate": 4})
        self.assertEqual(self.measure({"steps": 2, "stages": 1}), {"rate": 4})

    def test_another_tree_measures_again(self):
        self.measure({})
        (self.root / "code").write_text("2")
        self.assertEqual(self.measure({}), {"rate": 2})
        self.assertEqual(self.measure({}), {"rate": 2})
        (self.root / "new").write_text("1")
        self.assertEqual(self.measure({}), {"rate": 3})
        (self.root / "new").write_text("2")
        self.assertEqual(self.measure({}), {"rate": 4})
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "second")
        self.assertEqual(self.measure({}), {"rate": 5})
        git(self.root, "checkout", "-q", "HEAD~")
        self.assertEqual(self.measure({}), {"rate": 1})

    def test_without_git_nothing_is_resumed(self):
        with tempfile.TemporaryDirectory() as folder:
            self.root = Path(folder)
            self.assertIsNone(tree_state(folder))
            self.assertEqual([self.measure({}), self.measure({})], [{"rate": 1}, {"rate": 2}])
            self.assertFalse((self.root / "build").exists())

    def test_an_interrupted_measurement_leaves_the_others(self):
        self.measure({"stages": 1})

        def interrupted():
            raise KeyboardInterrupt
        with self.assertRaises(KeyboardInterrupt):
            Benchmark("b", ["x"], False, self.root).measure({"stages": 4}, interrupted)
        self.assertEqual(self.measure({"stages": 1}), {"rate": 1})
        self.assertEqual(self.measure({"stages": 4}), {"rate": 2})

    def test_a_damaged_file_is_replaced(self):
        self.measure({})
        path = self.root / "build" / "bench" / "results.json"
        for damage in ("", "[]", '{"schema": 1, "results": 3}', '{"schema": 2, "results": {}}'):
            path.write_text(damage)
            self.measure({})
            self.assertEqual(len(json.loads(path.read_text())["results"]), 1)

    def table(self, *rows):
        bench = Benchmark("b", ["name", "rate", "target"], False, self.root)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(SystemExit) as end:
            for name, figure in rows:
                bench.row(name, *figure.cells())
            bench.finish()
        return out.getvalue().splitlines(), end.exception.code

    def test_targets_stand_beside_figures_and_misses_fail(self):
        lines, code = self.table(("a", Figure(2.0, AtLeast(2), ".1f")),
                                 ("b", Figure(Spread.of([4, 1, 0, 2, 3]), AtMost(2), ".1f")),
                                 ("c", Figure(7)))
        self.assertEqual([line.split() for line in lines],
                         [["name", "rate", "target"], ["a", "2.0", ">=", "2"],
                          ["b", "2.0", "(1.0", "to", "3.0)", "<=", "2"], ["c", "7", "-"]])
        self.assertEqual(code, 0)
        for bad in (2.1, math.inf, math.nan):
            lines, code = self.table(("a", Figure(bad, AtMost(2))), ("b", Figure(1, AtMost(2))))
            self.assertTrue(lines[1].endswith("  FAIL"))
            self.assertFalse(lines[2].endswith("FAIL"))
            self.assertEqual(code, 1)

    def test_a_ratio_is_taken_turn_by_turn(self):
        self.assertEqual(Spread.ratio([2, 40, 6, 9, 2], [1, 10, 2, 1, 2]), Spread(3, 2, 4))
        self.assertEqual(Spread.ratio([6], [2]), Spread(3, 3, 3))
        with self.assertRaises(ValueError):
            Spread.ratio([1, 2], [1])


if __name__ == "__main__":
    unittest.main()

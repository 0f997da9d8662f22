#!/usr/bin/env python3
"""tools/gpu_check without a card: the whole of run.sh on the emulated device with tiny shapes, its
judgement of rows, and what it says where there is no card.
"""

import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = ROOT / "tools" / "gpu_check"
BIN = Path(os.environ.get("LONGHAUL_BIN", ROOT / "build" / "bin")).resolve()
# What the bundle holds, and what stands for it here.
PROGRAMS = {"longhaul": "longhaul", "longhauld": "longhauld_emulated",
            "longhaul_bench_gpu": "longhaul_bench_gpu_emulated",
            "compute_cuda_test": "cuda_emulated_test"}


def judge(*rows):
    """Exit code and output of rows.awk."""
    text = "".join("\t".join(row) + "\n" for row in rows)
    done = subprocess.run(["awk", "-F", "\t", "-f", SCRIPTS / "rows.awk"], input=text, text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout


class GpuCheckTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.bundle = Path(temporary.name)
        for script in SCRIPTS.iterdir():
            (self.bundle / script.name).symlink_to(script)
        (self.bundle / "bin").mkdir()
        (self.bundle / "tests").symlink_to(ROOT / "tests")

    def run_check(self, *arguments):
        return subprocess.run([self.bundle / "run.sh", *arguments], capture_output=True, text=True,
                              timeout=900, check=False,
                              env=dict(os.environ, LONGHAUL_EMULATED_NAME=str(self.bundle)))

    def test_rows_are_judged(self):
        self.assertEqual(judge(("row", "p", "n", "a", "0.5", "-", "b", "2", "<= 2"))[0], 0)
        self.assertEqual(judge(("row", "p", "n", "a", "1e-06", "<= 1e-05"))[0], 0)
        self.assertEqual(judge(("row", "p", "n", "a", "0.46", ">= 0.45"))[0], 0)
        for value, target in (("2.1", "<= 2"), ("0.44", ">= 0.45"), ("nan", "<= 1"),
                              ("inf", ">= 1"), ("inf", "<= 1"), ("", "<= 1"), ("1", "about 1")):
            status, text = judge(("row", "p", "n", "a", "0", "-", "b", value, target))
            self.assertEqual(status, 1, (value, target))
            self.assertIn("FAIL", text)

    def test_without_a_card(self):
        program = self.bundle / "bin" / "longhaul_bench_gpu"
        program.write_text("#!/bin/sh\n[ $1 = --help ] && exit 2\n"
                           "echo 'no CUDA device: it is elsewhere' >&2\nexit 77\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        done = self.run_check()
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("no CUDA device: it is elsewhere", done.stderr)
        self.assertIn("operators: not run", done.stdout)
        self.assertEqual(self.run_check("--part", "unheard-of").returncode, 2)

    def test_on_the_emulation(self):
        for name, built in PROGRAMS.items():
            (self.bundle / "bin" / name).symlink_to(BIN / built)
        done = self.run_check("--tiny", "--python", "/nonexistent/python")
        missed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
        self.assertEqual((done.returncode, missed), (0, []), done.stderr)
        for expected in ("gpt2 qkv backward", "llama swiglu", "bf16 error", "tokens/s",
                         "against the CPU", "two by one", "operators' tests", "apart"):
            self.assertIn(expected, done.stdout)
        self.assertIn("all targets reached", done.stdout)


if __name__ == "__main__":
    if not (BIN / "longhaul_bench_gpu_emulated").exists():
        sys.exit(f"{BIN} has no longhaul_bench_gpu_emulated; build it first")
    unittest.main()

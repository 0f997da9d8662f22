#!/usr/bin/env python3
# bench: cpu [--python PATH]   one stage on the CPU against PyTorch, eager and compiled
"""Trains the same GPT in turn with Longhaul and with PyTorch (scaled_dot_product_attention, fused
AdamW, gradients set to none): fp32, forward + backward + step on one micro-batch, one stage. Prints
for each shape and number of threads the tokens per second, how many times PyTorch's they are (the
median over rounds, and the spread from the lower to the upper quartile), the share of the rate of
our own matrix products, and the memory at the peak above what the process held before it built the
model. FAIL marks a figure that misses its target. One thread is timed by the processor time of its
process, which other work on the machine leaves alone; several by the clock, with the ratio of the
processor times beside it for a machine that is not idle.

--python names a Python with PyTorch: python3 -m venv .venv && .venv/bin/pip install torch
Rows already measured for this commit are read from the results file; --fresh measures again.
"""

import argparse
import itertools
import statistics
import subprocess
import sys
from pathlib import Path

from results import ROOT, AtLeast, AtMost, Benchmark, Figure, Spread, add_arguments

HERE = Path(__file__).resolve().parent

# hidden: layers, heads, context, sequences in the micro-batch, target of eager, of the share
SHAPES = {128: (6, 4, 128, 16, 1.3, 0.53), 256: (6, 8, 256, 8, 1.3, 0.75),
          768: (12, 12, 512, 2, 1.1, 0.78)}
VOCABULARIES = (256, 50257)
ROUND_SECONDS = 0.7
COMPILED_TARGET = 1.0


class Side:
    """A process that trains when told to."""

    def __init__(self, command, threads):
        self.clock = 1 if threads == 1 else 0  # of the two times in an answer
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, cwd=ROOT)
        words = self.read()
        self.parameters, self.flops = int(words[1]), float(words[2])
        self.train(1)
        self.steps = max(1, round(ROUND_SECONDS / self.train(1)[0]))

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self.process.args)} ended with {self.process.wait()}")
        return line.split()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return [float(word) for word in self.read()]

    def train(self, steps):
        """Seconds a step: of the clock that counts, and of the processor."""
        answer = self.ask(f"train {steps}")
        return answer[self.clock] / steps, answer[1] / steps

    def round(self):
        return self.train(self.steps)

    def product_rate(self):
        answer = self.ask("multiply 20")
        return answer[2] / answer[self.clock]

    def close(self):
        peak = self.ask("memory")[0]
        self.process.stdin.close()
        self.process.wait()
        return peak


def measure(python, shape, rounds, compiled):
    """One row: seconds a step of each side by round, and the rest."""
    hidden, vocab, threads = shape
    layers, heads, context, micro_batch = SHAPES[hidden][:4]
    numbers = [layers, hidden, heads, context, vocab, micro_batch, threads]
    torch = [python, HERE / "cpu_torch.py", *numbers]
    sides = {"ours": Side([ROOT / "build/bin/longhaul_bench_cpu", *numbers], threads),
             "eager": Side([*torch, "eager"], threads)}
    if compiled:
        sides["compiled"] = Side([*torch, "compiled"], threads)
    if len({side.parameters for side in sides.values()}) != 1:
        sys.exit("the sides do not train the same model")
    seconds = {name: [] for name in sides}
    processor = {name: [] for name in sides}
    rates = []
    for _ in range(rounds):
        for name, side in sides.items():
            time, of_processor = side.round()
            seconds[name].append(time)
            processor[name].append(of_processor)
        rates.append(sides["ours"].product_rate())
    shares = [sides["ours"].flops / time / rate for time, rate in zip(seconds["ours"], rates)]
    return {"tokens": micro_batch * context, "seconds": seconds, "processor": processor,
            "shares": shares,
            "product_rate": statistics.median(rates),
            "peak": {name: side.close() for name, side in sides.items()}}


HEADINGS = ["hidden", "vocab", "threads", ("figure", 24), ("measured", 24), "target"]


def show(bench, shape, row):
    """Prints the figures of one shape."""
    def line(name, values, target=None, style=".2f"):
        value = Spread.of(values) if len(values) > 1 else values[0]
        bench.row(*shape, name, *Figure(value, target, style).cells())

    eager_target, share_target = SHAPES[shape[0]][4:]
    seconds = row["seconds"]
    for name, times in seconds.items():
        line(f"tokens/s, {name}", [row["tokens"] / time for time in times], style=",.0f")
    line("times eager", ratios(seconds, "eager"), AtLeast(eager_target))
    if shape[2] > 1:
        line("the same, processor time", ratios(row["processor"], "eager"))
    if "compiled" in seconds:
        line("times compiled", ratios(seconds, "compiled"), AtLeast(COMPILED_TARGET))
    line("matrix product, GFLOP/s", [row["product_rate"] / 1e9])
    line("share of it", row["shares"], AtLeast(share_target))
    ours, eager = row["peak"]["ours"] / 2**20, row["peak"]["eager"] / 2**20
    line("peak memory, MiB", [ours], AtMost(eager), ",.0f")


def ratios(seconds, name):
    return [theirs / ours for ours, theirs in zip(seconds["ours"], seconds[name], strict=True)]


def check_torch(python):
    found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"],
                           capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return found.stdout.strip()
    sys.exit(f"{python} has no PyTorch. Install it and name it:\n"
             "  python3 -m venv .venv && .venv/bin/pip install torch\n"
             "  ./dev bench cpu --python .venv/bin/python")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3", help="a Python with PyTorch")
    parser.add_argument("--hidden", type=int, nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--vocab", type=int, nargs="+", choices=VOCABULARIES,
                        default=list(VOCABULARIES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-compiled", action="store_true", help="leave the compiled mode out")
    add_arguments(parser)
    options = parser.parse_args()
    version = check_torch(options.python)
    print(f"PyTorch {version}, fp32, one micro-batch a step")
    bench = Benchmark("cpu", HEADINGS, fresh=options.fresh)
    for shape in itertools.product(options.hidden, options.vocab, options.threads):
        configuration = {"torch": version, "shape": shape, "rounds": options.rounds,
                         "compiled": not options.no_compiled}
        row = bench.measure(configuration, lambda: measure(options.python, shape, options.rounds,
                                                           not options.no_compiled))
        show(bench, shape, row)
    bench.finish()


if __name__ == "__main__":
    main()

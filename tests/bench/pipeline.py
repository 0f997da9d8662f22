#!/usr/bin/env python3
# bench: pipeline   four workers of one thread on two cores against one of two threads
"""Trains the same GPT (6 layers, 8 heads, hidden 256, context 256, 8 micro-batches a step) in turn
with four stages, each a worker of one thread, and with one worker of two threads: real daemons on
loopback, all on the same two cores. Prints tokens per second of both and the ratio of their rates:
what a pipeline inside one machine loses, on a machine that does nothing else. The last line is the
same by the processor time that a token takes, which other work leaves alone: what copies, codecs
and streams cost, but not what waiting costs.
"""

import argparse
import contextlib
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import Cluster  # noqa: E402
from results import AtLeast, Benchmark, Figure, Spread, add_arguments  # noqa: E402

MODEL = {"layers": 6, "heads": 8, "hidden": 256, "context": 256}
MICRO_BATCHES, MICRO_BATCH = 8, 2
WARM_UP_STEPS = 2
TARGET = AtLeast(0.9)


class Side:
    """A cluster that trains runs of a few steps."""

    def __init__(self, stack, workers, threads):
        self.cluster = stack.enter_context(Cluster(lease="60s"))
        self.workers = [f"w{i + 1}" for i in range(workers)]
        self.cluster.start_coordinator()
        for name in self.workers:
            self.cluster.start_worker(name, threads=threads)
        self.cluster.wait_for_nodes(workers)

    def processor_seconds(self):
        ticks = 0
        for name in self.workers:
            stat = Path(f"/proc/{self.cluster.processes[name].pid}/stat").read_text()
            ticks += sum(int(field) for field in stat.rpartition(")")[2].split()[11:13])
        return ticks / os.sysconf("SC_CLK_TCK")

    def train(self, name, steps):
        """Tokens per second after the first steps, and processor seconds per token."""
        before = self.processor_seconds()
        lines = self.cluster.train(name, steps=steps, global_batch=MICRO_BATCHES * MICRO_BATCH,
                                   micro_batch=MICRO_BATCH, stages=len(self.workers), **MODEL)
        tokens = sum(line["tokens"] for line in lines)
        rates = [line["tokens_per_second"] for line in lines[WARM_UP_STEPS:]]
        return {"rate": statistics.harmonic_mean(rates),
                "processor": (self.processor_seconds() - before) / tokens}


def measure(rounds, steps):
    """Each side's results by round."""
    with contextlib.ExitStack() as stack:
        sides = {"one": Side(stack, 1, 2), "four": Side(stack, 4, 1)}
        results = {name: [] for name in sides}
        for turn in range(rounds):
            for name, side in sides.items():
                results[name].append(side.train(f"turn-{turn}", steps))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12, help="of each run")
    add_arguments(parser)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2:
        sys.exit("this benchmark needs two cores")
    os.sched_setaffinity(0, cores)
    bench = Benchmark("pipeline", [("figure", 34), ("measured", 24), "target"],
                      fresh=options.fresh)
    results = bench.measure({"rounds": options.rounds, "steps": options.steps},
                            lambda: measure(options.rounds, options.steps))
    one, four = results["one"], results["four"]

    def line(name, value, target=None, style=".2f"):
        bench.row(name, *Figure(value, target, style).cells())

    line("tokens/s, one worker", Spread.of(r["rate"] for r in one), style=",.0f")
    line("tokens/s, four stages", Spread.of(r["rate"] for r in four), style=",.0f")
    line("times one worker", Spread.ratio([r["rate"] for r in four], [r["rate"] for r in one]),
         TARGET)
    line("the same by processor time", Spread.ratio([r["processor"] for r in one],
                                                    [r["processor"] for r in four]))
    bench.finish()


if __name__ == "__main__":
    main()

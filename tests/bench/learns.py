#!/usr/bin/env python3
# bench: learns --text FILE   validation loss in nanoGPT's CPU setting, 1 and 4 stages (1.90)
"""Trains nanoGPT's published CPU setting for Shakespeare (4 layers, 4 heads, hidden 128,
context 64, batch 12, 2,000 steps, learning rate 1e-3 to 1e-4, 100 warm-up steps, beta2 0.99, no
dropout) and prints the loss over the whole validation split, the last tenth of the text. nanoGPT's
README gives 1.88 for it (estimated on 20 random batches, on characters; here every byte is a
token).
"""

import argparse
import contextlib
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import Cluster  # noqa: E402
from results import AtMost, Benchmark, Figure, add_arguments, file_digest  # noqa: E402

TARGET = AtMost(1.90)


def train(cluster, stages, steps):
    name = f"shakespeare-{stages}"
    started = time.monotonic()
    lines = cluster.train(name, layers=4, heads=4, hidden=128, context=64, train="data.txt",
                          steps=steps, global_batch=12, micro_batch=3, learning_rate="1.0e-3",
                          min_learning_rate="1.0e-4", warmup_steps=100, beta2=0.99, grad_clip=1.0,
                          evaluate_every=500, seed=1337, stages=stages)
    seconds = time.monotonic() - started
    tokens = sum(line["tokens"] for line in lines)
    return {"loss": lines[-1]["validation_loss"], "rate": tokens / seconds,
            "digest": cluster.digest(name)}


class LazyCluster:
    """Four workers, started when they are needed first."""

    def __init__(self, text, stack):
        self.text = text
        self.stack = stack
        self.cluster = None

    def get(self):
        if self.cluster is None:
            self.cluster = self.stack.enter_context(Cluster())
            shutil.copy(self.text, self.cluster.folder / "data.txt")
            self.cluster.start(4)
        return self.cluster


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", required=True, help="tiny Shakespeare, about 1.1 MB")
    parser.add_argument("--steps", type=int, default=2000)
    add_arguments(parser)
    options = parser.parse_args()
    bench = Benchmark("learns", ["stages", "validation loss", "target", "tokens/s", "weights"],
                      fresh=options.fresh)
    text = file_digest(options.text)
    with contextlib.ExitStack() as stack:
        cluster = LazyCluster(options.text, stack)
        for stages in (1, 4):
            result = bench.measure({"stages": stages, "steps": options.steps, "text": text},
                                   lambda: train(cluster.get(), stages, options.steps))
            bench.row(stages, *Figure(result["loss"], TARGET, ".4f").cells(),
                      Figure(result["rate"], style=".0f"), result["digest"][:16])
    bench.finish()


if __name__ == "__main__":
    main()

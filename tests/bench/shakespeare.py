"""What the benchmarks on tiny Shakespeare share: nanoGPT's published CPU setting (4 layers,
4 heads, hidden 128, context 64, batch 12, 2,000 steps, learning rate 1e-3 to 1e-4, 100 warm-up
steps, beta2 0.99, no dropout), here on bytes, and a cluster that starts when it is needed first.
"""

import argparse
import shutil
import sys
import time
from pathlib import Path

import results

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import Cluster  # noqa: E402

TRAIN_SECONDS_MAX = 1800


class LazyCluster:
    """Workers, started when they are needed first, with the text as data.txt."""

    def __init__(self, text, workers, stack):
        self.text = text
        self.workers = workers
        self.stack = stack
        self.cluster = None

    def get(self):
        if self.cluster is None:
            self.cluster = self.stack.enter_context(Cluster())
            shutil.copy(self.text, self.cluster.folder / "data.txt")
            self.cluster.start(self.workers)
        return self.cluster


def train(cluster, name, steps, **options):
    """{"loss": over the whole validation split, "rate": tokens/s, "digest": of the weights}"""
    started = time.monotonic()
    setting = dict(layers=4, heads=4, hidden=128, context=64, train="data.txt", steps=steps,
                   global_batch=12, micro_batch=3, learning_rate="1.0e-3",
                   min_learning_rate="1.0e-4", warmup_steps=100, beta2=0.99, grad_clip=1.0,
                   evaluate_every=500, seed=1337)
    lines = cluster.train(name, timeout=TRAIN_SECONDS_MAX, **(setting | options))
    seconds = time.monotonic() - started
    tokens = sum(line["tokens"] for line in lines)
    return {"loss": lines[-1]["validation_loss"], "rate": tokens / seconds,
            "digest": cluster.digest(name)}


def parse_options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--text", required=True, help="tiny Shakespeare, about 1.1 MB")
    parser.add_argument("--steps", type=int, default=2000)
    results.add_arguments(parser)
    return parser.parse_args()

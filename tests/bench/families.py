#!/usr/bin/env python3
# bench: families --text FILE   validation loss of a Llama and a GPT of equal size, three seeds
"""Trains a GPT and a Llama of as many parameters (801 thousand beside the token embedding, the
Llama within 0.1 % below) in nanoGPT's CPU setting for Shakespeare. The Llama's validation loss, as
the mean over three seeds, is meant to be at most the GPT's.
"""

import contextlib
import statistics

import results
import shakespeare
from results import AtMost, Benchmark, Figure

SEEDS = (1337, 1338, 1339)
# Three matrices [350, 128] for a GPT's two [512, 128], its biases and its positions.
FAMILIES = {"gpt2": {}, "llama": {"ffn": 350}}


def main():
    options = shakespeare.parse_options(__doc__)
    bench = Benchmark("families", ["family", "seeds", "validation loss", "target", "of each seed"],
                      fresh=options.fresh)
    text = results.file_digest(options.text)
    target = None
    with contextlib.ExitStack() as stack:
        cluster = shakespeare.LazyCluster(options.text, 1, stack)
        for family, model in FAMILIES.items():
            losses = [bench.measure(
                {"family": family, "seed": seed, "steps": options.steps, "text": text} | model,
                lambda: shakespeare.train(cluster.get(), f"{family}-{seed}", options.steps,
                                          stages=1, family=family, seed=seed, **model))["loss"]
                for seed in SEEDS]
            mean = statistics.mean(losses)
            bench.row(family, len(SEEDS), *Figure(mean, target, ".4f").cells(),
                      ", ".join(f"{loss:.4f}" for loss in losses))
            target = AtMost(mean)
    bench.finish()


if __name__ == "__main__":
    main()

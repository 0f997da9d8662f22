#!/usr/bin/env python3
# bench: learns --text FILE   validation loss in nanoGPT's CPU setting, 1 and 4 stages (1.90)
"""Trains nanoGPT's published CPU setting for Shakespeare and prints the loss over the whole
validation split, the last tenth of the text. nanoGPT's README gives 1.88 for it (estimated on 20
random batches, on characters; here every byte is a token).
"""

import contextlib

import results
import shakespeare
from results import AtMost, Benchmark, Figure

TARGET = AtMost(1.90)


def main():
    options = shakespeare.parse_options(__doc__)
    bench = Benchmark("learns", ["stages", "validation loss", "target", "tokens/s", "weights"],
                      fresh=options.fresh)
    text = results.file_digest(options.text)
    with contextlib.ExitStack() as stack:
        cluster = shakespeare.LazyCluster(options.text, 4, stack)
        for stages in (1, 4):
            result = bench.measure(
                {"stages": stages, "steps": options.steps, "text": text},
                lambda: shakespeare.train(cluster.get(), f"shakespeare-{stages}", options.steps,
                                          stages=stages))
            bench.row(stages, *Figure(result["loss"], TARGET, ".4f").cells(),
                      Figure(result["rate"], style=".0f"), result["digest"][:16])
    bench.finish()


if __name__ == "__main__":
    main()

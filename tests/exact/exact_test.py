#!/usr/bin/env python3
"""Exactness with real processes: the exported weights are the same bits for every number of stages,
schedule, lossless codec, thread count, and for runs that were stopped or lost a worker on the way.
"""

import hashlib
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import Cluster, Failure, check_steps, run_cases, wait_for  # noqa: E402

STEPS = 20
FEW_STEPS = 6
GRAPH = Path(__file__).resolve().parent / "skip_graph.json"


class Comparison:
    """Every digest must equal the first."""

    def __init__(self, what):
        self.what = what
        self.reference = None
        self.count = 0

    def add(self, label, digest):
        self.count += 1
        if self.reference is None:
            self.reference = digest
        print(f"{digest[:16]}  {self.what}: {label}", flush=True)
        if digest != self.reference:
            raise Failure(f"{self.what}: {label} gave {digest}, expected {self.reference}")


def clipping_steps(lines, clip):
    return sum(line["gradient_norm"] > clip for line in lines)


def partitions(cluster, tied):
    """1 to 4 stages, both schedules and lossless codecs, on workers of different threads."""
    name = "tied" if tied == "true" else "untied"
    same = Comparison(name)
    for stages in (1, 2, 3, 4):
        for schedule in ("1f1b", "gpipe"):
            for codec in ("none", "zstd"):
                run = f"{name}-{stages}-{schedule}-{codec}"
                lines = cluster.train(run, tied=tied, stages=stages, schedule=schedule,
                                      codec=codec, steps=STEPS)
                check_steps(lines, STEPS)
                if clipping_steps(lines, 0.5) <= STEPS // 2:
                    raise Failure("clipping should be active in most steps")
                same.add(f"{stages} stages, {schedule}, {codec}", cluster.digest(run))
    return same


def stop_and_resume(cluster, same, tied):
    """Stopped in the middle, resumed with another number of stages."""
    run = f"stopped-{same.what}"
    cluster.start_run(run, stages=4, steps=STEPS, tied=tied)
    cluster.wait_step(run, 3)
    cluster.ok("run", "stop", run, "--wait")
    shown = cluster.wait_state(run, "stopped")
    if not 3 <= shown["checkpoint_step"] < STEPS:
        raise Failure(f"stopped at {shown['checkpoint_step']}, not in the middle")
    cluster.ok("run", "resume", run, "--stages", 2, "--wait")
    cluster.wait_state(run, "done")
    check_steps(cluster.json_lines("run", "watch", run), STEPS)
    same.add(f"stopped at {shown['checkpoint_step']}, 4 then 2 stages", cluster.digest(run))


def kill_and_resume(cluster, same, threads):
    """A worker killed in the middle; resumed from the checkpoint with another number of stages."""
    cluster.start_run("killed", stages=3, steps=STEPS, every=4)
    wait_for("a checkpoint", lambda: cluster.show("killed")["checkpoint_step"] >= 4)
    victim = cluster.show("killed")["stages"][1]["node"]
    cluster.kill(victim, signal.SIGKILL)
    shown = cluster.wait_state("killed", "interrupted", "done")
    if shown["state"] == "done":
        raise Failure("the run ended before its worker was killed")
    cluster.start_worker(victim, threads=threads)
    cluster.wait_for_nodes(4)
    cluster.ok("run", "resume", "killed", "--stages", 4, "--wait")
    cluster.wait_state("killed", "done")
    check_steps(cluster.json_lines("run", "watch", "killed"), STEPS)
    same.add(f"killed after {shown['step']}, 3 then 4 stages", cluster.digest("killed"))


def fingerprint(lines):
    """Of every loss and gradient norm, to the last bit: weights that differ show in both."""
    text = json.dumps([[line["loss"], line["gradient_norm"]] for line in lines])
    return hashlib.sha256(text.encode()).hexdigest()


def models(cluster):
    """Llama with grouped queries and dropout, tied and not, and a user's graph whose edge skips
    stages: each over 1 to 4 stages, with and without recomputation, in pairs with the schedule."""
    pairs = ((1, "1f1b", "never"), (2, "gpipe", "always"), (3, "1f1b", "always"),
             (4, "gpipe", "never"))
    kinds = {"llama-tied": dict(family="llama", kv_heads=2, dropout=0.1, tied="true"),
             "llama": dict(family="llama", kv_heads=1, dropout=0.1, tied="false"),
             "graph": dict(graph=GRAPH)}
    count = 0
    for name, options in kinds.items():
        same = Comparison(name)
        for stages, schedule, recompute in pairs:
            lines = cluster.train(f"{name}-{stages}", stages=stages, schedule=schedule,
                                  recompute=recompute, steps=FEW_STEPS, **options)
            check_steps(lines, FEW_STEPS)
            same.add(f"{stages} stages, {schedule}, recompute {recompute}", fingerprint(lines))
        count += same.count
    return count


def documents(cluster):
    """Sequences that end with their document, from a Megatron pair that `data prepare` makes: the
    gradient is the mean over the tokens that count, whoever counts them."""
    cluster.ok("data", "prepare", "text.txt", "--tokenizer", "bytes", "--documents", "lines",
               "--format", "megatron", "--to", "lines")
    counts = set()
    total = 0
    for mode in ("masked", "separate"):
        same = Comparison(f"documents {mode}")
        for stages in (1, 2, 4):
            run = f"{mode}-{stages}"
            lines = cluster.train(run, train="lines", tokenizer="auto", documents=mode,
                                  stages=stages, steps=FEW_STEPS)
            check_steps(lines, FEW_STEPS)
            counts |= {line["tokens"] for line in lines}
            same.add(f"{stages} stages", fingerprint(lines))
        total += same.count
    if max(counts) >= 8 * 32 or len(counts) < 5:
        raise Failure(f"every token counted: {counts}")
    return total


def four_workers():
    """Of different numbers of threads, on two sites."""
    cluster = Cluster()
    cluster.start(4, threads=[1, 2, 1, 3])
    return cluster


def tied():
    """A tied head: every partition, stopped, killed, and on workers of two threads each."""
    with four_workers() as cluster:
        same = partitions(cluster, "true")
        stop_and_resume(cluster, same, "true")
        kill_and_resume(cluster, same, threads=2)
    with Cluster() as cluster:
        cluster.start(2, threads=[2, 2])
        for stages in (1, 2):
            run = f"two-threads-{stages}"
            cluster.train(run, stages=stages, steps=STEPS)
            same.add(f"{stages} stages of two threads each", cluster.digest(run))
    print(f"exact: {same.count} runs, equal bits")


def untied():
    """An untied head: every partition, and stopped."""
    with four_workers() as cluster:
        same = partitions(cluster, "false")
        stop_and_resume(cluster, same, "false")
    print(f"exact: {same.count} runs, equal bits")


def other_models():
    """Llama and a user's graph, with dropout and recomputation."""
    with four_workers() as cluster:
        print(f"exact: {models(cluster)} runs, equal bits")


def masked_documents():
    """Sequences that end with their document."""
    with four_workers() as cluster:
        print(f"exact: {documents(cluster)} runs, equal bits")


CASES = (tied, untied, other_models, masked_documents)


if __name__ == "__main__":
    run_cases(CASES)

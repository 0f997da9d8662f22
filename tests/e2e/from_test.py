#!/usr/bin/env python3
"""Runs that begin with the weights of a Hugging Face folder, with real daemons: the checkpoint of
step 0 is shown, survives every process, and training from it has the bits of an undisturbed run.
"""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Cluster, Failure, run_cases  # noqa: E402

STEPS = 60


def lost_before_the_first_checkpoint():
    """Coordinator and workers are killed before any checkpoint but the first; the run resumes from
    step 0 though the folder is gone."""
    with Cluster() as cluster:
        cluster.start(2)
        cluster.train("origin", family="llama", hidden=64, steps=3)
        cluster.ok("checkpoint", "export", "origin", "--to", "given")
        cluster.train("whole", model_from="given", steps=STEPS)
        cluster.start_run("lost", model_from="given", steps=STEPS)
        shutil.rmtree(cluster.folder / "given")
        cluster.wait_step("lost", 2)
        for name in ("coordinator", "w1", "w2"):
            cluster.kill(name)
        cluster.start(2)
        shown = cluster.wait_state("lost", "interrupted", seconds=30)
        print(f"  {shown['reason']}", flush=True)
        if not shown["has_checkpoint"] or shown["checkpoint_step"] != 0:
            raise Failure(f"no checkpoint of step 0: {shown}")
        if "checkpoint  step 0\n" not in cluster.ok("run", "show", "lost"):
            raise Failure(f"not shown: {cluster.ok('run', 'show', 'lost')}")
        if [line["step"] for line in cluster.json_lines("checkpoint", "ls", "lost")] != [0]:
            raise Failure(f"listed: {cluster.ok('checkpoint', 'ls', 'lost')}")
        cluster.ok("run", "resume", "lost")
        cluster.wait_state("lost", "done")
        if cluster.digest("lost") != cluster.digest("whole"):
            raise Failure("the resumed run has other weights than the undisturbed one")


if __name__ == "__main__":
    run_cases([lost_before_the_first_checkpoint])

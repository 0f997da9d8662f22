#!/usr/bin/env python3
"""Several replicas of a stage with real daemons: exact ones have the bits of one process, any split
has the same bits every time, and a replica that dies is named and the run goes on without it.
"""

import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Cluster, Failure, check_steps, run_cases, wait_for  # noqa: E402

STEPS = 8


def start(cluster, workers, trusted=True):
    """Workers of one site, of different speed."""
    cluster.start_coordinator()
    for w in range(workers):
        cluster.start_worker(f"w{w + 1}", threads=1 + w % 2,
                             extra="trusted_network: true\n" if trusted else "")
    cluster.wait_for_nodes(workers)


def groups(cluster, run):
    """(stage, replica) of every device group, as the run shows them."""
    return [(s["stage"], s["replica"]) for s in cluster.show(run)["stages"]]


def exact_replicas():
    """One process, two and four replicas, with and without stages: equal bits, equal losses."""
    with Cluster() as cluster:
        start(cluster, 4)
        first, losses = None, None
        for stages, replicas in ((1, "1"), (1, "2"), (1, "4"), (2, "2"), (2, "[1, 2]"), (4, "1")):
            run = f"exact-{stages}-{'-'.join(c for c in replicas if c.isdigit())}"
            lines = cluster.train(run, stages=stages, replicas=replicas, exact_replicas="true",
                                  steps=STEPS, evaluate_every=4, hidden=64)
            check_steps(lines, STEPS)
            shown = [(line["loss"], line.get("validation_loss")) for line in lines]
            digest = cluster.digest(run)
            print(f"  {digest[:16]} {run} on {groups(cluster, run)}", flush=True)
            first, losses = first or digest, losses or shown
            if digest != first or shown != losses:
                raise Failure(f"{run} has other bits than one process: {shown}, {losses}")


def same_every_time():
    """An uneven split that is not exact: the same cluster gives the same bits, near one process."""
    with Cluster() as cluster:
        start(cluster, 3)
        options = dict(stages=1, steps=STEPS, hidden=64)
        one = cluster.train("one", replicas="1", **options)
        digests = set()
        for run in ("first", "second"):
            lines = cluster.train(run, replicas="3", **options)
            check_steps(lines, STEPS)
            digests.add(cluster.digest(run))
            for line, expected in zip(lines, one):
                if abs(line["loss"] - expected["loss"]) > 1e-4 * expected["loss"]:
                    raise Failure(f"{line} is not near {expected}")
        if len(digests) != 1:
            raise Failure("the same cluster gave other bits the second time")


def killed_replica():
    """SIGKILL in the middle of a step: interrupted within the lease with node, stage and replica;
    the run resumes with another number of replicas, and with as many when the node is back."""
    with Cluster() as cluster:
        start(cluster, 3)
        cluster.start_run("k", stages=1, replicas="3", steps=100000, every=5)
        wait_for("a checkpoint", lambda: cluster.show("k")["checkpoint_step"] >= 5)
        shown = cluster.show("k")
        victim = next(s["node"] for s in shown["stages"] if s["replica"] == 2)
        since = time.monotonic()
        cluster.kill(victim)
        shown = cluster.wait_state("k", "interrupted", seconds=10)
        took = time.monotonic() - since
        print(f"  shown after {took:.2f} s: {shown['reason']}", flush=True)
        if took > 5 or victim not in shown["reason"] or "stage 0 replica 2" not in shown["reason"]:
            raise Failure(f"after {took:.1f} s: {shown['reason']}")
        before = shown["checkpoint_step"]
        refused = cluster.command("run", "resume", "k")
        if refused.returncode == 0 or "pipeline.replicas asks for 3" not in refused.stderr:
            raise Failure(f"two nodes cannot hold three replicas: {refused.stderr}")
        cluster.ok("run", "resume", "k", "--replicas", 2)
        cluster.wait_step("k", before + 3)
        if groups(cluster, "k") != [(0, 0), (0, 1)]:
            raise Failure(f"resumed on {groups(cluster, 'k')}")
        cluster.start_worker(victim, extra="trusted_network: true\n")
        cluster.wait_for_nodes(3)
        cluster.ok("run", "stop", "k", "--wait")
        stopped = cluster.wait_state("k", "stopped")["checkpoint_step"]
        cluster.ok("run", "resume", "k", "--replicas", 3)
        cluster.wait_step("k", stopped + 3)
        if len(groups(cluster, "k")) != 3:
            raise Failure(f"resumed on {groups(cluster, 'k')}")
        steps = [line["step"] for line in cluster.json_lines("checkpoint", "ls", "k")]
        if not steps or min(steps) < 5:
            raise Failure(f"checkpoints of steps {steps}")


def hanging_replica():
    """SIGSTOP: its peers wait in the collective until the lease ends and the run is interrupted."""
    with Cluster(lease="3s") as cluster:
        start(cluster, 2)
        cluster.start_run("h", stages=1, replicas="2", steps=100000)
        shown = cluster.wait_step("h", 2)
        victim = shown["stages"][1]["node"]
        since = time.monotonic()
        cluster.kill(victim, signal.SIGSTOP)
        shown = cluster.wait_state("h", "interrupted", seconds=10)
        took = time.monotonic() - since
        print(f"  shown after {took:.2f} s: {shown['reason']}", flush=True)
        if took > 3 + 2 or victim not in shown["reason"]:
            raise Failure(f"after {took:.1f} s: {shown['reason']}")
        # The other is free again at once.
        cluster.train("after", stages=1, steps=3)
        cluster.kill(victim, signal.SIGCONT)
        cluster.wait_for_nodes(2)


def untrusted_network():
    """Replicas are refused, with the remedy, where the network is not said to be trusted."""
    with Cluster() as cluster:
        start(cluster, 2, trusted=False)
        done = cluster.command("run", "start", cluster.write_run("u", stages=1, replicas="2"))
        if done.returncode != 1 or "trusted_network: true" not in done.stderr:
            raise Failure(f"{done.returncode}: {done.stderr}")


CASES = (exact_replicas, same_every_time, killed_replica, hanging_replica, untrusted_network)


if __name__ == "__main__":
    run_cases(CASES)

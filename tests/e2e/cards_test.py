#!/usr/bin/env python3
"""Workers that own a card, on emulated ones: training alone and beside a processor, cards that are
not there or taken, and cards that fail.
"""

import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cards import CardCluster  # noqa: E402
from harness import Failure, check_steps, run_cases, wait_for  # noqa: E402

# Emulated kernels take their time.
TINY = dict(layers=2, hidden=32, heads=2, context=16, global_batch=4, micro_batch=1)


def close(what, one, other, bound):
    if not abs(one - other) <= bound:
        raise Failure(f"{what}: {one} and {other} differ by more than {bound}")


def trained_card():
    """A worker with a card trains a run to its end, as a processor does; `node` shows the card."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        cluster.start_card_worker("c1")
        cluster.wait_for_nodes(1)
        node = cluster.node("c1")
        card = node["device"]["card"]
        if (node["device"]["kind"], node["device"]["name"]) != ("cuda", "emulated"):
            raise Failure(f"not a card: {node}")
        if card["compute_capability"] != "9.0" or not card["uuid"].startswith("GPU-"):
            raise Failure(f"not its facts: {card}")
        shown = cluster.ok("node", "show", "c1")
        for part in ("cuda: emulated", "9.0", card["uuid"], "of the card's 1.0 GiB"):
            if part not in shown:
                raise Failure(f"no '{part}' in: {shown}")
        if "emulated" not in cluster.ok("node", "ls"):
            raise Failure(f"no device in: {cluster.ok('node', 'ls')}")
        steps = cluster.train("card", steps=4, **TINY)
        check_steps(steps, 4)
        cluster.kill("c1", signal.SIGTERM)
        cluster.start_worker("w1")
        cluster.wait_for_nodes(1)
        for step, other in zip(steps, cluster.train("processor", steps=4, **TINY)):
            close(f"loss of step {step['step']}", step["loss"], other["loss"], 1e-4)


def card_beside_processor():
    """A run whose file allows several numeric classes trains on a card and a processor at once."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        cluster.start_card_worker("c1")
        cluster.start_worker("w1")
        cluster.wait_for_nodes(2)
        refused = cluster.command("run", "start", cluster.write_run("one", steps=4, stages=2,
                                                                    **TINY))
        if refused.returncode != 1 or "class" not in refused.stderr:
            raise Failure(f"two classes were accepted: {refused.stderr}")
        check_steps(cluster.train("mixed", steps=4, stages=2, numeric_class="any", **TINY), 4)
        shown = cluster.ok("run", "show", "mixed")
        if "The bits depend on where each stage runs: nodes of 2 numeric classes" not in shown:
            raise Failure(f"it is not said that this is inexact: {shown}")


def missing_cards():
    """What is wrong with a card, a driver or a build is said, before anything has begun."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        wait_for("the coordinator answers",
                 lambda: cluster.command("node", "ls").returncode == 0)
        for machine, card, parts in (
                (dict(driver=0), 0, ["no NVIDIA driver is loaded"]),
                (dict(driver=12040), 0, ["the driver supports CUDA 12.4", "made with CUDA 13.0"]),
                (dict(devices=0), 0, ["cudaErrorNoDevice", "sees no card"]),
                (dict(devices=2), 2, ["cuda:2: there is no such card", "cuda:0 to cuda:1"]),
                (dict(capability=61), 0, ["compute capability 6.1", "8.0, 9.0 and later"]),
                (dict(memory_mebibytes=300), 0, ["cuda:0 has no memory left", "nvidia-smi"]),
                (dict(breaks="/"), 0, ["cudaErrorIllegalAddress"])):
            cluster.start_card_worker("c1", card, **machine)
            cluster.ended("c1", 1, *parts)
        for extra, part in (("threads: 2\n", "'threads': is for workers that compute on"),
                            ("share_device: true\n", "needs 'memory'")):
            cluster.start_card_worker("c1", extra=extra)
            cluster.ended("c1", 2, part)
        if cluster.nodes():
            raise Failure(f"a worker joined all the same: {cluster.nodes()}")
        version = cluster.printed("longhauld", "--version")
        if "no CUDA" in version:
            cluster._spawn("worker", "c1", cluster.card_config("c1"))
            cluster.ended("c1", 1, "cuda:0: this build has no CUDA; build with ./dev build --cuda")
        if "CUDA 13.0 for compute capability" not in cluster.printed("longhauld_emulated",
                                                                     "--version"):
            raise Failure("the build does not say what it has")


def claimed_cards():
    """A card has one worker, until that ends in any way; workers that all say so share one."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        cluster.start_card_worker("c1", devices=2)
        cluster.wait_for_nodes(1)
        cluster.start_card_worker("c2", devices=2)
        cluster.ended("c2", 1, f"is used by process {cluster.processes['c1'].pid} (",
                      "c1.yaml)", "share_device: true")
        cluster.start_card_worker("c2", card=1, devices=2)
        cluster.wait_for_nodes(2)
        cluster.kill("c2")
        cluster.kill("c1")
        shared = "share_device: true\nmemory: 256 MiB\n"
        cluster.start_card_worker("c3", extra=shared, devices=2)
        cluster.start_card_worker("c4", extra=shared, devices=2)
        for name in ("c3", "c4"):
            wait_for(f"{name} joins", lambda: any(node["node"] == name and
                                                  node["state"] == "connected"
                                                  for node in cluster.nodes()))
        if cluster.node("c3")["memory_bytes"] != 256 << 20:
            raise Failure(f"not the memory that it may use: {cluster.node('c3')}")
        cluster.start_card_worker("c1", devices=2)
        cluster.ended("c1", 1, "is used by process")


def failing_card():
    """A kernel that fails takes the worker out with the reason; the run goes on once it is back."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        breaks = cluster.folder / "broken"
        cluster.start_card_worker("c1", breaks=breaks)
        cluster.wait_for_nodes(1)
        cluster.start_run("r", steps=200, every=2, **TINY)
        cluster.wait_step("r", 3)
        breaks.touch()
        reason = cluster.wait_state("r", "interrupted")["reason"]
        print(f"  {reason}", flush=True)
        if "cudaErrorIllegalAddress" not in reason or "c1" not in reason:
            raise Failure(f"not the reason: {reason}")
        cluster.ended("c1", 1, "of no more use; leaving", "cudaErrorIllegalAddress")
        cluster.start_card_worker("c1", breaks=breaks)
        cluster.ended("c1", 1, "cudaErrorIllegalAddress")
        breaks.unlink()
        cluster.start_card_worker("c1", breaks=breaks)
        cluster.wait_for_nodes(1)
        cluster.ok("run", "resume", "r")
        cluster.wait_step("r", 5)


def lost_card():
    """A card whose memory fails, or that is lost, takes the worker out; until then it is shown."""
    with CardCluster() as cluster:
        cluster.start_coordinator()
        cluster.say("celsius 64\nuncorrected 1\n")
        cluster.start_card_worker("c1", **cluster.watched())
        cluster.wait_for_nodes(1)
        readings = wait_for("the card's readings", lambda: cluster.node("c1")["device"].get(
            "readings"))
        if (readings["temperature_celsius"], readings["power_watts"],
                readings["uncorrected_errors"]) != (64, 412.5, 1):
            raise Failure(f"not what the card tells: {readings}")
        shown = cluster.ok("node", "show", "c1")
        for part in ("580.65.06 (CUDA 13.0)", "64 °C", "412 W"):
            if part not in shown:
                raise Failure(f"no '{part}' in: {shown}")
        cluster.start_run("r", steps=100000, every=0, **TINY)
        cluster.wait_step("r", 1)
        cluster.say("celsius 64\nuncorrected 2\nrows_pending 1\n")
        reason = cluster.wait_state("r", "interrupted")["reason"]
        print(f"  {reason}", flush=True)
        if "c1" not in reason or "cuda:0" not in reason or "reset" not in reason:
            raise Failure(f"not the reason: {reason}")
        cluster.ended("c1", 1, "of no more use; leaving", "only after a reset")
        cluster.start_card_worker("c1", **cluster.watched())
        cluster.ended("c1", 1, "only after a reset")
        cluster.say("temperature 15\n")
        cluster.start_card_worker("c1", **cluster.watched())
        cluster.ended("c1", 1, "is lost")
        cluster.say("celsius 50\n")
        cluster.start_card_worker("c1", **cluster.watched())
        cluster.wait_for_nodes(1)


CASES = [trained_card, card_beside_processor, missing_cards, claimed_cards, failing_card, lost_card]


if __name__ == "__main__":
    run_cases(CASES)

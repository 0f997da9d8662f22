#!/usr/bin/env python3
"""The ordinary misfortunes: dead, hanging and cut-off workers, a restarted coordinator, drained and
signalled daemons. Each case is one function.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from daemon_status import Status  # noqa: E402
from harness import BIN, Cluster, Failure, Skipped, check_steps, run_cases, wait_for  # noqa: E402

LONG = dict(steps=100000, stages=2)


def expect_reason(shown, *parts):
    missing = [part for part in parts if part not in shown["reason"]]
    if missing:
        raise Failure(f"reason '{shown['reason']}' does not mention {missing}")


def check_others_healthy(cluster, lost):
    """Everybody but `lost` is connected, and a new run trains on them."""
    states = {n["node"]: n["state"] for n in cluster.nodes()}
    wrong = {n: s for n, s in states.items() if n != lost and s != "connected"}
    if wrong or len(states) < 2:
        raise Failure(f"not healthy: {wrong} of {states}")
    cluster.train(f"after-{lost}", steps=3, stages=1)


def interrupted_within(cluster, run, seconds, since):
    shown = cluster.wait_state(run, "interrupted", seconds=seconds + 5)
    took = time.monotonic() - since
    print(f"  shown after {took:.2f} s: {shown['reason']}", flush=True)
    if took > seconds:
        raise Failure(f"shown after {took:.1f} s, allowed are {seconds}")
    return shown


def killed_worker():
    """SIGKILL is shown within five seconds with node, stage, step and remedy."""
    with Cluster() as cluster:
        cluster.start(3)
        cluster.start_run("k", **LONG)
        shown = cluster.wait_step("k", 2)
        victim = shown["stages"][1]["node"]
        since = time.monotonic()
        cluster.kill(victim)
        shown = interrupted_within(cluster, "k", 5, since)
        expect_reason(shown, victim, "stage 1", "step", "longhaul run resume k")
        check_others_healthy(cluster, victim)


def hanging_worker():
    """SIGSTOP is shown within the lease (and the time to look)."""
    with Cluster(lease="3s") as cluster:
        cluster.start(3)
        cluster.start_run("h", **LONG)
        shown = cluster.wait_step("h", 2)
        victim = shown["stages"][0]["node"]
        since = time.monotonic()
        cluster.kill(victim, signal.SIGSTOP)
        shown = interrupted_within(cluster, "h", 3 + 2, since)
        expect_reason(shown, victim, "stage 0", "longhaul run resume h")
        check_others_healthy(cluster, victim)
        cluster.kill(victim, signal.SIGCONT)
        cluster.wait_for_nodes(3)


def broken_link():
    """A data link that breaks and heals within the wait costs nothing: same steps, same bits."""
    with Cluster() as cluster:
        cluster.start_coordinator()
        cluster.start_worker("w1", site="s1", proxied=True)
        cluster.start_worker("w2", site="s2", proxied=True)
        cluster.wait_for_nodes(2)
        options = dict(stages=2, steps=40)
        cluster.train("calm", **options)
        cluster.start_run("rough", **options)
        for step in (3, 8, 13):
            cluster.wait_step("rough", step)
            for proxy in cluster.proxies.values():
                proxy.cut()
            for proxy in cluster.proxies.values():
                proxy.heal()
            if cluster.show("rough")["step"] >= options["steps"]:
                raise Failure("the run was over before the link was cut")
        cluster.wait_state("rough", "done")
        check_steps(cluster.json_lines("run", "watch", "rough"), options["steps"])
        if cluster.digest("calm") != cluster.digest("rough"):
            raise Failure("the weights differ after the link broke")


def lost_link():
    """A data link that stays cut ends the run with peer, stage and step named."""
    with Cluster(lease="3s") as cluster:
        cluster.start_coordinator()
        cluster.start_worker("w1", site="s1", proxied=True)
        cluster.start_worker("w2", site="s2", proxied=True)
        cluster.wait_for_nodes(2)
        cluster.start_run("l", **LONG)
        cluster.wait_step("l", 2)
        since = time.monotonic()
        for proxy in cluster.proxies.values():
            proxy.freeze()
        shown = interrupted_within(cluster, "l", 3 + 3, since)
        expect_reason(shown, "stage", "step", "longhaul run resume l")
        if [n["state"] for n in cluster.nodes()] != ["connected"] * 2:
            raise Failure("the daemons should stay in the cluster")


def outlive_coordinator(how):
    """Training goes on without the coordinator; no step is lost or shown twice; same bits."""
    options = dict(steps=300, stages=2, every=80)
    with Cluster() as cluster:
        with Status(cluster.folder) as status:
            cluster.start(2)
        cluster.train("calm", **options)
        cluster.start_run("rough", **options)
        cluster.wait_step("rough", 10)
        before = cluster.show("rough")["step"]
        cluster.kill("coordinator", how)
        for worker in ("w1", "w2"):
            log = cluster.folder / f"{worker}.log"
            wait_for(f"{worker} says that it is alone",
                     lambda: "NOT PART OF THE CLUSTER" in log.read_text())
        wait_for("training goes on without the coordinator",
                 lambda: len(status.steps_alone("rough", 1)) > 1)
        cluster.start_coordinator()
        wait_for("the coordinator answers", cluster.nodes, 20)
        shown = cluster.wait_state("rough", "running")
        epoch = shown["epoch"]
        shown = cluster.wait_state("rough", "done")
        if shown["epoch"] != epoch:
            raise Failure("the run was planned again instead of adopted")
        check_steps(cluster.json_lines("run", "watch", "rough"), options["steps"])
        print(f"  killed at step {before}, adopted, done at {shown['step']}", flush=True)
        if cluster.digest("calm") != cluster.digest("rough"):
            raise Failure("the weights differ after the coordinator's restart")


def restarted_coordinator():
    """Its process is killed in the midst of a run, and started again."""
    outlive_coordinator(signal.SIGKILL)


def terminated_coordinator():
    """As a service manager restarts it: it ends by itself, and takes nobody for lost."""
    outlive_coordinator(signal.SIGTERM)


def drained_node():
    """A drained node leaves at a step boundary; the run goes on without it, same bits."""
    options = dict(steps=60, stages="auto")
    with Cluster() as cluster:
        cluster.start(3)
        cluster.train("calm", **options)
        cluster.start_run("moved", **options)
        shown = cluster.wait_step("moved", 5)
        if len(shown["stages"]) < 2:
            raise Failure("the run should have several stages")
        victim = shown["stages"][-1]["node"]
        cluster.ok("node", "drain", victim)
        wait_for("another plan", lambda: cluster.show("moved")["epoch"] != shown["epoch"])
        shown = cluster.wait_state("moved", "done")
        if victim in [stage["node"] for stage in shown["stages"]]:
            raise Failure(f"{victim} was drained, but the run still used it")
        check_steps(cluster.json_lines("run", "watch", "moved"), 60)
        if cluster.digest("calm") != cluster.digest("moved"):
            raise Failure("the weights differ after the drain")


def signalled_worker():
    """SIGTERM drains a worker: the run continues without it; nothing is lost."""
    with Cluster() as cluster:
        cluster.start(3)
        cluster.start_run("t", steps=400, stages=2, hidden=64)
        shown = cluster.wait_step("t", 3)
        victim = shown["stages"][1]["node"]
        cluster.kill(victim, signal.SIGTERM)
        if cluster.processes[victim].returncode != 0:
            raise Failure(f"{victim} ended with {cluster.processes[victim].returncode}")
        after = cluster.wait_state("t", "done")
        if after["epoch"] == shown["epoch"]:
            raise Failure("the run was over before its worker left")
        check_steps(cluster.json_lines("run", "watch", "t"), 400)


def twice_signalled_worker():
    """While the coordinator is away, SIGTERM says what it waits for; a second one ends the wait."""
    with Cluster() as cluster:
        cluster.start(2)
        cluster.start_run("t", **LONG)
        cluster.wait_step("t", 2)
        cluster.kill("coordinator", signal.SIGSTOP)  # it accepts connections and does not answer
        worker = cluster.processes["w1"]
        worker.send_signal(signal.SIGTERM)
        log = cluster.folder / "w1.log"
        wait_for("it says what it waits for", lambda: "waiting before leaving" in log.read_text())
        since = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        worker.wait(timeout=60)
        took = time.monotonic() - since
        print(f"  left after {took:.2f} s", flush=True)
        if worker.returncode != 0 or took > 5:
            raise Failure(f"ended with {worker.returncode} after {took:.1f} s")


def damage(cluster, folder, kept=()):
    """Flips a bit of every shard under `folder` that is not in `kept`."""
    for shard in (cluster.folder / folder).rglob("shards/*"):
        if shard.name in kept:
            continue
        content = bytearray(shard.read_bytes())
        content[len(content) // 2] ^= 1
        shard.chmod(0o600)
        shard.write_bytes(content)


def corrupt_shards():
    """A damaged shard on a node is fetched again; damaged everywhere, the run says which."""
    with Cluster() as cluster:
        cluster.start(2)
        cluster.start_run("c", steps=400, stages=2, every=5)
        wait_for("a checkpoint", lambda: cluster.show("c")["checkpoint_step"] >= 5)
        cluster.ok("run", "stop", "c", "--wait")
        damage(cluster, "w1")
        damage(cluster, "w2")
        cluster.ok("run", "resume", "c")
        cluster.wait_step("c", cluster.show("c")["checkpoint_step"] + 2)
        cluster.ok("run", "stop", "c", "--wait")
        for folder in ("w1", "w2", "coordinator"):
            damage(cluster, folder)
        done = cluster.command("run", "resume", "c", "--wait")
        if done.returncode == 0:
            raise Failure("a run resumed from damaged shards")
        expect_reason(cluster.show("c"), "shard", "no older one is left", "--step")
        print(f"  {cluster.show('c')['reason']}", flush=True)
        done = cluster.command("checkpoint", "export", "c", "--to", "never")
        if done.returncode == 0 or (cluster.folder / "never" / "model.safetensors").exists():
            raise Failure("a damaged checkpoint was exported")


def older_checkpoint():
    """The newest checkpoint is damaged everywhere: the run goes back to the one before by itself,
    says so, and gets to the same bits."""
    options = dict(steps=400, stages=2, every=10, hidden=64)
    with Cluster() as cluster:
        cluster.start(2)
        cluster.train("calm", **options)
        cluster.start_run("back", **options)
        wait_for("two checkpoints", lambda: cluster.show("back")["checkpoint_step"] >= 20)
        cluster.ok("run", "stop", "back", "--wait")
        listed = cluster.json_lines("checkpoint", "ls", "back")
        newest, older = listed[-1]["step"], listed[-2]["step"]
        manifests = cluster.folder / "coordinator" / "checkpoints" / "manifests" / "back"
        shards = [s["sha256"] for m in manifests.glob("*.json") if m.stem != str(newest)
                  for s in json.loads(m.read_text())["shards"]]
        for folder in ("w1", "w2", "coordinator"):
            damage(cluster, folder, kept=shards)
        cluster.ok("run", "resume", "back")
        told = f"step {newest} is damaged"
        shown = wait_for("the run says so",
                         lambda: told in cluster.show("back")["reason"] and cluster.show("back"))
        print(f"  {shown['reason']}", flush=True)
        expect_reason(shown, "shard", f"resumed from step {older}")
        cluster.wait_state("back", "done")
        check_steps(cluster.json_lines("run", "watch", "back"), options["steps"])
        if cluster.digest("calm") != cluster.digest("back"):
            raise Failure("the weights differ after the run went back")
        done = cluster.command("run", "resume", "back", "--step", "7")
        if done.returncode == 0:
            raise Failure("a run that is done was resumed")


class SmallDisk:
    """A file system of a few megabytes at `folder`; needs root."""

    def __init__(self, folder, size):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)

    def fill(self):
        with open(self.folder / "ballast", "wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError:
                pass

    def free(self):
        (self.folder / "ballast").unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)


def full_disk():
    """The coordinator's disk fills up: the run goes on and says so; the older checkpoint stays
    good; once there is room again checkpoints succeed, and no step is missing."""
    if os.geteuid() != 0:
        raise Skipped("mounting a small disk needs root")
    with Cluster() as cluster, SmallDisk(cluster.folder / "coordinator", "64m") as disk:
        cluster.start(2)
        cluster.start_run("d", steps=3000, stages=2, every=10)
        first = wait_for("a checkpoint", lambda: cluster.show("d")["checkpoint_step"])
        disk.fill()
        wait_for("the trouble is shown", lambda: "space" in cluster.show("d")["reason"], 60)
        shown = cluster.show("d")
        print(f"  {shown['reason']}", flush=True)
        if shown["state"] != "running" or shown["checkpoint_step"] < first:
            raise Failure(f"the run should go on with its checkpoint: {shown}")
        stuck = shown["checkpoint_step"]
        disk.free()
        wait_for("a newer checkpoint", lambda: cluster.show("d")["checkpoint_step"] > stuck)
        cluster.ok("run", "stop", "d", "--wait")
        watched = cluster.command("run", "watch", "d", "--output", "json")
        if watched.returncode != 1 or "run d is stopped" not in watched.stderr:
            raise Failure(f"a stopped run is not done: {watched}")
        check_steps(map(json.loads, watched.stdout.splitlines()), cluster.show("d")["step"])
        cluster.digest("d")


def stopped_cluster():
    """`longhaul down` in the middle of a run says what it stops and where the run stands."""
    with Cluster() as cluster:
        folder = cluster.folder / "local"
        here = ("--dir", folder)
        cluster.ok("up", "--workers", 2, "--sites", 2, "--detach", *here)
        try:
            cluster.ok("run", "start", cluster.write_run("s", steps=3000, stages=2), *here)
            wait_for("some steps", lambda: cluster.json_lines("run", "show", "s", *here)[0]["step"])
            with open(cluster.folder / "watched", "w") as watched:
                watching = subprocess.Popen([BIN / "longhaul", "run", "watch", "s", *here],
                                            stdout=watched, stderr=watched)
                wait_for("the watch shows steps", (cluster.folder / "watched").read_text)
        finally:
            said = cluster.ok("down", *here, timeout=60)
        print(f"  {said}", flush=True)
        watched = (cluster.folder / "watched").read_text()
        if watching.wait(timeout=60) != 1 or "longhaul: run s is stopped: " not in watched:
            raise Failure(f"the watch ended with {watching.returncode}: {watched}")
        for part in ("stopping coordinator, worker-1, worker-2", "run s is stopped at step ",
                     "of 3000 (checkpoint of step ", "longhaul run resume s"):
            if part not in said:
                raise Failure(f"no '{part}' in: {said}")
        if "nothing" not in cluster.ok("down", *here):
            raise Failure("a cluster that was stopped is stopped again")


def half_dead_cluster():
    """A daemon of a local cluster died: `up` and `doctor` name it and what to do, and it works."""
    with Cluster() as cluster:
        folder = cluster.folder / "local"
        here = ("--dir", folder)
        cluster.ok("up", "--workers", 2, "--detach", *here)
        try:
            known = json.loads((folder / "cluster.json").read_text())["processes"]
            os.kill(next(p["pid"] for p in known if p["name"] == "coordinator"), signal.SIGKILL)
            told = wait_for("`up` tells", lambda: [text for text in [
                cluster.command("up", *here).stderr] if "dead" in text])[0]
            print(f"  {told}", flush=True)
            for part in ("only worker-1, worker-2 still runs", "coordinator is dead",
                         f"longhaul down --dir {folder}", f"longhaul up --dir {folder}"):
                if part not in told:
                    raise Failure(f"no '{part}' in: {told}")
            examined = cluster.command("doctor", *here, "--output", "json")
            found = [json.loads(line) for line in examined.stdout.splitlines()]
            bad = [each for each in found if each["verdict"] != "ok"]
            if examined.returncode != 1 or not bad or not all(each["remedy"] for each in bad):
                raise Failure(f"no remedy: {found}")
        finally:
            cluster.ok("down", *here, timeout=60)
        cluster.ok("up", "--workers", 2, "--detach", *here)
        cluster.ok("down", *here, timeout=60)


CASES = [killed_worker, hanging_worker, broken_link, lost_link, restarted_coordinator,
         terminated_coordinator, drained_node, signalled_worker, twice_signalled_worker,
         corrupt_shards, older_checkpoint, full_disk, stopped_cluster,
         half_dead_cluster]


if __name__ == "__main__":
    run_cases(CASES)

#!/usr/bin/env python3
"""What must be refused: bad files, bad requests, bad circumstances. Every refusal has the right
exit code, says what is wrong and where, and leaves nothing half-made.
"""

import socket
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from bad_files import (bad_data, bad_graph_sizes, bad_preparation, bad_run_files,  # noqa: E402
                       not_files)
from bad_models import bad_models  # noqa: E402
from harness import BIN, Cluster, Failure, wait_for  # noqa: E402
from refusals import (AS_ANYONE, BAD_INPUT, FAILED, UNREACHABLE, Checker,  # noqa: E402
                      daemon_refused)


def bad_counts(check):
    """Where a command takes a count, what is negative, broken or too long is bad usage."""
    generate = ("generate", "--checkpoint", "taken", "--prompt", "x")
    for command, option in ((("run", "resume", "twice"), "--step"),
                            (("run", "resume", "twice"), "--stages"),
                            (("run", "resume", "twice"), "--replicas"),
                            (("run", "watch", "twice"), "--after"),
                            (("checkpoint", "export", "twice", "--to", "x"), "--step"),
                            (("up",), "--workers"), (("up",), "--sites"), (("up",), "--threads"),
                            (("down",), "--patience"), (generate, "--tokens"),
                            (generate, "--top-k"), (generate, "--seed"), (generate, "--threads")):
        for value in (-1, 10 ** 30) if command[0] != "up" else (-1, "1.5", "many"):
            check.refused(f"{' '.join(command[:2])} {option} {value}", BAD_INPUT,
                          [f"{option}.*(must be a whole number|not in range)"], *command, option,
                          value)


def bad_requests(check):
    cluster = check.cluster
    check.refused("no such file", BAD_INPUT, ["absent.yaml"], "run", "start", "absent.yaml")
    check.refused("no such run", BAD_INPUT, ["ghost"], "run", "show", "ghost")
    check.refused("stop no such run", BAD_INPUT, ["ghost"], "run", "stop", "ghost")
    check.refused("resume no such run", BAD_INPUT, ["ghost"], "run", "resume", "ghost")
    check.refused("watch no such run", BAD_INPUT, ["ghost"], "run", "watch", "ghost")
    check.refused("no such node", BAD_INPUT, ["ghost"], "node", "show", "ghost")
    check.refused("drain no such node", BAD_INPUT, ["ghost"], "node", "drain", "ghost")
    check.refused("export of no such run", BAD_INPUT, ["ghost"], "checkpoint", "export", "ghost",
                  "--to", "x")
    check.refused("unknown command", BAD_INPUT, [], "rum", "start")
    check.refused("help of an unknown command", BAD_INPUT, ["'rum'", "'run'"], "rum", "--help")
    check.refused("help of an unknown subcommand", BAD_INPUT, ["'stat'", "'start'"], "run",
                  "--help", "stat")
    check.refused("missing argument", BAD_INPUT, ["file"], "run", "start")
    check.refused("wrong option value", BAD_INPUT, ["output"], "run", "ls", "--output", "xml")
    check.refused("odd name", BAD_INPUT, ["a"], "run", "show", "a\x1b[31m/../b")
    check.refused("no such model folder", BAD_INPUT, ["nowhere"], "generate", "--checkpoint",
                  "nowhere", "--prompt", "x")
    cluster.train("twice", steps=2)
    check.refused("one name twice", BAD_INPUT, ["twice", "done"], "run", "start",
                  cluster.folder / "twice.yaml")
    check.refused("resume of a done run", FAILED, ["done"], "run", "resume", "twice")
    check.refused("no such step", BAD_INPUT, ["99", "2"], "checkpoint", "export", "twice", "--to",
                  "x", "--step", 99)
    bad_export_targets(check)
    check.refused("more stages than nodes", FAILED, ["stages", "node"], "run", "start",
                  cluster.write_run("wide", stages=4))
    if len(cluster.json_lines("run", "ls")) != 1:
        raise Failure(f"a refused run was kept: {cluster.ok('run', 'ls')}")


def bad_export_targets(check):
    """Refused before anything is fetched, and nothing is left behind."""
    cluster = check.cluster
    cluster.ok("checkpoint", "export", "twice", "--to", "taken")
    (cluster.folder / "file").write_text("x")
    (cluster.folder / "locked").mkdir()
    (cluster.folder / "locked").chmod(0o500)
    before = sorted(cluster.folder.rglob("*"))
    for what, target, pattern in (("a folder that is not empty", "taken", "--overwrite"),
                                  ("a file", "file", "not a folder"),
                                  ("below a file", "file/x", "Not a directory"),
                                  ("no parent", "absent/x", "absent: No such file"),
                                  ("not writable", "locked/x", "locked/x: Permission denied"),
                                  ("no name", "", "no name")):
        # No coordinator answers, and none is asked.
        check.refused(f"export to {what}", BAD_INPUT, [pattern], "checkpoint", "export", "twice",
                      "--to", target, "--coordinator", "127.0.0.1:1", prefix=AS_ANYONE)
    (cluster.folder / "locked").chmod(0o700)
    if sorted(cluster.folder.rglob("*")) != before:
        raise Failure("a refused export left something behind")
    cluster.ok("checkpoint", "export", "twice", "--to", "taken", "--overwrite")


def bad_generate(check):
    folder = check.cluster.folder
    check.cluster.ok("checkpoint", "export", "twice", "--to", "model")

    def refused(what, patterns, *arguments, prompt="a"):
        check.refused(what, BAD_INPUT, patterns, "generate", "--checkpoint", "model", "--prompt",
                      prompt, *arguments)

    for value in ("nan", "inf", "-1", "1e300", "warm", ""):
        refused(f"temperature {value}", ["temperature"], "--temperature", value)
    for value in (-1, "1.5", 2 ** 31, 10 ** 30):
        refused(f"top-k {value}", ["top-k"], "--top-k", value)
    for value in (-1, 2 ** 40, 10 ** 30):
        refused(f"tokens {value}", ["tokens"], "--tokens", value)
    refused("an empty prompt", ["prompt is empty"], prompt="")
    data = bytearray((folder / "model" / "model.safetensors").read_bytes())
    data[-4:] = struct.pack("<f", float("nan"))
    (folder / "model" / "model.safetensors").write_bytes(data)
    refused("a weight that is not a number", [r"model\.safetensors: tensor 'transformer\.", "nan"])


def bad_topologies(check):
    def refused(line, key, node="gigaflops: 9, memory_mebibytes: 4096", link=""):
        path = check.cluster.folder / "topology.yaml"
        path.write_text(f"nodes:\n  - {{name: a, site: x, {node}}}\n"
                        "  - {name: b, site: y, gigaflops: 9, memory_mebibytes: 4096}\n"
                        f"links:\n  - {{from: x, to: y{link}}}\n")
        check.refused(f"topology with {link or node}", BAD_INPUT,
                      [rf"topology\.yaml:{line}: ", key], "plan",
                      check.cluster.write_run("planned"), "--topology", path)

    for bad in ("0", "-1", ".nan", "nan", "inf", "1e300", "1e-300"):
        refused(2, "gigaflops", node=f"gigaflops: {bad}, memory_mebibytes: 4096")
        refused(2, "memory_mebibytes", node=f"gigaflops: 9, memory_mebibytes: {bad}")
        refused(5, "megabits_per_second", link=f", megabits_per_second: {bad}")
    for bad in ("-1", ".nan", "inf", "1e300"):
        refused(5, "latency_milliseconds", link=f", latency_milliseconds: {bad}")


def unwritable_output(check):
    """Every kind of output that cannot be written is an error, whoever makes it."""
    cluster = check.cluster
    topology = cluster.folder / "topology.yaml"
    topology.write_text("nodes: [{name: a, site: x, gigaflops: 9, memory_mebibytes: 4096}]\n")
    run = cluster.folder / "twice.yaml"
    generate = ("generate", "--checkpoint", "taken", "--prompt", "the", "--tokens", 3)
    commands = [("run", "ls"), ("run", "show", "twice"), ("run", "watch", "twice"), ("node", "ls"),
                ("node", "show", "w1"), ("plan", run, "--topology", topology), generate,
                ("checkpoint", "ls", "twice"), ("doctor",), ("version",)]
    for command in commands:
        for output in ("text", "json"):
            check.unwritable(*command, "--output", output)
    check.unwritable("--help")
    check.unwritable("run", "ls", "--help")
    check.unwritable("completion", "bash")


def bad_circumstances(check):
    cluster = check.cluster
    check.refused("no coordinator", UNREACHABLE, ["127.0.0.1:1"], "run", "ls", "--coordinator",
                  "127.0.0.1:1")
    wrong = cluster.folder / "wrong-token"
    wrong.write_text("f" * 32)
    wrong.chmod(0o600)
    check.refused("wrong token", FAILED, ["token"], "run", "ls", "--token-file", wrong)
    wrong.chmod(0o644)
    readable = [r"wrong-token' has mode 0644, so that other users may read", "chmod 0600"]
    check.refused("token that others can read", BAD_INPUT, readable, "run", "ls", "--token-file",
                  wrong)
    # The daemon says the same.
    daemon_refused(cluster, "token that others can read", "worker",
                   f"site: a\nfolder: {cluster.folder}/x\ncluster_token_file: {wrong}\n", readable,
                   code=BAD_INPUT)
    damaged = cluster.folder / "damaged"
    damaged.mkdir()
    (damaged / "cluster.json").write_text('{"schema": 1, "coordinator": "127.')
    for command in (("run", "ls"), ("up",), ("down",)):
        check.refused(f"damaged cluster.json: {command[0]}", BAD_INPUT,
                      ["damaged/cluster.json is damaged", "remove", "longhaul up --dir"], *command,
                      "--dir", damaged)


def bad_daemons(cluster):
    folder, token = cluster.folder, cluster.token
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        daemon_refused(cluster, "port in use", "coordinator",
                       f"listen: 127.0.0.1:{port}\nfolder: {folder}/x\n"
                       f"cluster_token_file: {token}\n", [str(port), "in use"])
    daemon_refused(cluster, "open without TLS", "coordinator",
                   f"listen: 0.0.0.0:0\nfolder: {folder}/x\n"
                   f"cluster_token_file: {token}\n", ["insecure: true", "refused.yaml:1"])
    daemon_refused(cluster, "misspelt key", "worker",
                   f"name: x\nsiet: a\nfolder: {folder}/x\n", ["refused.yaml:2", "siet", "site"])
    common = f"site: a\ncluster_token_file: {token}\n"
    daemon_refused(cluster, "memory without a unit", "worker",
                   f"{common}folder: {folder}/x\nmemory: 1\n",
                   ["refused.yaml:4: 'memory'", "16 MiB"], code=BAD_INPUT)
    for bad in (f"{token}/state", "/proc/absent/state"):
        daemon_refused(cluster, "a folder that cannot be made", "worker",
                       f"{common}folder: {bad}\n", ["refused.yaml: 'folder'", bad],
                       code=BAD_INPUT)
        done = subprocess.run([BIN / "longhauld", "worker", "--check", "--config",
                               folder / "refused.yaml"], capture_output=True, text=True)
        if done.returncode != BAD_INPUT or "'folder'" not in done.stdout + done.stderr:
            raise Failure(f"--check accepts the folder {bad}: {done}")
    daemon_refused(cluster, "one folder for two daemons", "worker",
                   f"name: w9\nsite: a\ncoordinator: 127.0.0.1:{cluster.port}\n"
                   f"folder: {folder}/w1\ncluster_token_file: {token}\n", ["w1"])


def two_workers_with_one_name(cluster):
    """The second is refused and says so; the first stays."""
    cluster._spawn("worker", "twin",
                   f"name: w1\nsite: a\ncoordinator: 127.0.0.1:{cluster.port}\n"
                   f"folder: {cluster.folder}/twin\ncluster_token_file: {cluster.token}\n")
    log = cluster.folder / "twin.log"
    wait_for("the twin is refused", lambda: "NOT PART OF THE CLUSTER" in log.read_text())
    print(f"  one name twice: {log.read_text().strip().splitlines()[-1][:200]}", flush=True)
    if "w1" not in log.read_text():
        raise Failure("the refusal does not name the worker")
    cluster.kill("twin")
    cluster.wait_for_nodes(2)


def no_workers():
    with Cluster() as cluster:
        cluster.start_coordinator()
        wait_for("the coordinator answers", lambda: cluster.command("node", "ls").returncode == 0)
        check = Checker(cluster)
        check.refused("no workers", FAILED, ["worker"], "run", "start", cluster.write_run("lonely"))
        if cluster.json_lines("run", "ls"):
            raise Failure("a refused run was kept")


def main():
    with Cluster() as cluster:
        cluster.start(2)
        check = Checker(cluster)
        for part in (bad_run_files, bad_data, bad_graph_sizes, bad_preparation, bad_requests,
                     bad_models, not_files, bad_counts, bad_generate, bad_topologies,
                     unwritable_output, bad_circumstances):
            print(part.__name__, flush=True)
            part(check)
        print("bad_daemons", flush=True)
        bad_daemons(cluster)
        two_workers_with_one_name(cluster)
        # After all that the cluster still trains.
        cluster.train("fine", steps=3)
    print("no_workers", flush=True)
    no_workers()
    print(f"refusals: {check.count} commands refused as they should be")


if __name__ == "__main__":
    main()

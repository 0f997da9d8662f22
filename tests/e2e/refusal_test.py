#!/usr/bin/env python3
"""What must be refused: bad files, bad requests, bad circumstances. Every refusal has the right
exit code, says what is wrong and where, and leaves nothing half-made.
"""

import os
import re
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Cluster, Failure, free_port, run_file, wait_for  # noqa: E402

DONE, FAILED, BAD_INPUT, UNREACHABLE = 0, 1, 2, 3


class Checker:
    def __init__(self, cluster):
        self.cluster = cluster
        self.count = 0

    def refused(self, what, code, patterns, *arguments):
        done = self.cluster.command(*arguments)
        message = done.stderr.strip()
        self.count += 1
        print(f"  {what}: {done.returncode}: {message[:150]}", flush=True)
        if done.returncode != code:
            raise Failure(f"{what}: exit code {done.returncode}, expected {code}: {message}")
        for pattern in patterns:
            if not re.search(pattern, message):
                raise Failure(f"{what}: no '{pattern}' in: {message}")

    def unwritable(self, *arguments):
        with open("/dev/full", "wb") as full:
            done = self.cluster.command(*arguments, stdout=full)
        self.count += 1
        if done.returncode != FAILED or "No space left on device" not in done.stderr:
            raise Failure(f"{arguments} on a full disk: {done.returncode}: {done.stderr}")

    def file_refused(self, what, patterns, text):
        path = self.cluster.folder / "bad.yaml"
        path.write_text(text)
        self.refused(what, BAD_INPUT, patterns, "run", "start", path)


def bad_run_files(check):
    good = run_file("bad")

    def changed(old, new):
        if old not in good:
            raise Failure(f"the sample has no '{old}'")
        return good.replace(old, new)

    check.file_refused("misspelt key", [r"bad\.yaml:17", "micro_bach", "micro_batch"],
                       changed("micro_batch:", "micro_bach:"))
    check.file_refused("unknown section", ["bad.yaml", "exchang", "exchange"],
                       changed("exchange:", "exchang:"))
    check.file_refused("wrong type", ["steps", "many"], changed("steps: 20", "steps: many"))
    check.file_refused("out of range", ["steps"], changed("steps: 20", "steps: 0"))
    check.file_refused("negative", ["learning_rate"],
                       changed("learning_rate: 3.0e-3", "learning_rate: -1"))
    check.file_refused("heads do not divide", ["heads", "hidden"], changed("heads: 4", "heads: 3"))
    check.file_refused("micro-batch does not divide", ["micro_batch", "global_batch"],
                       changed("micro_batch: 1", "micro_batch: 3"))
    check.file_refused("duplicate key", ["seed"], changed("seed: 7", "seed: 7\n  seed: 8"))
    check.file_refused("unknown codec", ["codec", "none"], changed("codec: none", "codec: gzip"))
    check.file_refused("unknown schedule", ["schedule", "gpipe"],
                       changed("schedule: 1f1b", "schedule: zigzag"))
    check.file_refused("unknown family", ["family", "gpt2"],
                       changed("family: gpt2", "family: rnn"))
    check.file_refused("odd name", ["name"], changed("name: bad", "name: ../../etc"))
    check.file_refused("control characters", ["name"], changed("name: bad", 'name: "a\\eb"'))
    check.file_refused("not YAML", [r"bad\.yaml"], "name: [1, 2\n  x: {")
    check.file_refused("empty file", [r"bad\.yaml"], "")
    check.file_refused("more stages than layers", ["layers", "4"],
                       changed("stages: auto", "stages: 5"))


def bad_data(check):
    folder = check.cluster.folder

    def with_data(name, content, **options):
        (folder / name).write_bytes(content)
        return run_file("bad", train=name, **options)

    check.file_refused("missing data", ["nothing.txt"], run_file("bad", train="nothing.txt"))
    check.file_refused("empty data", ["empty.txt"], with_data("empty.txt", b""))
    check.file_refused("text shorter than one context", ["short.txt", "context of 32"],
                       with_data("short.txt", b"too short"))
    check.file_refused("vocabulary too small", ["vocab", "128"],
                       with_data("wide.txt", b"x" * 5000 + b"\xc3\xa9" + b"x" * 5000, vocab=128))
    check.file_refused("odd length", ["odd.bin"],
                       with_data("odd.bin", b"\x01\x02\x03" * 3001, tokenizer="uint16"))
    header = (20240520).to_bytes(4, "little") + (1).to_bytes(4, "little")
    truncated = header + (10 ** 6).to_bytes(4, "little") + bytes(1012) + bytes(4000)
    check.file_refused("truncated headed file", ["headed.bin"],
                       with_data("headed.bin", truncated, tokenizer="uint16"))
    if os.geteuid() != 0:
        secret = folder / "secret.txt"
        secret.write_text("x" * 5000)
        secret.chmod(0)
        check.file_refused("unreadable data", ["secret.txt"], run_file("bad", train="secret.txt"))
    (folder / "folder").mkdir()
    check.file_refused("a folder as data", ["folder"], run_file("bad", train="folder"))


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
    cluster.ok("checkpoint", "export", "twice", "--to", "taken")
    check.refused("folder taken", BAD_INPUT, ["taken"], "checkpoint", "export", "twice", "--to",
                  "taken")
    check.refused("more stages than nodes", FAILED, ["stages", "node"], "run", "start",
                  cluster.write_run("wide", stages=4))
    if len(cluster.json_lines("run", "ls")) != 1:
        raise Failure(f"a refused run was kept: {cluster.ok('run', 'ls')}")


def unwritable_output(check):
    """Every kind of output that cannot be written is an error, whoever makes it."""
    cluster = check.cluster
    check.cluster.ok("checkpoint", "export", "twice", "--to", "model")
    topology = cluster.folder / "topology.yaml"
    topology.write_text("nodes: [{name: a, site: x, gigaflops: 9, memory_mebibytes: 4096}]\n")
    run = cluster.folder / "twice.yaml"
    generate = ("generate", "--checkpoint", "model", "--prompt", "the", "--tokens", 3)
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
    check.refused("token that others can read", FAILED, ["wrong-token"], "run", "ls",
                  "--token-file", wrong)


def daemon_refused(cluster, what, role, config, patterns):
    cluster._spawn(role, "refused", config)
    process = cluster.processes.pop("refused")
    code = process.wait(timeout=30)
    message = (cluster.folder / "refused.log").read_text()
    (cluster.folder / "refused.log").unlink()
    print(f"  {what}: {code}: {message.strip().splitlines()[-1][:150]}", flush=True)
    if code == 0:
        raise Failure(f"{what}: the daemon ended with 0")
    for pattern in patterns:
        if not re.search(pattern, message):
            raise Failure(f"{what}: no '{pattern}' in: {message}")


def bad_daemons(cluster):
    folder, token = cluster.folder, cluster.token
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        daemon_refused(cluster, "port in use", "coordinator",
                       f"listen: 127.0.0.1:{port}\nfolder: {folder}/x\n"
                       f"cluster_token_file: {token}\n", [str(port), "in use"])
    daemon_refused(cluster, "open without TLS", "coordinator",
                   f"listen: 0.0.0.0:{free_port()}\nfolder: {folder}/x\n"
                   f"cluster_token_file: {token}\n", ["insecure: true", "refused.yaml:1"])
    daemon_refused(cluster, "misspelt key", "worker",
                   f"name: x\nsiet: a\nfolder: {folder}/x\n", ["refused.yaml:2", "siet", "site"])
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
        for part in (bad_run_files, bad_data, bad_requests, unwritable_output,
                     bad_circumstances):
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

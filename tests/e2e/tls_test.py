#!/usr/bin/env python3
"""Mutual TLS between all parts with certificates made here: it trains; wrong names, other
authorities and callers without a certificate are refused.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness import Cluster, Failure, wait_for  # noqa: E402


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A certificate authority in a folder; keys are readable by this user only."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", 2, "-subj", "/CN=Test CA", "-keyout", folder / "ca.key", "-out",
                folder / "ca.crt")

    def issue(self, name):
        key, request, crt = (self.folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", "-keyout", key, "-out",
                request)
        openssl("x509", "-req", "-in", request, "-CA", self.folder / "ca.crt", "-CAkey",
                self.folder / "ca.key", "-CAcreateserial", "-days", 2, "-copy_extensions", "copy",
                "-out", crt)
        key.chmod(0o600)

    def section(self, name):
        return (f"tls: {{certificate: {self.folder}/{name}.crt, key: {self.folder}/{name}.key, "
                f"ca: {self.folder}/ca.crt}}\n")

    def options(self, name):
        return ["--tls-ca", self.folder / "ca.crt", "--tls-certificate",
                self.folder / f"{name}.crt", "--tls-key", self.folder / f"{name}.key"]


def spawn_worker(cluster, authority, name, certificate):
    cluster._spawn("worker", name,
                   f"name: {name}\nsite: here\ncoordinator: 127.0.0.1:{cluster.port}\n"
                   f"folder: {cluster.folder}/{name}\nthreads: 1\n"
                   + authority.section(certificate))


def expect_log(cluster, name, *patterns):
    log = cluster.folder / f"{name}.log"

    def found():
        return all(re.search(pattern, log.read_text()) for pattern in patterns)
    wait_for(f"{name}'s log says {patterns}", found, 30)


def main():
    with Cluster() as cluster:
        ours, others = Authority(cluster.folder / "ours"), Authority(cluster.folder / "others")
        for name in ("coordinator", "w1", "w2", "w3", "admin"):
            ours.issue(name)
        for name in ("w4", "admin"):
            others.issue(name)
        cluster._spawn("coordinator", "coordinator",
                       f"listen: 127.0.0.1:{cluster.port}\nfolder: {cluster.folder}/coordinator\n"
                       + ours.section("coordinator"))
        spawn_worker(cluster, ours, "w1", "w1")
        spawn_worker(cluster, ours, "w2", "w2")
        admin = ours.options("admin")

        def connected():
            done = cluster.command("node", "ls", "--output", "json", *admin)
            lines = done.stdout.splitlines() if done.returncode == 0 else []
            return sum(json.loads(line)["state"] == "connected" for line in lines) == 2
        wait_for("two workers joined over TLS", connected, 30)
        run = cluster.write_run("secure", stages=2, steps=5)
        cluster.ok("run", "start", run, "--wait", *admin)
        cluster.ok("checkpoint", "export", "secure", "--to", "model", *admin)
        print("trained two stages over mutual TLS", flush=True)

        spawn_worker(cluster, ours, "impostor", "w3")
        expect_log(cluster, "impostor", "impostor", "w3")
        spawn_worker(cluster, others, "w4", "w4")
        expect_log(cluster, "w4", "NOT PART OF THE CLUSTER")
        for what, options in (("another authority", others.options("admin")), ("no TLS", [])):
            done = cluster.command("node", "ls", *options)
            if done.returncode == 0:
                raise Failure(f"{what}: the command was served")
            print(f"{what}: {done.returncode}: {done.stderr.strip()[:160]}", flush=True)
        names = [line.split()[0] for line in
                 cluster.ok("node", "ls", *admin).splitlines()[1:]]
        if names != ["w1", "w2"]:
            raise Failure(f"somebody got in: {names}")
        print("wrong names and authorities were refused")


if __name__ == "__main__":
    main()

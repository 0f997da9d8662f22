"""How the refusal test asks: a command or a daemon that must end with a code and a message."""

import os
import re

from harness import Failure

# As root, modes of files mean nothing without this.
AS_ANYONE = ()
if os.geteuid() == 0:
    AS_ANYONE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")

DONE, FAILED, BAD_INPUT, UNREACHABLE = 0, 1, 2, 3


class Checker:
    def __init__(self, cluster):
        self.cluster = cluster
        self.count = 0

    def refused(self, what, code, patterns, *arguments, **options):
        done = self.cluster.command(*arguments, **options)
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


def daemon_refused(cluster, what, role, config, patterns, code=None):
    cluster._spawn(role, "refused", config)
    process = cluster.processes.pop("refused")
    ended = process.wait(timeout=30)
    message = (cluster.folder / "refused.log").read_text()
    (cluster.folder / "refused.log").unlink()
    print(f"  {what}: {ended}: {message.strip().splitlines()[-1][:150]}", flush=True)
    if ended == 0 or code not in (None, ended):
        raise Failure(f"{what}: the daemon ended with {ended}")
    for pattern in patterns:
        if not re.search(pattern, message):
            raise Failure(f"{what}: no '{pattern}' in: {message}")

"""Real daemons for tests: a cluster of processes that can be killed, stopped, cut off and asked.

Everything is on loopback, in one temporary folder, and ends with the test. Waits have deadlines and
look at state; none passes because time went by.
"""

import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from run_files import make_text, run_file

BIN = Path(os.environ.get("LONGHAUL_BIN", "build/bin")).resolve()
# How much longer than usual to wait for what must happen at last; sanitizers slow everything down.
# What a test claims about time, it measures by itself.
PATIENCE = float(os.environ.get("LONGHAUL_TEST_PATIENCE", "1"))
SKIPPED_EXIT = 77  # which ctest shows as skipped


class Port:
    """A port of the loopback interface that nobody else is given while this lives: tests run side
    by side. A daemon can listen on it all the same, since it sets SO_REUSEADDR too.
    """

    def __init__(self):
        self.guard = socket.socket()
        self.guard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.guard.bind(("127.0.0.1", 0))
        self.number = self.guard.getsockname()[1]

    def close(self):
        self.guard.close()


class Failure(AssertionError):
    pass


class Skipped(Exception):
    """Raised by a case that cannot be tried here, with the reason."""


def wait_for(what, condition, seconds=60.0):
    """Waits until condition() is true and returns its value; fails with `what` after `seconds`
    times PATIENCE.
    """
    seconds *= PATIENCE
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Proxy:
    """A TCP relay in front of a worker's data plane, for cutting a link.

    forward: bytes flow. cut: connections are closed and new ones refused. frozen: connections stay
    but nothing flows, as when a cable is pulled.
    """

    def __init__(self, target_port):
        self.target_port = target_port
        self.state = "forward"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = []
        self.lock = threading.Lock()
        self.closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.closing:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.state == "cut":
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target_port))
            except OSError:
                client.close()
                continue
            with self.lock:
                self.pairs.append((client, server))
            threading.Thread(target=self._relay, args=(client, server), daemon=True).start()

    def _relay(self, client, server):
        other = {client: server, server: client}
        try:
            while True:
                ready, _, _ = select.select([client, server], [], [], 0.05)
                if self.state == "frozen":
                    time.sleep(0.02)
                    continue
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    other[source].sendall(data)
        except (OSError, ValueError):
            return
        finally:
            client.close()
            server.close()

    def cut(self):
        self.state = "cut"
        with self.lock:
            for pair in self.pairs:
                for end in pair:
                    try:
                        end.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            self.pairs.clear()

    def freeze(self):
        self.state = "frozen"

    def heal(self):
        self.state = "forward"

    def close(self):
        self.closing = True
        self.cut()
        self.listener.close()


class Cluster:
    """A coordinator and workers as processes. Use as a context manager."""

    def __init__(self, lease="4s"):
        self.folder = Path(tempfile.mkdtemp(prefix="longhaul-test-"))
        self.lease = lease
        self.ports = [Port()]
        self.port = self.ports[0].number
        self.token = self.folder / "token"
        self.token.write_text("0123456789abcdef0123456789abcdef\n")
        self.token.chmod(0o600)
        self.processes = {}
        self.proxies = {}
        make_text(self.folder / "text.txt", 40000)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.print_logs()
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.processes.values():
            process.wait()
        for proxy in self.proxies.values():
            proxy.close()
        for port in self.ports:
            port.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def print_logs(self):
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-25:]
            print(f"--- {log.name}", *lines, sep="\n", file=sys.stderr)

    def _spawn(self, role, name, config, program="longhauld", environment=None):
        """`environment`: variables besides this process's own."""
        path = self.folder / f"{name}.yaml"
        path.write_text(config)
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            [BIN / program, role, "--config", path], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, env=dict(os.environ, **(environment or {})))
        log.close()

    def start_coordinator(self):
        self._spawn("coordinator", "coordinator",
                    f"listen: 127.0.0.1:{self.port}\nfolder: {self.folder}/coordinator\n"
                    f"lease: {self.lease}\ncluster_token_file: {self.token}\n")

    def start_worker(self, name, site="here", threads=1, extra="", proxied=False):
        data = ""
        if proxied:
            if name not in self.proxies:
                self.ports.append(Port())
                self.proxies[name] = Proxy(self.ports[-1].number)
            port = self.proxies[name].target_port
            data = (f"data: {{listen: 127.0.0.1:{port}, "
                    f"advertise: 127.0.0.1:{self.proxies[name].port}}}\n")
        self._spawn("worker", name,
                    f"name: {name}\nsite: {site}\ncoordinator: 127.0.0.1:{self.port}\n"
                    f"folder: {self.folder}/{name}\nthreads: {threads}\n"
                    f"cluster_token_file: {self.token}\n{data}{extra}")

    def start(self, workers, threads=None):
        """A coordinator and workers w1, w2, ...; threads: one number for each."""
        self.start_coordinator()
        for w in range(workers):
            self.start_worker(f"w{w + 1}", site=f"s{w % 2 + 1}",
                              threads=threads[w] if threads else 1)
        self.wait_for_nodes(workers)

    def wait_for_nodes(self, count):
        wait_for(f"{count} nodes connected",
                 lambda: sum(n["state"] == "connected" for n in self.nodes()) == count)

    def kill(self, name, how=signal.SIGKILL):
        self.processes[name].send_signal(how)
        if how in (signal.SIGKILL, signal.SIGTERM):
            self.processes[name].wait(timeout=60)

    def command(self, *arguments, timeout=120, stdout=subprocess.PIPE, prefix=()):
        """Runs `longhaul`, behind the words of a `prefix`, and returns the finished process."""
        environment = dict(os.environ, LONGHAUL_COORDINATOR=f"127.0.0.1:{self.port}",
                           LONGHAUL_TOKEN_FILE=str(self.token), HOME=str(self.folder))
        return subprocess.run([*prefix, BIN / "longhaul", *map(str, arguments)], stdout=stdout,
                              stderr=subprocess.PIPE, text=True, env=environment,
                              timeout=timeout * PATIENCE, cwd=self.folder)

    def ok(self, *arguments, timeout=120):
        done = self.command(*arguments, timeout=timeout)
        if done.returncode != 0:
            raise Failure(f"longhaul {' '.join(map(str, arguments))} gave {done.returncode}: "
                          f"{done.stderr}{done.stdout}")
        return done.stdout

    def json_lines(self, *arguments, timeout=120):
        return [json.loads(line)
                for line in self.ok(*arguments, "--output", "json", timeout=timeout).splitlines()]

    def nodes(self):
        done = self.command("node", "ls", "--output", "json")
        if done.returncode != 0:
            return []
        return [json.loads(line) for line in done.stdout.splitlines()]

    def show(self, run):
        return self.json_lines("run", "show", run)[0]

    def write_run(self, name, **options):
        path = self.folder / f"{name}.yaml"
        path.write_text(run_file(name, **options))
        return path

    def start_run(self, name, **options):
        self.ok("run", "start", self.write_run(name, **options))

    def wait_state(self, run, *states, seconds=120.0):
        return wait_for(f"run {run} is {' or '.join(states)}",
                        lambda: (lambda s: s if s["state"] in states else None)(self.show(run)),
                        seconds)

    def wait_step(self, run, step, seconds=120.0):
        def reached():
            shown = self.show(run)
            if shown["state"] not in ("pending", "running", "done"):
                raise Failure(f"run {run} is {shown['state']}: {shown['reason']}")
            return shown if shown["step"] >= step else None
        return wait_for(f"run {run} reaches step {step}", reached, seconds)

    def train(self, name, timeout=300, **options):
        """Runs to the end, within `timeout` seconds, and returns the steps that were shown."""
        path = self.write_run(name, **options)
        lines = self.json_lines("run", "start", path, "--wait", timeout=timeout)
        if lines[-1].get("state") != "done":
            raise Failure(f"run {name} ended as {lines[-1]}")
        return [line for line in lines if "step" in line]

    def digest(self, run):
        """SHA-256 of the exported model.safetensors."""
        target = self.folder / f"export-{run}-{len(list(self.folder.glob('export-*')))}"
        self.ok("checkpoint", "export", run, "--to", target)
        return hashlib.sha256((target / "model.safetensors").read_bytes()).hexdigest()


def check_steps(lines, last):
    """The steps shown are 1...last without gap or repeat."""
    steps = [line["step"] for line in lines if "step" in line]
    if steps != list(range(1, last + 1)):
        raise Failure(f"expected steps 1 to {last}, got {steps}")


def run_cases(cases):
    """main() of a script: runs the cases that its arguments name, or all; --list prints the names,
    one a line, of which each is a test of its own for ctest. What was skipped has not passed: the
    exit code is then SKIPPED_EXIT, unless a case failed.
    """
    named = {case.__name__: case for case in cases}
    wanted = sys.argv[1:]
    if wanted == ["--list"]:
        print("\n".join(named))
        return
    unknown = set(wanted) - set(named)
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}; there are: {', '.join(named)}")
    skipped = False
    for name in wanted or named:
        print(f"{name}: {named[name].__doc__}", flush=True)
        since = time.monotonic()
        try:
            named[name]()
        except Skipped as reason:
            print(f"{name}: SKIPPED: {reason}", flush=True)
            skipped = True
            continue
        print(f"{name}: {time.monotonic() - since:.1f} s", flush=True)
    if skipped:
        sys.exit(SKIPPED_EXIT)

"""What every benchmark shares: a table with the target beside each figure, and a file of results,
so that a long benchmark goes on where it was interrupted.

    parser = argparse.ArgumentParser()
    add_arguments(parser)                       # --fresh
    options = parser.parse_args()
    bench = Benchmark("speed", ["stages", "tokens/s", "target"], fresh=options.fresh)
    for stages in (1, 4):
        rates = bench.measure({"stages": stages}, lambda: train(stages))     # JSON in, JSON out
        bench.row(stages, *Figure(Spread.of(rates), AtLeast(1000), ".0f").cells())
    bench.finish()                              # exits 1 if a figure missed its target

A result counts for one commit (and what differs from it in the working tree), one machine and one
configuration: whatever else it depends on (steps, digests of input files) belongs into the latter.
"""

import datetime
import fcntl
import hashlib
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = 1
KEPT_MAX = 1000  # results in the file; the oldest go first


@dataclass(frozen=True)
class AtMost:
    limit: float

    def met(self, value):
        return value <= self.limit

    def __str__(self):
        return f"<= {self.limit:g}"


@dataclass(frozen=True)
class AtLeast:
    limit: float

    def met(self, value):
        return value >= self.limit

    def __str__(self):
        return f">= {self.limit:g}"


@dataclass(frozen=True)
class Spread:
    """The median of repeated measurements, and their quartiles."""
    median: float
    low: float
    high: float

    @staticmethod
    def of(values):
        values = list(values)
        if len(values) == 1:
            return Spread(values[0], values[0], values[0])
        return Spread(*(statistics.quantiles(values, n=4, method="inclusive")[i]
                        for i in (1, 0, 2)))

    @staticmethod
    def ratio(ours, theirs):
        """Of two programs that were measured in turns: the ratio of each turn, so that what slows
        the machine for a while slows both."""
        pairs = list(zip(ours, theirs, strict=True))
        return Spread.of(a / b for a, b in pairs)


@dataclass(frozen=True)
class Figure:
    """A measured value (a number or a Spread, judged by its median) beside its target, if any."""
    value: object
    target: object = None
    style: str = ".4g"

    @property
    def _number(self):
        return self.value.median if isinstance(self.value, Spread) else self.value

    def missed(self):
        if self.target is None:
            return False
        return not (math.isfinite(self._number) and self.target.met(self._number))

    def __str__(self):
        text = format(self._number, self.style)
        if not isinstance(self.value, Spread):
            return text
        low, high = (format(end, self.style) for end in (self.value.low, self.value.high))
        return f"{text} ({low} to {high})"

    def cells(self):
        """For Benchmark.row: the figure and its target."""
        return self, "-" if self.target is None else str(self.target)


def file_digest(path):
    """SHA-256 of a file, for the configuration."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True,
                          check=True).stdout


def tree_state(root=ROOT):
    """The commit, and a digest of what the working tree has beyond it; None where git does not
    know, so that nothing can be resumed."""
    try:
        commit = _git(root, "rev-parse", "HEAD").decode().strip()
        beyond = _git(root, "diff", "HEAD", "--binary")
        new = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")
    except (OSError, subprocess.CalledProcessError):
        return None
    digest = hashlib.sha256(beyond)
    for name in sorted(filter(None, new)):
        path = Path(root) / os.fsdecode(name)
        digest.update(b"\0" + name + b"\0")
        digest.update(path.read_bytes() if path.is_file() else b"")
    dirty = bool(beyond) or any(new)
    return f"{commit}+{digest.hexdigest()[:16]}" if dirty else commit


def machine():
    """What a measurement depends on besides the program."""
    model = next((line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo")
                  if line.startswith("model name")), platform.machine())
    return {"host": platform.node(), "cpu": model, "cores": len(os.sched_getaffinity(0))}


def _lines(path):
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


class Store:
    """The file of results. Processes may share it."""

    def __init__(self, path):
        self.path = Path(path)

    def read(self):
        try:
            content = json.loads(self.path.read_text())
            if content["schema"] == SCHEMA and isinstance(content["results"], dict):
                return content["results"]
            reason = f"its schema is not {SCHEMA}"
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = error
        print(f"bench: {self.path} is not used: {reason}", file=sys.stderr)
        return {}

    def add(self, key, entry):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.path}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            results = self.read()
            results.pop(key, None)
            results[key] = entry
            newest = dict(list(results.items())[-KEPT_MAX:])
            temporary = Path(f"{self.path}.tmp")
            temporary.write_text(json.dumps({"schema": SCHEMA, "results": newest}, indent=1) + "\n")
            os.replace(temporary, self.path)


class Benchmark:
    """Prints a table row by row, measures what was not measured yet, and remembers misses. A
    heading may come with the width of its column: ("figure", 24)."""

    def __init__(self, name, headings, fresh=False, root=ROOT):
        self.name = name
        self.fresh = fresh
        self.state = tree_state(root)
        self.store = Store(Path(root) / "build" / "bench" / "results.json")
        self.widths = [heading[1] if isinstance(heading, tuple) else max(len(heading), 8)
                       for heading in headings]
        self.headings = [heading[0] if isinstance(heading, tuple) else heading
                         for heading in headings]
        self.missed = False
        if self.state is None:
            print("bench: not a git checkout, so that nothing is resumed", file=sys.stderr)

    def measure(self, configuration, take):
        """The result for the configuration (both of what JSON can hold): the one in the file, else
        that of take(), which is then in the file."""
        identity = {"benchmark": self.name, "commit": self.state, "machine": machine(),
                    "configuration": configuration}
        key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        if self.state is not None and not self.fresh:
            found = self.store.read().get(key)
            if found is not None:
                print(f"bench: {configuration} was measured at {found['measured']}; "
                      "--fresh measures again", file=sys.stderr)
                return found["result"]
        result = json.loads(json.dumps(take()))
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        if self.state is not None:
            self.store.add(key, dict(identity, measured=now, result=result))
        return result

    def row(self, *cells):
        """One cell for each heading: text, numbers, or what Figure.cells gives."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} headings")
        if any(self.headings):
            self._print(self.headings, "")
            self.headings = [""] * len(self.headings)
        miss = any(isinstance(cell, Figure) and cell.missed() for cell in cells)
        self.missed |= miss
        self._print(cells, "  FAIL" if miss else "")

    def _print(self, cells, verdict):
        line = "  ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, self.widths))
        print(line + verdict, flush=True)

    def finish(self):
        sys.exit(1 if self.missed else 0)


def add_arguments(parser):
    parser.add_argument("--fresh", action="store_true",
                        help="measure everything again, whatever build/bench/results.json holds")

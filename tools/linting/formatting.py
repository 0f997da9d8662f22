"""clang-format, on all processors; skipped aloud where it is not installed."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

_BATCH = 24
_WARNING = re.compile(r"(.+?):(\d+):\d+: (?:error|warning): code should be clang-formatted")


def _run(root, paths):
    result = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths], cwd=root,
                            capture_output=True, text=True, check=False)
    places = {}
    for line in result.stderr.split("\n"):
        match = _WARNING.match(line)
        if match:
            places.setdefault(match.group(1), int(match.group(2)))
    if result.returncode != 0 and not places:
        return [(paths[0], 1, f"clang-format failed: {result.stderr.strip()}")]
    return [(path, line, f"not as clang-format lays it out: run clang-format -i {path}")
            for path, line in places.items()]


def check(root, files):
    paths = [source.path for source in files if source.is_cpp]
    if shutil.which("clang-format") is None:
        print("lint: clang-format is not installed; layout is not checked", file=sys.stderr)
        return []
    batches = [paths[i:i + _BATCH] for i in range(0, len(paths), _BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda batch: _run(root, batch), batches)
        return [breach for result in results for breach in result]

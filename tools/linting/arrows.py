"""Which folder may include which: the arrows of ARCHITECTURE.md, and who may see which library."""
import re

_DATA = ["base", "model", "run", "data", "schedule", "compression", "checkpoint", "control"]
_COMPUTE = ["compute/backend", "compute/codec", "compute/ops", "compute/optim", "compute/stage"]
_COORDINATOR = ["coordinator/plan", "coordinator/core", "coordinator/host"]
_WORKER = ["worker/comm", "worker/exec", "worker/host"]
_ALL = _DATA + _COMPUTE + _COORDINATOR + _WORKER + ["proto", "daemon", "cli"]

# By folder: the folders that its files may include, besides its own and those below it.
ARROWS = {
    "base": [],
    "model": ["base"],
    "run": ["base", "model"],
    "data": ["base", "run"],
    "schedule": ["base"],
    "compression": ["base"],
    "checkpoint": ["base", "model"],
    "control": ["base", "model", "run", "checkpoint"],
    "compute/backend": ["base", "model"],
    "compute/codec": ["base", "compression", "compute/backend"],
    "compute/ops": ["base", "model", "compute/backend"],
    "compute/optim": ["base", "model", "compute/backend", "compute/ops"],
    "compute/stage": ["base", "model", "compute/backend", "compute/ops", "compute/optim"],
    "coordinator/plan": ["base", "model", "run", "schedule", "compression"],
    "coordinator/core": ["base", "model", "run", "schedule", "compression", "checkpoint",
                         "control", "coordinator/plan"],
    "coordinator/host": _DATA + ["coordinator/plan", "coordinator/core"],
    "worker/comm": ["base", "compression", "compute/backend"],
    "worker/exec": _DATA + _COMPUTE + ["worker/comm"],
    "worker/host": _DATA + _COMPUTE + ["worker/comm", "worker/exec"],
    "proto": [],
    "daemon": _DATA + _COMPUTE + _COORDINATOR + _WORKER + ["proto"],
    "cli": _DATA + _COMPUTE + ["coordinator/plan", "proto", "daemon"],
    "tests": _ALL,
}

# Libraries whose headers are seen in few places: a pattern of the header, a pattern of the files
# that may include it, and the reason.
LIBRARIES = [
    (re.compile(r"grpc(pp|\+\+)?/|google/protobuf/|longhaul/v\d+/.*\.pb\.h$"),
     re.compile(r"(daemon|cli|tests|proto)/"),
     "gRPC and Protobuf are for the wire: only daemon/, cli/, tests/ and proto/ may see them"),
    (re.compile(r"cu(da|blas|dnn|rand|sparse)\w*\.(h|hpp)$|cuda/|nccl\w*\.h$"),
     re.compile(r"compute/backend/cuda/|.*_cuda\.(cc|cu|h)$|worker/comm/nccl_"),
     "CUDA and NCCL are seen only by compute/backend/cuda/, *_cuda.* and worker/comm/nccl_*"),
]

_INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)')


def _folder(path):
    """The key of ARROWS for a file, or None."""
    parts = path.split("/")[:-1]
    while parts:
        if "/".join(parts) in ARROWS:
            return "/".join(parts)
        parts.pop()
    return None


def _top(path):
    return path.split("/")[0]


def _is_testing(path):
    return "testing" in path.split("/")[:-1] or path.endswith("/testing.h")


def _check_edge(source, target):
    """What is wrong with including `target`, a path of the tree."""
    if _is_testing(target):
        if source.is_test:
            return None
        return f'includes "{target}", which is for tests'
    here, there = _folder(source.path), _folder(target)
    if there == here or there is None:
        return None
    allowed = ARROWS.get(here, [])
    if _is_testing(source.path):
        # Serves the tests of a whole top folder.
        if _top(source.path) == _top(target):
            return None
        allowed = sorted({name for folder in ARROWS if _top(folder) == _top(source.path)
                          for name in ARROWS[folder]})
    if there in allowed:
        return None
    return f'{here or _top(source.path)}/ must not include "{target}": the arrows run from it to ' \
        + (", ".join(f"{name}/" for name in allowed) or "nothing")


def check(root, files):
    tops = {_top(name) for name in ARROWS}
    for source in files:
        if not source.is_cpp:
            continue
        if _folder(source.path) is None and not _is_testing(source.path):
            yield source.path, 1, "this folder is not in ARROWS of tools/linting/arrows.py"
            continue
        for number, line in enumerate(source.lines, 1):
            match = _INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1) or match.group(2)
            for header, allowed, reason in LIBRARIES:
                if header.match(target) and not allowed.match(source.path):
                    yield source.path, number, f"includes {target}: {reason}"
            if _top(target) not in tops:
                continue
            if match.group(2):
                yield source.path, number, f'write "{target}": angle brackets are for libraries'
            wrong = _check_edge(source, target)
            if wrong:
                yield source.path, number, wrong

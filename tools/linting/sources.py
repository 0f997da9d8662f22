"""The files of a tree, and C++ text without what is not code."""
import bisect
import functools
import os
import pathlib
import re
import subprocess

SAMPLES = "tools/lint_samples/"
SKIPPED_FOLDERS = {".git", "__pycache__"}

# What hides code-like text: raw strings, comments, strings, characters; and digit separators.
_TOKEN = re.compile(
    r'R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)"'
    r"|//[^\n]*|/\*.*?\*/"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])"
    r"|'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_TEST_FILE = re.compile(r"_test(_util)?\.(cc|cu|h)$|/test_\w+\.(cc|h)$|(^|/)testing[/.]|^tests/")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def _blank_token(match):
    token = match.group(0)
    if token[0] == '"':
        return '"' + " " * (len(token) - 2) + '"'
    return _blank(token)


class Source:
    """One file. Lines count from 1; offsets are into `text`, `code` and `plain_code` alike."""

    def __init__(self, path, data):
        self.path = path
        self.data = data
        self.text = data.decode("utf-8", errors="replace")

    @functools.cached_property
    def lines(self):
        return self.text.split("\n")

    @functools.cached_property
    def code(self):
        """Without comments and what is in strings."""
        return _TOKEN.sub(_blank_token, self.text)

    @functools.cached_property
    def plain_code(self):
        """As `code`, without preprocessor directives too."""
        return _DIRECTIVE.sub(lambda match: _blank(match.group(0)), self.code)

    @functools.cached_property
    def _starts(self):
        return [0] + [i + 1 for i, c in enumerate(self.text) if c == "\n"]

    def line_of(self, offset):
        return bisect.bisect_right(self._starts, offset)

    @property
    def is_header(self):
        return self.path.endswith((".h", ".cuh"))

    @property
    def is_cpp(self):
        return self.path.endswith((".h", ".cc", ".cu", ".cuh"))

    @property
    def is_test(self):
        return bool(_TEST_FILE.search(self.path))

    @property
    def is_shell(self):
        first = self.lines[0]
        return self.path.endswith(".sh") or bool(re.match(r"#!.*\b(ba)?sh\b", first))

    @property
    def is_python(self):
        return self.path.endswith(".py") or bool(re.match(r"#!.*\bpython3?\b", self.lines[0]))


def _tracked(root):
    """What git tracks or would, or None outside a work tree whose top is `root`."""
    if not (root / ".git").exists():
        return None
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=True)
    return [name.decode() for name in listing.stdout.split(b"\0") if name]


def _walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders
                            if f not in SKIPPED_FOLDERS and not f.startswith("build"))
        for name in sorted(names):
            yield pathlib.Path(folder, name).relative_to(root).as_posix()


def read(root, only=()):
    """The text files of the tree, those that `only` names if any."""
    paths = _tracked(root)
    if paths is None:
        paths = list(_walk(root))
    chosen = {os.path.normpath(name) for name in only}
    files = []
    for path in sorted(set(paths)):
        full = root / path
        if path.startswith(SAMPLES) or not full.is_file() or full.is_symlink():
            continue
        if chosen and path not in chosen:
            continue
        data = full.read_bytes()
        if b"\0" not in data:
            files.append(Source(path, data))
    return files

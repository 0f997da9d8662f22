"""Unfinished work, links in documents, and shell scripts that do not parse."""
import re
import subprocess
import urllib.parse

# The words themselves are put together here, so that this file may be checked too.
_UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b"
                         r"|\bDIS" + r"ABLED_")
_FENCE = re.compile(r"\s*(```|~~~)")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)"
                   r"|^\s*\[[^\]]+\]:\s*<?(\S+?)>?\s*$")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")


def _links(source):
    fenced = False
    for number, line in enumerate(source.lines, 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            for match in _LINK.finditer(_INLINE_CODE.sub("", line)):
                yield number, match.group(1) or match.group(2)


def _check_links(root, source):
    folder = (root / source.path).parent
    for number, link in _links(source):
        if _ELSEWHERE.match(link):
            continue
        path = urllib.parse.unquote(link.split("#")[0].split("?")[0])
        target = (root / path.lstrip("/")) if path.startswith("/") else (folder / path)
        if not target.exists():
            yield source.path, number, f"link to '{link}': there is no such file"


def _check_shell(root, source):
    result = subprocess.run(["bash", "-n", str(root / source.path)], capture_output=True, text=True,
                            check=False)
    if result.returncode == 0:
        return
    line = re.search(r": line (\d+): (.*)", result.stderr)
    yield (source.path, int(line.group(1)) if line else 1,
           f"bash -n: {line.group(2) if line else result.stderr.strip()}")


def check(root, files):
    for source in files:
        for number, line in enumerate(source.lines, 1):
            match = _UNFINISHED.search(line)
            if match:
                yield source.path, number, f"'{match.group(0)}': finish it or file an issue"
        if source.path.endswith(".md"):
            yield from _check_links(root, source)
        if source.is_shell:
            yield from _check_shell(root, source)

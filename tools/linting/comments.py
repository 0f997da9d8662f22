"""Contracts: every header begins with a comment that says what it is for, and what it declares at
namespace scope is explained: by a comment before it, by one that begins the group it stands in
(lines without a blank one between), by the header's own for its first class or function, or by that
of an overload. Structs may instead explain their members; enumerations, specialisations and
functions defined in the header may stand for themselves. Headers for tests are left alone."""
import re

from linting import braces

_FORWARD = re.compile(r"(?:class|struct|enum(?:\s+class)?)\s+\w+(?:\s*:\s*\w+)?\s*$")
_TYPE = re.compile(r"(?:template\s*<(?!>)[^>]*>\s*)?(class|struct|union|enum)\b")
_NO_FUNCTION = re.compile(r"(?:using|typedef|static_assert|friend|extern\s+template)\b"
                          r"|template\s*<>|[A-Z][A-Z0-9_]*\s*\(")
_FUNCTION = re.compile(r"[\w>&*\]]\s+[&*]*[\w:~]+\s*\(|\boperator\b")
_OPENS = re.compile(r"\s*(?:(?:inline\s+)?namespace\b.*|extern\s+\"C\".*)\{\s*$")


def _needs_comment(source, declaration):
    text = declaration.text
    if declaration.kind == "type":
        kind = _TYPE.match(text)
        if not kind or kind.group(1) == "enum":
            return False
        body = source.text[declaration.begin:source.plain_code.find("\n}", declaration.begin)]
        return kind.group(1) == "class" or "//" not in body
    if declaration.kind == "function" or _FORWARD.match(text) or _NO_FUNCTION.match(text):
        return False
    before_parenthesis = text.split("(")[0]
    return "=" not in before_parenthesis.replace("operator=", "") and bool(_FUNCTION.search(text))


def _name(declaration):
    match = re.search(r"([\w:~]+)\s*\(", declaration.text)
    return match.group(1) if match else declaration.text


def _is_explained(lines, first):
    """Whether a comment is among the lines above line `first` (from 1) up to a blank one."""
    for line in reversed(lines[:first - 1]):
        stripped = line.strip()
        if stripped.startswith(("//", "*", "/*")) or stripped.endswith("*/"):
            return True
        if not stripped or stripped.startswith("#") or _OPENS.match(line):
            return False
        if "//" in stripped:
            return True
    return False


# Headers that imitate those of a library, whose documentation states the contracts.
_OF_OTHERS = [f"compute/backend/cuda/emulated/{name}.h" for name in ("cuda_runtime", "cublas_v2")]


def _what(declaration):
    text = " ".join(declaration.text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def _check_declarations(source):
    explained = set()
    own_comment_is_free = True  # of the header
    for declaration in braces.declarations(source.plain_code):
        if not declaration.at_namespace:
            continue
        first = source.line_of(declaration.begin)
        needs_comment = _needs_comment(source, declaration)
        if _is_explained(source.lines, first):
            explained.add(_name(declaration))
        elif needs_comment and own_comment_is_free:
            explained.add(_name(declaration))
            own_comment_is_free = False
        elif needs_comment and _name(declaration) not in explained:
            yield (source.path, first,
                   f"no comment states the contract of '{_what(declaration)}'")


def check(root, files):
    for source in files:
        if not source.is_header or source.path in _OF_OTHERS:
            continue
        if not source.lines[0].startswith("//"):
            yield source.path, 1, "a header begins with a comment that says what it is for"
        elif not source.is_test:
            yield from _check_declarations(source)

"""C++ text as declarations: enough to find functions and what is at namespace scope, in code that
clang-format has laid out. No parser: macros are taken at face value."""
import re
from dataclasses import dataclass

_BRACES = re.compile(r"[{}();]")
_ACCESS = re.compile(r"\s*(?:public|private|protected)\s*:(?!:)")
_TEMPLATE = re.compile(r"\s*template\s*<")
_ATTRIBUTE = re.compile(r"\s*\[\[[^\]]*\]\]")
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\b|\s*extern\s+\"")
_TYPE = re.compile(r"\s*(?:typedef\s+)?(class|struct|union|enum)\b")


@dataclass
class Declaration:
    kind: str              # "function", "type", "statement"
    begin: int             # offset of its first character
    end: int               # offset of its last character
    at_namespace: bool     # not inside a class
    text: str              # up to the brace or semicolon


def _skip_template(text):
    """The offset behind template<...> prefixes and attributes."""
    offset = 0
    while True:
        attribute = _ATTRIBUTE.match(text, offset)
        if attribute:
            offset = attribute.end()
            continue
        template = _TEMPLATE.match(text, offset)
        if not template:
            return offset
        depth, offset = 1, template.end()
        while offset < len(text) and depth:
            depth += {"<": 1, ">": -1}.get(text[offset], 0)
            offset += 1


def _top_level(text):
    """`text` without what is in parentheses, and with `operator` names left out."""
    text = re.sub(r"\boperator\s*(\(\)|[^\s\w(]+)", "operator ", text)
    depth, kept = 0, []
    for character in text:
        depth -= character == ")"
        if depth == 0:
            kept.append(character)
        depth += character == "("
    return "".join(kept)


def _kind_of_block(text):
    """What a brace after `text` at namespace or class scope opens."""
    text = text[_skip_template(text):]
    if _NAMESPACE.match(text):
        return "namespace"
    top = _top_level(text)
    is_type = _TYPE.match(text)
    if is_type and "(" not in re.sub(r"\b(alignas|__attribute__)\s*\([^{]*\)", "", text):
        return "enum" if is_type.group(1) == "enum" else "class"
    if "=" in top:
        return "function" if re.search(r"=\s*\[", top) else "other"
    return "function" if "(" in text else "other"


def declarations(code):
    """Of code without comments, strings and directives (Source.plain_code)."""
    found = []
    stack = [("namespace", 0)]  # (kind of block, begin of its declaration)
    begin, parens = 0, 0

    def first(offset, limit):
        access = _ACCESS.match(code, offset, limit)
        while access:
            offset = access.end()
            access = _ACCESS.match(code, offset, limit)
        while offset < limit and code[offset].isspace():
            offset += 1
        return offset

    for match in _BRACES.finditer(code):
        offset, character = match.start(), match.group(0)
        kind = stack[-1][0]
        at_scope = kind in ("namespace", "class")
        if character in "()":
            if at_scope:
                parens = max(0, parens + (1 if character == "(" else -1))
        elif character == "{":
            start = first(begin, offset)
            opened = "other"
            if at_scope and parens == 0:
                opened = _kind_of_block(code[start:offset])
            stack.append((opened, start))
            if opened in ("namespace", "class"):
                if opened == "class" and kind == "namespace":
                    found.append(Declaration("type", start, offset, True, code[start:offset]))
                begin = offset + 1
            elif opened == "enum" and kind == "namespace":
                found.append(Declaration("type", start, offset, True, code[start:offset]))
        elif character == "}":
            if len(stack) == 1:
                continue
            kind, start = stack.pop()
            if kind == "function":
                found.append(Declaration("function", start, offset,
                                         stack[-1][0] == "namespace",
                                         code[start:code.index("{", start)]))
            if kind in ("function", "namespace", "class"):
                begin = offset + 1
        elif at_scope and parens == 0:
            start = first(begin, offset)
            if kind == "namespace" and code[start:offset].strip():
                found.append(Declaration("statement", start, offset, True, code[start:offset]))
            begin = offset + 1
    return found

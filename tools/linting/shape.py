"""Sizes and guards: functions, files, lines, include guards."""
import re

from linting import braces

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
LINE_COLUMNS_MAX = 100

# On a line of a CUDA kernel, or right above it, with a reason behind it.
KERNEL_WAIVER = "lint: long kernel:"

_NAME = re.compile(r"([~\w:]+|operator\s*\S+?)\s*\(")


def _name(text):
    match = _NAME.search(text)
    return match.group(1) if match else "this function"


def _function_lengths(source):
    for declaration in braces.declarations(source.plain_code):
        if declaration.kind != "function":
            continue
        first = source.line_of(declaration.begin)
        last = source.line_of(declaration.end)
        lines = last - first + 1
        if lines <= FUNCTION_LINES_MAX:
            continue
        is_cuda = source.path.endswith(".cu") or "_cuda." in source.path
        if is_cuda and any(KERNEL_WAIVER in line for line in source.lines[max(0, first - 2):last]):
            continue
        yield (source.path, first,
               f"{_name(declaration.text)} has {lines} lines, {FUNCTION_LINES_MAX} are allowed")


def _guard(source):
    guard = "LONGHAUL_" + re.sub(r"[^A-Z0-9]", "_", source.path.upper()) + "_"
    directives = [(n, line) for n, line in enumerate(source.lines, 1) if line.startswith("#")]
    wanted = [f"#ifndef {guard}", f"#define {guard}"]
    for (number, line), want in zip(directives, wanted):
        if line != want:
            yield source.path, number, f"include guard: expected '{want}'"
            return
    if len(directives) < 3 or directives[-1][1] != f"#endif  // {guard}":
        yield (source.path, directives[-1][0] if directives else 1,
               f"include guard: expected '#endif  // {guard}' at the end")


def check(root, files):
    for source in files:
        written_by_hand = source.is_cpp or source.is_shell or source.is_python or \
            source.path.endswith((".proto", ".cmake", "CMakeLists.txt"))
        if not written_by_hand:
            continue
        for number, line in enumerate(source.lines, 1):
            if len(line) > LINE_COLUMNS_MAX:
                yield (source.path, number,
                       f"{len(line)} columns, {LINE_COLUMNS_MAX} are allowed")
        if source.data and not source.data.endswith(b"\n"):
            yield source.path, len(source.lines), "no end of line at the end of the file"
        count = len(source.lines) - 1
        if count > FILE_LINES_MAX:
            yield source.path, count, f"{count} lines, {FILE_LINES_MAX} are allowed in a file"
        if source.is_cpp:
            yield from _function_lengths(source)
        if source.is_header:
            yield from _guard(source)

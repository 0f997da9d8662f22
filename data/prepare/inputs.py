"""Text files and JSON lines as documents, in pieces of bounded size."""
import json

from failures import BadInput

# A document longer than this is tokenized in pieces. Small enough that a batch of pieces keeps all
# cores busy, large enough that the few tokens at the cuts do not matter.
PIECE_BYTES = 1 << 16
# A JSON object must be in memory as a whole.
JSON_LINE_BYTES_MAX = 1 << 28
_BLOCK_BYTES = 1 << 16
_SPACES = b" \t\n\r\f\v"


def _cut_position(buffer):
    """Where to cut a long piece: in front of a line that begins with no space, else in front of a
    space, else between two characters. Tokenizers split there anyway, most of the time."""
    end = len(buffer)
    while (newline := buffer.rfind(b"\n", 0, end)) > 0:
        if newline + 1 < len(buffer) and buffer[newline + 1] not in _SPACES:
            return newline + 1
        end = newline
    space = max(buffer.rfind(b" "), buffer.rfind(b"\n"))
    if space > 0:
        return space
    cut = len(buffer)
    while cut > len(buffer) - 4 and buffer[cut - 1] & 0xC0 == 0x80:
        cut -= 1
    # At the first byte of a character, which may be incomplete.
    return cut - 1 if cut > 1 and buffer[cut - 1] & 0x80 else len(buffer)


class Reader:
    """Yields (piece, ends_document) of files one after another. `position` is the number of bytes
    read so far. Pieces are str, or bytes if not `decodes`. Raises BadInput and OSError."""

    def __init__(self, paths, jsonl_field, separator, decodes):
        self.position = 0
        self._paths = paths
        self._jsonl_field = jsonl_field
        self._separator = separator
        self._decodes = decodes
        self._path = None
        self._line = 1  # of the buffer's first byte
        self._buffer = bytearray()
        self._begun = False  # a piece of the current document was yielded

    def pieces(self):
        for path in self._paths:
            self._path, self._line = path, 1
            with open(path, "rb") as file:
                if self._is_jsonl(path):
                    yield from self._json_lines(file)
                else:
                    walk = {"files": self._whole, "lines": self._lines, "blank": self._paragraphs}
                    yield from walk[self._separator](file)

    def _is_jsonl(self, path):
        return self._jsonl_field is not None or path.endswith((".jsonl", ".ndjson"))

    def _whole(self, file):
        while block := file.read(_BLOCK_BYTES):
            self.position += len(block)
            yield from self._add(block)
        yield from self._end()

    def _parts_of_lines(self, file):
        """(bytes, whether they begin a line, whether they end one): a long line comes in parts."""
        begins = True
        while part := file.readline(_BLOCK_BYTES):
            self.position += len(part)
            ends = part.endswith(b"\n")
            yield part, begins, ends
            begins = ends

    def _lines(self, file):
        number = 1
        for part, _, ends in self._parts_of_lines(file):
            if not self._begun and not self._buffer:
                self._line = number
            yield from self._add(part.rstrip(b"\r\n") if ends else part)
            if ends:
                yield from self._end()
                number += 1
        yield from self._end()

    def _paragraphs(self, file):
        number = 1
        newline = b""  # that ended the last line; part of the document only if a line follows
        blank = True   # so far
        for part, begins, ends in self._parts_of_lines(file):
            blank = not part.strip(_SPACES) and (blank or begins)
            if blank and ends:
                yield from self._end()
                newline = b""
            elif not blank:
                if not self._begun and not self._buffer:
                    self._line = number
                    newline = b""
                body = part.rstrip(b"\r\n") if ends else part
                yield from self._add(newline + body)
                newline = part[len(body):]
            number += ends
        yield from self._end()

    def _json_lines(self, file):
        field = self._jsonl_field or "text"
        number = 0
        while line := file.readline(JSON_LINE_BYTES_MAX + 1):
            number += 1
            self.position += len(line)
            self._line = number
            if len(line) > JSON_LINE_BYTES_MAX:
                raise self._bad(number, f"longer than {JSON_LINE_BYTES_MAX >> 20} MiB")
            if not line.strip():
                continue
            yield from self._add(self._json_text(line, field, number))
            yield from self._end()

    def _json_text(self, line, field, number):
        try:
            value = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise self._bad(number, f"not UTF-8 at byte {error.start + 1} of the line") from None
        except (ValueError, RecursionError) as error:
            raise self._bad(number, f"invalid JSON: {error}") from None
        if not isinstance(value, dict):
            raise self._bad(number, "not a JSON object")
        if field not in value:
            known = ", ".join(sorted(map(str, value))[:8])
            raise self._bad(number, f"no field '{field}'; it has {known or 'none'}")
        if not isinstance(value[field], str):
            raise self._bad(number, f"field '{field}' is no text")
        try:
            return value[field].encode("utf-8")
        except UnicodeEncodeError:
            raise self._bad(number, f"field '{field}' has half a surrogate pair") from None

    def _add(self, data):
        self._buffer += data
        while len(self._buffer) > PIECE_BYTES:
            cut = _cut_position(self._buffer[:PIECE_BYTES])
            yield self._take(cut), False
            self._begun = True

    def _end(self):
        """Ends the document; one without any text is none."""
        if self._buffer or self._begun:
            yield self._take(len(self._buffer)), True
        self._begun = False

    def _take(self, count):
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        first_line = self._line
        if not self._is_jsonl(self._path):
            self._line += data.count(b"\n")
        if not self._decodes:
            return data
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = first_line + data.count(b"\n", 0, error.start)
            raise self._bad(line, f"not UTF-8 (byte 0x{data[error.start]:02x})") from None

    def _bad(self, line, what):
        return BadInput(f"{self._path}:{line}: {what}")

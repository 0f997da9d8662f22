"""Token files: plain, with llm.c's header, and Megatron's pair (docs/formats.md). Each is written
under a temporary name and appears under its own only when complete and on the disk. A signal must
not come between `appear` and its end: it may replace several files."""
import contextlib
import os
import struct
from array import array

from failures import BadInput

_HEADER_NUMBERS = 256
_LLMC = {"H": (20240520, 1), "I": (20240801, 7)}
_LLMC_TOKENS_MAX = 2**31 - 1
_MEGATRON_HEADER = struct.Struct("<9sQBQQ")
_MEGATRON_TYPES = {"H": 8, "i": 4}  # its DType: uint16, int32
_SEQUENCE_TOKENS_MAX = 2**31 - 1
_NUMBERS_AT_ONCE = 1 << 16


class _File:
    """One file under a temporary name beside its own."""

    def __init__(self, path):
        self.path = path
        self._temporary = f"{path}.tmp-{os.getpid()}"
        self.stream = open(self._temporary, "xb+")

    def sync(self):
        self.stream.flush()
        os.fsync(self.stream.fileno())
        self.stream.close()

    def appear(self):
        os.replace(self._temporary, self.path)
        folder = os.open(os.path.dirname(self.path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def abandon(self):
        with contextlib.suppress(OSError):  # what it still wanted to write is not wanted
            self.stream.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temporary)


class PlainOutput:
    """Tokens one after another; with llm.c's header in front if `headed`."""

    def __init__(self, path, typecode, headed):
        self.paths = [path]
        self.typecode = typecode
        self.tokens = self.documents = 0
        self._headed = headed
        self._file = _File(path)
        if headed:
            self._file.stream.write(bytes(_HEADER_NUMBERS * 4))

    def write(self, ids):
        self.tokens += len(ids)
        if self._headed and self.tokens > _LLMC_TOKENS_MAX:
            raise BadInput(f"llm.c's header counts at most {_LLMC_TOKENS_MAX} tokens; use "
                           "--format megatron or raw, or several files")
        ids.tofile(self._file.stream)

    def end_document(self):
        self.documents += 1

    def complete(self):
        if self._headed:
            magic, version = _LLMC[self.typecode]
            self._file.stream.seek(0)
            self._file.stream.write(struct.pack("<3i", magic, version, self.tokens))
        self._file.sync()

    def appear(self):
        self._file.appear()

    def abandon(self):
        self._file.abandon()


class MegatronOutput:
    """PREFIX.bin and PREFIX.idx, one sequence a document."""

    def __init__(self, prefix, typecode):
        self.paths = [prefix + ".bin", prefix + ".idx"]
        self.typecode = typecode
        self.tokens = self.documents = 0
        self._begin = 0  # of the current document
        self._tokens_file = _File(self.paths[0])
        try:
            self._index_file = _File(self.paths[1])
        except OSError:
            self._tokens_file.abandon()
            raise
        self._lengths = array("i")  # not yet written
        self._index_file.stream.write(bytes(_MEGATRON_HEADER.size))

    def write(self, ids):
        self.tokens += len(ids)
        if self.tokens - self._begin > _SEQUENCE_TOKENS_MAX:
            raise BadInput(f"document {self.documents + 1} has more than {_SEQUENCE_TOKENS_MAX} "
                           "tokens, which Megatron's index cannot hold")
        ids.tofile(self._tokens_file.stream)

    def end_document(self):
        self.documents += 1
        self._lengths.append(self.tokens - self._begin)
        self._begin = self.tokens
        if len(self._lengths) >= _NUMBERS_AT_ONCE:
            self._flush_lengths()

    def _flush_lengths(self):
        self._lengths.tofile(self._index_file.stream)
        del self._lengths[:]

    def _write_pointers(self):
        """The byte offset of each sequence: the sums of the lengths, read back."""
        stream = self._index_file.stream
        offset = done = 0
        width = array(self.typecode).itemsize
        while done < self.documents:
            lengths = array("i")
            count = min(_NUMBERS_AT_ONCE, self.documents - done)
            stream.seek(_MEGATRON_HEADER.size + done * lengths.itemsize)
            lengths.fromfile(stream, count)
            pointers = array("q")
            for length in lengths:
                pointers.append(offset)
                offset += length * width
            stream.seek(0, os.SEEK_END)
            pointers.tofile(stream)
            done += count

    def _write_documents(self):
        for first in range(0, self.documents + 1, _NUMBERS_AT_ONCE):
            last = min(first + _NUMBERS_AT_ONCE, self.documents + 1)
            array("q", range(first, last)).tofile(self._index_file.stream)

    def complete(self):
        self._flush_lengths()
        self._write_pointers()
        self._write_documents()
        self._index_file.stream.seek(0)
        self._index_file.stream.write(
            _MEGATRON_HEADER.pack(b"MMIDIDX\0\0", 1, _MEGATRON_TYPES[self.typecode],
                                  self.documents, self.documents + 1))
        self._tokens_file.sync()
        self._index_file.sync()

    def appear(self):
        # The index makes the pair complete: an older one must not stand beside the new tokens.
        if os.path.exists(self.paths[1]):
            os.unlink(self.paths[1])
        self._tokens_file.appear()
        self._index_file.appear()

    def abandon(self):
        self._tokens_file.abandon()
        self._index_file.abandon()


def paths_of(to, form):
    """The files that an output named `to` consists of."""
    if form != "megatron":
        return [to]
    prefix = to[:-4] if to.endswith((".bin", ".idx")) else to
    return [prefix + ".bin", prefix + ".idx"]


def open_output(to, form, wide):
    paths = paths_of(to, form)
    if form == "megatron":
        return MegatronOutput(paths[0][:-4], "i" if wide else "H")
    return PlainOutput(to, "I" if wide else "H", headed=form == "llmc")

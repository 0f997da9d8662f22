#!/usr/bin/env python3
"""Runs the tool as a user does and compares its files with what struct and plain Python make of the
same input. The cases of the `tokenizers` library run where it is installed (or with
LONGHAUL_PYTHON, a Python that has it) and are skipped and counted elsewhere.
"""
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent
PYTHON = os.environ.get("LONGHAUL_PYTHON", sys.executable)
HAS_LIBRARY = subprocess.run([PYTHON, "-c", "import tokenizers"], capture_output=True,
                             check=False).returncode == 0


class PrepareTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="longhaul-prepare-")
        self.folder = Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, name, content):
        (self.folder / name).write_bytes(content)
        return name

    def run_tool(self, *arguments, tokenizer="bytes", **options):
        command = [PYTHON, TOOL, *map(str, arguments), "--tokenizer", tokenizer]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True,
                              timeout=60, check=False, **options)

    def ok(self, *arguments, **options):
        done = self.run_tool(*arguments, "--output", "json", **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, message, *arguments, code=2, **options):
        before = sorted(os.listdir(self.folder))
        done = self.run_tool(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def tokens(self, name, width="H"):
        data = (self.folder / name).read_bytes()
        return list(struct.unpack(f"<{len(data) // struct.calcsize(width)}{width}", data))

    def documents(self, *arguments, **options):
        """The documents as bytes, cut at token 256."""
        self.ok(*arguments, "--to", "x.bin", "--format", "raw", "--force", "--end-of-document",
                256, **options)
        documents, current = [], bytearray()
        for token in self.tokens("x.bin"):
            if token == 256:
                documents.append(bytes(current))
                current.clear()
            else:
                current.append(token)
        self.assertFalse(current, "text behind the last document")
        return documents


class Report(PrepareTest):
    def test_one_is_singular(self):
        self.write("a", b"x")
        done = self.run_tool("a", "--to", "a.bin", "--end-of-document", "none")
        self.assertIn("a.bin: 1 token in 1 document\n", done.stdout)


class Separators(PrepareTest):
    TEXT = "one\ntwo é\r\n\n  \nthree\n\n\nfour\nfive".encode()

    def test_files(self):
        self.write("a", self.TEXT)
        self.write("b", b"b")
        self.write("empty", b"")
        self.assertEqual(self.documents("a", "empty", "b"), [self.TEXT, b"b"])

    def test_lines(self):
        self.write("a", self.TEXT)
        self.assertEqual(self.documents("a", "--documents", "lines"),
                         ["one".encode(), "two é".encode(), b"  ", b"three", b"four", b"five"])

    def test_blank(self):
        self.write("a", self.TEXT)
        self.assertEqual(self.documents("a", "--documents", "blank"),
                         ["one\ntwo é".encode(), b"three", b"four\nfive"])

    def test_json_lines(self):
        rows = [{"text": "one\ntwo"}, {"id": 7, "text": "\u00e9\U0001f600"}, {"text": ""}]
        self.write("a.jsonl", "\n\n".join(map(json.dumps, rows)).encode())
        self.assertEqual(self.documents("a.jsonl"), [b"one\ntwo", "\u00e9\U0001f600".encode()])
        self.write("b", b'{"body": "x"}\n')
        self.assertEqual(self.documents("b", "--jsonl-field", "body"), [b"x"])

    def test_long_documents_and_lines(self):
        text = b"".join(b"%d words\n \xc3\xa9" % n * (n % 3 + 1) for n in range(60000))
        self.assertGreater(len(text), 1 << 20)
        self.write("a", text)
        self.assertEqual(self.documents("a"), [text])
        flat = text.replace(b"\n", b"")
        self.write("b", flat + b"\n" + flat[:100000])
        self.assertEqual(self.documents("b", "--documents", "lines"), [flat, flat[:100000]])
        self.assertEqual(self.documents("b", "--documents", "blank"),
                         [flat + b"\n" + flat[:100000]])
        one_word = "é".encode() * 200000
        self.write("c", one_word)
        self.assertEqual(self.documents("c"), [one_word])


class Formats(PrepareTest):
    def setUp(self):
        super().setUp()
        self.write("a", b"abc\nde")

    def test_llmc(self):
        shown = self.ok("a", "--to", "x.bin", "--documents", "lines", "--end-of-document", 300)
        data = (self.folder / "x.bin").read_bytes()
        self.assertEqual(struct.unpack("<3i", data[:12]), (20240520, 1, 7))
        self.assertEqual(data[12:1024], bytes(1012))
        self.assertEqual(struct.unpack("<7H", data[1024:]), (97, 98, 99, 300, 100, 101, 300))
        self.assertEqual(shown, {"files": ["x.bin"], "format": "llmc", "tokens": 7, "documents": 2,
                                 "vocab": 301, "width": "uint16", "end_of_document": 300})

    def test_llmc_wide(self):
        self.ok("a", "--to", "x.bin", "--width", 32)
        data = (self.folder / "x.bin").read_bytes()
        self.assertEqual(struct.unpack("<3i", data[:12]), (20240801, 7, 6))
        self.assertEqual(struct.unpack("<6I", data[1024:]), tuple(b"abc\nde"))

    def test_raw(self):
        self.ok("a", "--to", "x.bin", "--format", "raw")
        self.assertEqual(self.tokens("x.bin"), list(b"abc\nde"))
        self.ok("a", "--to", "y.bin", "--format", "raw", "--end-of-document", 70000)
        self.assertEqual(self.tokens("y.bin", "I"), [*b"abc\nde", 70000])

    def test_megatron(self):
        self.ok("a", "--to", "x", "--format", "megatron", "--documents", "lines")
        self.assertEqual(self.tokens("x.bin"), list(b"abcde"))
        expected = (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 2, 3) + struct.pack("<2i", 3, 2) +
                    struct.pack("<2q", 0, 6) + struct.pack("<3q", 0, 1, 2))
        self.assertEqual((self.folder / "x.idx").read_bytes(), expected)

    def test_megatron_of_many_documents(self):
        count = 150000
        self.write("many", b"".join(b"x" * (n % 3 + 1) + b"\n" for n in range(count)))
        self.ok("many", "--to", "x.idx", "--format", "megatron", "--documents", "lines", "--width",
                32)
        data = (self.folder / "x.idx").read_bytes()
        self.assertEqual(struct.unpack_from("<9sQBQQ", data),
                         (b"MMIDIDX\0\0", 1, 4, count, count + 1))
        lengths = [n % 3 + 1 for n in range(count)]
        pointers = [0]
        for length in lengths:
            pointers.append(pointers[-1] + 4 * length)
        self.assertEqual(data[34:], struct.pack(f"<{count}i", *lengths) +
                         struct.pack(f"<{count}q", *pointers[:-1]) +
                         struct.pack(f"<{count + 1}q", *range(count + 1)))
        self.assertEqual((self.folder / "x.bin").stat().st_size, pointers[-1])


class Refusals(PrepareTest):
    def test_inputs(self):
        self.write("good", b"x\ny")
        self.write("latin", b"one\ntwo\n\xe9t\xe9\n")
        self.write("empty", b"\n\n")
        self.refused("none", "none", "--to", "x.bin")
        self.refused("is a folder", ".", "--to", "x.bin")
        self.refused("both input and output", "good", "--to", "./good", "--force")
        self.refused("good exists", "latin", "--to", "good")
        self.refused("does not exist", "good", "--to", "no/x.bin")
        self.refused("no text", "empty", "--to", "x.bin", "--documents", "lines")
        self.refused("no token 'x'", "good", "--to", "x.bin", "--end-of-document", "x")
        self.refused("more than the 65536", "good", "--to", "x.bin", "--end-of-document", 65536,
                     "--width", 16)
        self.refused("tokenizer.json, or bytes", "good", "--to", "x.bin", tokenizer="none.json")

    def test_json_lines(self):
        def refused(message, content):
            self.write("a.jsonl", b'{"text": "fine"}\n' + content)
            self.refused(f"a.jsonl:2: {message}", "a.jsonl", "--to", "x.bin")

        refused("invalid JSON", b'{"text": "x"')
        refused("invalid JSON", b"[" * 100000)
        refused("not a JSON object", b'["text"]')
        refused("no field 'text'; it has body", b'{"body": "x"}')
        refused("field 'text' is no text", b'{"text": null}')
        refused("not UTF-8 at byte 11", b'{"text": "\xe9"}')
        refused("field 'text' has half a surrogate pair", b'{"text": "\\ud800"}')

    def test_an_old_output_stays(self):
        self.write("bad.jsonl", b'{"text": "a"}\n{')
        self.write("x.bin", b"old")
        self.refused("bad.jsonl:2", "bad.jsonl", "--to", "x.bin", "--force")
        self.assertEqual((self.folder / "x.bin").read_bytes(), b"old")

    def test_full_disk(self):
        self.write("a", b"x" * 100000)
        self.refused("x.bin: File too large", "a", "--to", "x.bin", code=1,
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))


class Circumstances(PrepareTest):
    def test_memory_is_bounded(self):
        """80 MiB in one document without a break, in at most 64 MiB of address space."""
        with open(self.folder / "big", "wb") as file:
            file.truncate(80 << 20)
        limit = 64 << 20
        shown = self.ok("big", "--to", "x", "--format", "megatron",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(shown["tokens"], 80 << 20)

    def test_a_signal_leaves_nothing(self):
        with open(self.folder / "big", "wb") as file:
            file.truncate(1 << 32)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [PYTHON, TOOL, "big", "--tokenizer", "bytes", "--to", "x.bin", "--format", "raw"],
                cwd=self.folder, stderr=subprocess.PIPE, text=True)
            deadline = time.monotonic() + 60
            while len(os.listdir(self.folder)) < 2 and time.monotonic() < deadline:
                self.assertIsNone(process.poll())
            process.send_signal(number)
            _, message = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -number)
            self.assertIn("nothing was written", message)
            self.assertEqual(os.listdir(self.folder), ["big"])

    def test_a_signal_amid_the_renames_waits_for_them(self):
        script = """
import os, runpy, signal, sys
replace = os.replace
def interrupted(*paths):
    os.kill(os.getpid(), signal.SIGTERM)
    replace(*paths)
os.replace = interrupted
sys.path.insert(0, sys.argv[1])
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""
        self.write("text", b"new")
        for form, paths in (("megatron", ["x.bin", "x.idx"]), ("raw", ["x.bin"])):
            for path in paths:
                self.write(path, b"old")
            done = subprocess.run(
                [PYTHON, "-c", script, TOOL, "text", "--tokenizer", "bytes", "--to", "x.bin",
                 "--format", form, "--force"],
                cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, -signal.SIGTERM, done.stderr)
            self.assertIn("x.bin", done.stderr)
            self.assertNotIn("nothing was written", done.stderr)
            self.assertEqual(set(os.listdir(self.folder)), {"text", "x.bin", "x.idx"})
            for path in paths:
                self.assertNotEqual((self.folder / path).read_bytes(), b"old")


@unittest.skipUnless(HAS_LIBRARY, "Python's tokenizers is not installed")
class Library(PrepareTest):
    """Against the library's own answer for the whole text."""

    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory(prefix="longhaul-tokenizer-")
        cls.path = os.path.join(cls.made.name, "tokenizer.json")
        script = """
import sys, tokenizers as t
tokenizer = t.Tokenizer(t.models.BPE())
tokenizer.pre_tokenizer = t.pre_tokenizers.ByteLevel(add_prefix_space=False)
trainer = t.trainers.BpeTrainer(vocab_size=400, special_tokens=["<|endoftext|>"],
                                initial_alphabet=t.pre_tokenizers.ByteLevel.alphabet())
tokenizer.train_from_iterator([open(sys.argv[1]).read()], trainer)
tokenizer.enable_truncation(4)
tokenizer.enable_padding(length=9)
tokenizer.save(sys.argv[2])
"""
        subprocess.run([PYTHON, "-c", script, __file__, cls.path], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def ids(self, text):
        script = """
import sys, tokenizers as t
tokenizer = t.Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation(); tokenizer.no_padding()
print(tokenizer.encode(sys.stdin.read(), add_special_tokens=False).ids)
"""
        done = subprocess.run([PYTHON, "-c", script, self.path], input=text, capture_output=True,
                              text=True, check=True)
        return json.loads(done.stdout)

    def test_text(self):
        source = Path(__file__).read_text()
        text = "".join(f"# part {n}\n{source}" for n in range(20))  # several pieces
        self.write("a", text.encode())
        shown = self.ok("a", "--to", "x.bin", "--format", "raw", tokenizer=self.path)
        self.assertEqual(self.tokens("x.bin"), [*self.ids(text), 0])
        self.assertEqual(shown["end_of_document"], 0)
        self.assertLessEqual(shown["vocab"], 400)

    def test_documents_and_end(self):
        self.write("a.jsonl", b'{"text": "def main"}\n{"text": "return x"}\n')
        first, second = self.ids("def main"), self.ids("return x")
        self.ok("a.jsonl", "--to", "x", "--format", "megatron", tokenizer=self.path)
        self.assertEqual(self.tokens("x.bin"), [*first, 0, *second, 0])
        self.ok("a.jsonl", "--to", "y.bin", "--format", "raw", "--end-of-document", "none",
                tokenizer=self.path)
        self.assertEqual(self.tokens("y.bin"), [*first, *second])

    def test_refusals(self):
        self.write("latin", b"one\ntwo\n\xe9t\xe9\n")
        for separator in ("files", "lines", "blank"):
            self.refused("latin:3: not UTF-8 (byte 0xe9)", "latin", "--to", "x.bin",
                         "--documents", separator, tokenizer=self.path)
        self.write("text", b"x")
        self.refused("no tokenizer.json", "text", "--to", "x.bin", tokenizer="text")


if __name__ == "__main__":
    unittest.main()

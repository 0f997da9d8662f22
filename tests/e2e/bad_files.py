"""Files that must be refused: of runs, data, graphs, and what is no file at all. The cases of the
refusal test that are about files."""

import json
import os
import struct
import subprocess

from harness import BIN, Failure, run_file
from refusals import AS_ANYONE, BAD_INPUT, FAILED, daemon_refused


def bad_run_files(check):
    good = run_file("bad")

    def changed(old, new):
        if old not in good:
            raise Failure(f"the sample has no '{old}'")
        return good.replace(old, new)

    line = good[:good.index("micro_batch:")].count("\n") + 1
    check.file_refused("misspelt key", [rf"bad\.yaml:{line}:", "micro_bach", "micro_batch"],
                       changed("micro_batch:", "micro_bach:"))
    check.file_refused("unknown section", ["bad.yaml", "exchang", "exchange"],
                       changed("exchange:", "exchang:"))
    check.file_refused("wrong type", ["steps", "many"], changed("steps: 20", "steps: many"))
    check.file_refused("out of range", ["steps"], changed("steps: 20", "steps: 0"))
    check.file_refused("negative", ["learning_rate"],
                       changed("learning_rate: 3.0e-3", "learning_rate: -1"))
    check.file_refused("heads do not divide", ["heads", "hidden"], changed("heads: 4", "heads: 3"))
    check.file_refused("micro-batch does not divide", ["micro_batch", "global_batch"],
                       changed("micro_batch: 1", "micro_batch: 3"))
    check.file_refused("duplicate key", ["seed"], changed("seed: 7", "seed: 7\n  seed: 8"))
    check.file_refused("unknown codec", ["codec", "none"], changed("codec: none", "codec: gzip"))
    check.file_refused("unknown schedule", ["schedule", "gpipe"],
                       changed("schedule: 1f1b", "schedule: zigzag"))
    check.file_refused("unknown family", ["family", "gpt2"],
                       changed("family: gpt2", "family: rnn"))
    check.file_refused("odd name", ["name"], changed("name: bad", "name: ../../etc"))
    check.file_refused("control characters", ["name"], changed("name: bad", 'name: "a\\eb"'))
    check.file_refused("not YAML", [r"bad\.yaml"], "name: [1, 2\n  x: {")
    check.file_refused("empty file", [r"bad\.yaml"], "")
    check.file_refused("more stages than cuts", ["stages", "cannot be cut into more"],
                       changed("stages: auto", "stages: 500"))


def bad_data(check):
    folder = check.cluster.folder

    def with_data(name, content, **options):
        (folder / name).write_bytes(content)
        return run_file("bad", train=name, **options)

    check.file_refused("missing data", ["nothing.txt"], run_file("bad", train="nothing.txt"))
    check.file_refused("empty data", ["empty.txt"], with_data("empty.txt", b""))
    check.file_refused("text shorter than one context", ["short.txt", "context of 32"],
                       with_data("short.txt", b"too short"))
    check.file_refused("vocabulary too small", ["vocab", "128"],
                       with_data("wide.txt", b"x" * 5000 + b"\xc3\xa9" + b"x" * 5000, vocab=128))
    check.file_refused("odd length", ["odd.bin"],
                       with_data("odd.bin", b"\x01\x02\x03" * 3001, tokenizer="uint16"))
    header = (20240520).to_bytes(4, "little") + (1).to_bytes(4, "little")
    truncated = header + (10 ** 6).to_bytes(4, "little") + bytes(1012) + bytes(4000)
    check.file_refused("truncated headed file", ["headed.bin"],
                       with_data("headed.bin", truncated, tokenizer="uint16"))
    secret = folder / "secret.txt"
    secret.write_text("x" * 5000)
    secret.chmod(0)
    (folder / "secret.yaml").write_text(run_file("bad", train="secret.txt"))
    check.refused("unreadable data", BAD_INPUT, ["secret.txt: Permission denied"], "run", "start",
                  folder / "secret.yaml", prefix=AS_ANYONE)
    (folder / "secret.yaml").chmod(0)
    check.refused("unreadable run file", BAD_INPUT, ["secret.yaml: Permission denied"], "run",
                  "start", folder / "secret.yaml", prefix=AS_ANYONE)
    check.file_refused("tokens of no known format", ["plain.bin", "uint16 or uint32"],
                       with_data("plain.bin", bytes(5000), tokenizer="auto"))
    check.file_refused("no such index", ["plain.idx"],
                       run_file("bad", train="plain", tokenizer="megatron"))
    index = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<i3q", 2500, 0, 0, 1)
    for what, patterns, content in (
            ("half an index", ["truncated"], index[:50]),
            ("an index with a count that overflows", ["do not hold exactly"],
             index[:18] + b"\xff" * 8 + index[26:]),
            ("an index of floats", ["type 7"], index[:17] + b"\x07" + index[18:]),
            ("an index of other tokens", ["has 2500 tokens", "has 2000"],
             index[:34] + struct.pack("<i", 2000) + index[38:])):
        (folder / "plain.idx").write_bytes(content)
        check.file_refused(what, ["plain", *patterns],
                           run_file("bad", train="plain.bin", tokenizer="auto"))
    check.file_refused("documents without an end", ["text.txt", "data.end_of_document"],
                       run_file("bad", documents="masked"))
    check.file_refused("an end that never comes", ["no token 7", "data.end_of_document"],
                       run_file("bad", documents="separate", end_of_document=7))
    check.file_refused("an end outside the vocabulary",
                       [r"bad\.yaml:\d+: 'data.end_of_document'", "model.vocab"],
                       run_file("bad", documents="masked", end_of_document=256))
    check.file_refused("nothing but ends", ["one token only"],
                       with_data("ends.txt", b"\n" * 5000, documents="masked",
                                 end_of_document=10))
    (folder / "folder").mkdir()
    check.file_refused("a folder as data", ["folder"], run_file("bad", train="folder"))


def bad_graph_sizes(check):
    """A message about a size in a graph's file names that file, not a key that nobody wrote."""
    folder = check.cluster.folder

    def graph(width):
        table = {"name": "t", "shape": [256, width], "init": "ones", "decays": True}
        ops = [{"op": "embedding", "name": "embedded", "layer": 0, "parameters": ["t"],
                "width": width},
               {"op": "linear", "name": "logits", "layer": 1, "inputs": ["embedded"],
                "parameters": ["t"], "width": 256},
               {"op": "softmax_cross_entropy", "name": "loss", "layer": 1, "inputs": ["logits"]}]
        (folder / "graph.json").write_text(json.dumps(
            {"schema": 1, "vocab": 256, "context": 32, "layers": 1, "parameters": [table],
             "ops": ops}))
        return run_file("bad", graph="graph.json", documents="masked", end_of_document=256)

    check.file_refused("a graph too wide", [r"graph\.json", "operator 'embedded'", "65536"],
                       graph(1 << 17))
    check.file_refused("a token that a graph has not", [r"graph\.json", "model.vocab"], graph(64))


def bad_preparation(check):
    """`data prepare` refuses without a trace; its exit codes are those of every command."""
    folder = check.cluster.folder
    (folder / "rows.jsonl").write_text('{"text": "fine"}\n{"text": 1}\n')
    before = sorted(path.name for path in folder.iterdir())

    def refused(what, patterns, *arguments, code=BAD_INPUT):
        check.refused(what, code, patterns, "data", "prepare", *arguments)

    to = ("--tokenizer", "bytes", "--to", "prepared.bin")
    refused("a field that is no text", [r"rows\.jsonl:2", "'text'"], "rows.jsonl", *to)
    refused("a missing field", [r"rows\.jsonl:1", "'body'"], "rows.jsonl", *to, "--jsonl-field",
            "body")
    refused("no such input", ["absent.txt"], "absent.txt", *to)
    refused("an input like an option", ["--inputs"], *to, "--", "--inputs")
    refused("an output that exists", ["text.txt exists"], "rows.jsonl", "--tokenizer", "bytes",
            "--to", "text.txt")
    refused("an unknown format", ["--format"], "text.txt", *to, "--format", "zip")
    refused("no tokenizer", ["--tokenizer"], "text.txt", "--to", "prepared.bin")
    refused("a vocabulary too large", ["65536"], "text.txt", *to, "--width", "16",
            "--end-of-document", "65536")
    os.environ["LONGHAUL_PYTHON"] = "/nonexistent/python3"
    refused("no Python", ["LONGHAUL_PYTHON", "/nonexistent"], "text.txt", *to, code=FAILED)
    refused("no such tokenizer", ["nowhere.json"], "text.txt", "--tokenizer", "nowhere.json",
            "--to", "prepared.bin")
    del os.environ["LONGHAUL_PYTHON"]
    if sorted(path.name for path in folder.iterdir()) != before:
        raise Failure("a refused preparation left a file")


def not_files(check):
    """A pipe that nobody writes into, a device without end and a folder are refused at once."""
    cluster = check.cluster
    folder = cluster.folder
    os.mkfifo(folder / "pipe", 0o600)
    (folder / "model-of-pipes").mkdir()
    os.mkfifo(folder / "model-of-pipes" / "config.json")
    good = run_file("bad")

    def refused(what, *arguments):
        check.refused(what, BAD_INPUT, ["is not a regular file"], *arguments, timeout=20)

    def with_model(model):
        start, end = good.index("model:"), good.index("data:")
        return f"{good[:start]}model: {model}\n{good[end:]}"

    for bad in ("pipe", "/dev/zero", "folder"):
        refused(f"{bad} as a run's file", "run", "start", bad)
        refused(f"{bad} as a topology", "plan", "twice.yaml", "--topology", bad)
        refused(f"{bad} as a token", "run", "ls", "--token-file", bad)
        tls = ("--tls-ca", bad, "--tls-certificate", bad, "--tls-key", bad)
        refused(f"{bad} as certificates", "run", "ls", *tls)
        check.file_refused(f"{bad} as a graph", ["is not a regular file"],
                           with_model(f"{{graph: {bad}}}"))
        check.file_refused(f"{bad} as data", ["is not a regular file"],
                           run_file("bad", train=bad))
        common = f"site: a\nfolder: {folder}/x\n"
        daemon_refused(cluster, f"{bad} as the cluster's token", "worker",
                       f"{common}cluster_token_file: {folder / bad}\n",
                       ["is not a regular file"], code=BAD_INPUT)
        tls = ", ".join(f"{key}: {folder / bad}" for key in ("certificate", "key", "ca"))
        daemon_refused(cluster, f"{bad} as the daemon's certificates", "worker",
                       f"{common}tls: {{{tls}}}\n", ["is not a regular file"], code=BAD_INPUT)
        done = subprocess.run([BIN / "longhauld", "worker", "--config", folder / bad],
                              capture_output=True, text=True, timeout=20)
        if done.returncode != BAD_INPUT or "is not a regular file" not in done.stderr:
            raise Failure(f"{bad} as a daemon's configuration: {done}")
    check.file_refused("a pipe as config.json", ["config.json is not a regular file"],
                       with_model("{from: model-of-pipes}"))
    refused("a model of pipes", "generate", "--checkpoint", "model-of-pipes", "--prompt", "x")
    (folder / "pipe").unlink()

"""Model folders that `model.from` must refuse before anything is uploaded, and a model for which no
device has the memory. The cases of the refusal test that are about models."""

import json
import shutil
import struct

from harness import Failure, run_file
from refusals import BAD_INPUT, FAILED

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TENSOR = "transformer.h.0.ln_1.weight"


def _file(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class _Model:
    """An exported model of which one part at a time is spoilt."""

    def __init__(self, check, exported):
        self.check = check
        self.source = check.cluster.folder / exported
        self.folder = check.cluster.folder / "spoilt"
        self.bytes = (self.source / WEIGHTS).read_bytes()
        length = struct.unpack("<Q", self.bytes[:8])[0]
        self.text = self.bytes[8:8 + length].rstrip()
        self.data = self.bytes[8 + length:]

    def refused(self, what, patterns, weights=None, others=()):
        shutil.copytree(self.source, self.folder)
        (self.folder / WEIGHTS).unlink()
        files = dict(others) if weights is None else {WEIGHTS: weights}
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        self.check.file_refused(what, ["spoilt/", *patterns], run_file("bad", model_from="spoilt"))
        shutil.rmtree(self.folder)

    def changed(self, **entry):
        """The file with other keys in the entry of one tensor."""
        header = json.loads(self.text)
        header[TENSOR].update(entry)
        return _file(header, self.data)

    def last_value(self, value):
        return self.bytes[:-4] + struct.pack("<f", value)


def _bad_headers(model):
    size = len(model.bytes)
    model.refused("an empty file of weights", [WEIGHTS, "too few"], b"")
    model.refused("half a file of weights", [WEIGHTS, "do not lie in the file"],
                  model.bytes[:size * 2 // 3])
    model.refused("a file of weights without its end", [WEIGHTS, "tensor 'transformer"],
                  model.bytes[:-4])
    model.refused("a header beyond the file", [WEIGHTS, "does not lie in the file"],
                  b"\xff" * 8 + model.bytes[8:])
    model.refused("a header that nests", [WEIGHTS, "nested deeper"],
                  _file(b"[" * 100_000, model.data))
    model.refused("a header that is no text", [WEIGHTS, "not JSON"],
                  _file(b'{"\xff": 1}', model.data))
    twice = model.text[:-1] + b', "' + TENSOR.encode() + b'": {}}'
    model.refused("a tensor named twice", [WEIGHTS, TENSOR, "given twice"],
                  _file(twice, model.data))
    for what, entry, pattern in (
            ("offsets beyond the file", {"data_offsets": [0, 2 ** 63 - 1]}, "offsets"),
            ("offsets beyond 64 bits", {"data_offsets": [0, 2 ** 64]}, "data_offsets"),
            ("negative offsets", {"data_offsets": [-4, 0]}, "data_offsets"),
            ("a shape that overflows", {"shape": [2 ** 32, 2 ** 32]}, "do not fit"),
            ("a shape of fractions", {"shape": [128.0]}, "shape"),
            ("an unknown dtype", {"dtype": "F31"}, "F31")):
        model.refused(what, [WEIGHTS, TENSOR, pattern], model.changed(**entry))
    model.refused("tensors that overlap", [WEIGHTS, "overlaps|leaves a hole"],
                  model.changed(data_offsets=[0, 512]))
    # As many bytes in another type, so that only the type is wrong.
    model.refused("integers for weights", [WEIGHTS, TENSOR, "I32", "not F32"],
                  model.changed(dtype="I32"))
    for value in (float("nan"), float("inf")):
        model.refused(f"a weight of {value}", [WEIGHTS, "tensor 'transformer", str(value)],
                      model.last_value(value))


def _bad_indexes(model):
    names = [name for name in json.loads(model.text) if name != "__metadata__"]

    def refused(what, patterns, file, files=()):
        index = {"weight_map": {**{name: "a.safetensors" for name in names}, names[0]: file}}
        model.refused(what, [INDEX, *patterns],
                      others={INDEX: json.dumps(index).encode(), "a.safetensors": model.bytes,
                              **dict(files)})

    refused("an index that leaves its folder", [names[0], "beside it"], "../a.safetensors")
    refused("an index with a path", [names[0], "beside it"], "/etc/a.safetensors")
    refused("a tensor in another file than the index says", [names[0]], "b.safetensors",
            {"b.safetensors": _file({}, b"")})
    index = json.dumps({"weight_map": {name: "absent.safetensors" for name in names}})
    model.refused("an index of a missing file", ["absent.safetensors", "No such file"],
                  others={INDEX: index.encode()})


def bad_models(check):
    before = check.cluster.json_lines("run", "ls")
    model = _Model(check, "taken")
    _bad_headers(model)
    _bad_indexes(model)
    # 100 layers of 12 * 16384^2 parameters, with gradients and moments: 5 TB.
    check.refused("a model that fits no device", FAILED,
                  ["does not fit into memory", r"stage 0 .* needs \d+ .*, node w\d has \d+",
                   "too little"], "run", "start",
                  check.cluster.write_run("huge", layers=100, hidden=16384, heads=128))
    if check.cluster.json_lines("run", "ls") != before:
        raise Failure(f"a refused run was kept: {check.cluster.ok('run', 'ls')}")

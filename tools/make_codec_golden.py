#!/usr/bin/env python3
"""Writes tests/golden/codecs from docs/formats.md alone, sharing no code with compression/.

Needs numpy, xxhash and zstandard (written with 2.4.6, 4.1.0 and 0.25.0). The output is the same on
every call. Good cases: NAME.f32 are the values, NAME.CODEC their encoding, NAME.CODEC.f32 what a
lossy codec decodes to. Bad cases: bad/NAME.COUNT.CODEC must not decode to COUNT values. Frames:
frame_NAME.bin.
"""

import hashlib
import pathlib
import struct

import numpy as np
import xxhash
import zstandard

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "codecs"
MAGIC = b"LHFR"


def f32(*bits):
    return np.array(bits, dtype=np.uint32).view(np.float32)


def encode_none(values):
    return values.astype("<f4").tobytes()


def encode_bf16(values):
    out = []
    for value in values:
        bits = int(np.float32(value).view(np.uint32))
        if np.isnan(value):
            out.append((bits >> 16) | 0x0040)
            continue
        upper, lower = bits >> 16, bits & 0xFFFF
        if lower > 0x8000 or (lower == 0x8000 and upper % 2 == 1):
            upper += 1
        out.append(upper)
    return np.array(out, dtype="<u2").tobytes()


def decode_bf16(data):
    return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)


def int8_scale(block):
    if not np.all(np.isfinite(block)):
        return f32(0x7FC00000)[0]
    scale = np.float32(np.max(np.abs(block)) / np.float32(127))
    if scale < np.finfo(np.float32).tiny:
        return np.float32(0)
    with np.errstate(over="ignore"):
        if np.isinf(scale * np.float32(127)):
            scale = np.nextafter(scale, np.float32(0))
    return scale


def encode_int8(values):
    out = b""
    for start in range(0, len(values), 256):
        block = values[start : start + 256]
        scale = int8_scale(block)
        if np.isnan(scale) or scale == 0:
            quanta = np.zeros(len(block), np.int8)
        else:
            quanta = np.rint(block / scale).astype(np.int8)
        out += struct.pack("<f", scale) + quanta.tobytes()
    return out


def decode_int8(data):
    out = []
    for start in range(0, len(data), 260):
        block = data[start : start + 260]
        scale = np.frombuffer(block[:4], "<f4")[0]
        out.append(np.frombuffer(block[4:], np.int8).astype(np.float32) * scale)
    return np.concatenate(out) if out else np.zeros(0, np.float32)


def pack_zstd(values, planes):
    checksum = xxhash.xxh3_64_intdigest(values.astype("<f4").tobytes())
    sizes = [len(plane) for plane in planes]
    return struct.pack("<5Q", checksum, *sizes) + b"".join(planes)


def split_planes(values):
    raw = np.frombuffer(values.astype("<f4").tobytes(), np.uint8).reshape(-1, 4)
    return [raw[:, k].tobytes() for k in range(4)]


def encode_zstd(values):
    compressor = zstandard.ZstdCompressor(level=1)
    planes = []
    for plane in split_planes(values):
        packed = compressor.compress(plane) if plane else b""
        planes.append(packed if len(packed) < len(plane) else plane)
    return pack_zstd(values, planes)


def cases():
    rng = np.random.default_rng(1)
    normal = rng.standard_normal(257).astype(np.float32)
    yield "empty", np.zeros(0, np.float32)
    yield "pair", np.array([1.0, -2.0], np.float32)
    yield "normal", normal
    yield "special", f32(
        0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000,  # zeros, subnormals
        0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0xBF818000,  # bf16 ties
        0x7F7FFFFF, 0xFF7FFFFF, 0x7F7F7FFF, 0x7F7F8000, 0x7F800000, 0xFF800000,  # largest, infinite
        0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC12345, 0x7FFFFFFF, 0x7F810000)  # NaNs
    yield "ties", np.array([127, 0.5, 1.5, 2.5, -0.5, -1.5, -63.5, 0, -127, 126.5], np.float32)
    yield "largest", np.array([3.4028234663852886e38, -3.4028234663852886e38, 1e38, 1], np.float32)
    blocks = np.concatenate([normal[:256] * 3, normal[:256], normal[:256] * 1e-38, normal[:5]])
    blocks = blocks.astype(np.float32)
    blocks[300] = np.inf
    blocks[-1] = np.nan
    yield "blocks", blocks
    yield "constant", np.full(600, 0.1, np.float32)


def bad_cases():
    def int8(scale_bits, *quanta):
        return struct.pack("<I", scale_bits) + struct.pack(f"<{len(quanta)}b", *quanta)

    yield "short", 3, "none", bytes(11)
    yield "long", 3, "none", bytes(13)
    yield "short", 3, "bf16", bytes(5)
    yield "long", 3, "bf16", bytes(7)
    yield "short", 257, "int8", bytes(264)
    yield "long", 257, "int8", bytes(266)
    yield "scale_negative", 2, "int8", int8(0xBF800000, 1, 127)
    yield "scale_negative_zero", 2, "int8", int8(0x80000000, 0, 0)
    yield "scale_infinite", 2, "int8", int8(0x7F800000, 1, 127)
    yield "scale_overflows", 2, "int8", int8(0x7F7FFFFF, 1, 127)
    yield "scale_subnormal", 2, "int8", int8(0x00000001, 1, 127)
    yield "scale_other_nan", 2, "int8", int8(0x7FC00001, 0, 0)
    yield "quantum_lowest", 2, "int8", int8(0x3F800000, 1, -128)
    yield "quantum_in_zero_block", 2, "int8", int8(0x00000000, 0, 1)
    yield "quantum_in_nan_block", 2, "int8", int8(0x7FC00000, 0, 1)

    values = np.full(300, 0.1, np.float32)
    planes = split_planes(values)
    compressor = zstandard.ZstdCompressor(level=1)
    packed = [compressor.compress(plane) for plane in planes]
    good = pack_zstd(values, packed)
    yield "checksum", 300, "zstd", bytes([good[0] ^ 1]) + good[1:]
    yield "header_only", 300, "zstd", good[:40]
    yield "trailing", 300, "zstd", good + b"\0"
    yield "more_values", 301, "zstd", good
    yield "fewer_values", 299, "zstd", good
    half = [compressor.compress(planes[0][:150]) * 2] + packed[1:]
    yield "two_frames", 300, "zstd", pack_zstd(values, half)
    unsized = zstandard.ZstdCompressor(level=1, write_content_size=False)
    anonymous = [unsized.compress(planes[0])] + packed[1:]
    yield "no_content_size", 300, "zstd", pack_zstd(values, anonymous)
    bomb = compressor.compress(bytes(100_000_000))
    yield "bomb", 20000, "zstd", pack_zstd(values, [bomb] + packed[1:])
    sizes = struct.pack("<4Q", 2**64 - 1, 1, 0, 0)
    yield "size_wraps", 300, "zstd", good[:8] + sizes + good[40:]


def frame(payload, **fields):
    head = MAGIC + struct.pack(
        "<HHIIIIQIIQHB5xQQ8xQ",
        1, fields["kind"], *fields["epoch"], fields["pipeline"], fields["micro_batch"],
        fields["step"], fields["stage"], fields["index"],
        int.from_bytes(hashlib.sha256(fields["run"].encode()).digest()[:8], "little"),
        fields["codec"], fields["element"], fields["elements"], len(payload),
        xxhash.xxh3_64_intdigest(payload))
    return head + struct.pack("<Q", xxhash.xxh3_64_intdigest(head)) + payload


def frames():
    pair = np.array([1.0, -2.0], np.float32)
    yield "none", frame(
        encode_none(pair), kind=2, epoch=(1, 4), pipeline=0, micro_batch=3, step=17, stage=2,
        index=0, run="first", codec=0, element=1, elements=2)
    normal = dict(cases())["normal"]
    yield "int8", frame(
        encode_int8(normal), kind=1, epoch=(0xFFFFFFFF, 0x01020304), pipeline=5, micro_batch=6,
        step=2**64 - 1, stage=7, index=8, run="other-run.2", codec=2, element=1, elements=257)
    yield "norms", frame(
        np.array([0.5, 1e300, -0.0], "<f8").tobytes(), kind=3, epoch=(1, 1), pipeline=0,
        micro_batch=0, step=1, stage=0, index=0, run="first", codec=0, element=2, elements=3)


def main():
    (FOLDER / "bad").mkdir(parents=True, exist_ok=True)
    encoders = {"none": encode_none, "bf16": encode_bf16, "int8": encode_int8, "zstd": encode_zstd}
    decoders = {"bf16": decode_bf16, "int8": decode_int8}
    for name, values in cases():
        (FOLDER / f"{name}.f32").write_bytes(values.astype("<f4").tobytes())
        for codec, encode in encoders.items():
            data = encode(values)
            (FOLDER / f"{name}.{codec}").write_bytes(data)
            if codec in decoders:
                decoded = decoders[codec](data).astype("<f4").tobytes()
                (FOLDER / f"{name}.{codec}.f32").write_bytes(decoded)
    for name, count, codec, data in bad_cases():
        (FOLDER / "bad" / f"{name}.{count}.{codec}").write_bytes(data)
    for name, data in frames():
        (FOLDER / f"frame_{name}.bin").write_bytes(data)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares an exported checkpoint, as transformers loads it, with logits that Longhaul computed.

The logits come as JSON: {"tokens": [t, ...], "logits": [[...], ...]}, one row of the vocabulary's
size for each token. Prints the versions and the largest difference.
Exit codes: 0 they agree, 1 they differ or the checkpoint does not load cleanly, 2 bad input.

Usage: tools/check_export.py DIR LOGITS.json [--tolerance 1e-4]    (needs PyTorch and transformers)
"""

import argparse
import json
import math
import pathlib
import platform
import sys

import safetensors
import torch
import transformers


class BadInput(Exception):
    """What is given cannot be compared; the message says why."""


def read_logits(path):
    """Tokens [T] and logits [T, vocab], in float64."""
    try:
        content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        tokens = torch.tensor(content["tokens"], dtype=torch.int64)
        logits = torch.tensor(content["logits"], dtype=torch.float64)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: not logits as described in --help: {error!r}") from error
    if tokens.dim() != 1 or len(tokens) == 0 or logits.dim() != 2 or len(logits) != len(tokens):
        raise BadInput(f"{path}: {list(logits.shape)} logits for {list(tokens.shape)} tokens")
    return tokens, logits


def load_model(folder):
    """The model on the CPU in float32, and what of the files does not fit it."""
    if not (pathlib.Path(folder) / "config.json").is_file():
        raise BadInput(f"{folder}: there is no config.json")
    model, report = transformers.GPT2LMHeadModel.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True, output_loading_info=True
    )
    problems = [f"{kind}: {sorted(map(str, names))}" for kind, names in report.items() if names]
    return model.eval(), problems


def reference_logits(model, tokens, ours):
    """The model's logits [T, vocab], in float64."""
    config = model.config
    if len(tokens) > config.n_positions:
        raise BadInput(f"{len(tokens)} tokens are more than the context of {config.n_positions}")
    if int(tokens.min()) < 0 or int(tokens.max()) >= config.vocab_size:
        raise BadInput(f"a token is not in the vocabulary of {config.vocab_size}")
    if ours.shape[1] != config.vocab_size:
        raise BadInput(f"rows of {ours.shape[1]} logits for a vocabulary of {config.vocab_size}")
    with torch.no_grad():
        return model(tokens.unsqueeze(0)).logits[0].double()


def print_versions():
    for name, version in (
        ("python", platform.python_version()),
        ("torch", torch.__version__),
        ("transformers", transformers.__version__),
        ("safetensors", safetensors.__version__),
    ):
        print(f"{name:<13}{version}")


def compare(folder, logits_path, tolerance):
    """Prints the comparison; true if everything agrees."""
    tokens, ours = read_logits(logits_path)
    model, problems = load_model(folder)
    theirs = reference_logits(model, tokens, ours)
    difference = float((ours - theirs).abs().max())
    largest = float(theirs.abs().max())
    allowed = tolerance * max(1.0, largest)
    agrees = math.isfinite(difference) and difference <= allowed
    print(f"parameters   {sum(p.numel() for p in model.parameters())}")
    print(f"logits       {ours.shape[0]} x {ours.shape[1]}, largest {largest:.6g}")
    print(f"difference   {difference:.3e} (allowed {allowed:.3e})")
    for problem in problems:
        print(f"FAIL {problem}")
    if not agrees:
        print("FAIL the logits differ")
    return agrees and not problems


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", metavar="DIR", help="config.json and model.safetensors")
    parser.add_argument("logits", metavar="LOGITS.json")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        help="largest difference, as a part of the largest logit or of 1 (default 1e-4)",
    )
    arguments = parser.parse_args()
    print_versions()
    try:
        return 0 if compare(arguments.folder, arguments.logits, arguments.tolerance) else 1
    except BadInput as error:
        print(f"check_export: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

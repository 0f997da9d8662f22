#!/usr/bin/env python3
"""Compares the logits of models as transformers computes them with those of Longhaul.

With DIR and LOGITS.json: an exported checkpoint against logits that `longhaul generate` wrote with
--logits-to: {"tokens": [t, ...], "logits": [[...], ...]}, one row of the vocabulary's size
for each token.
With --families: small random models of every family, made with transformers, go through `longhaul
generate`. With --runs they also begin a run each in a local cluster, and the export of its step 0
must hold the same tensors bit for bit and give the same logits.
Prints the versions and the largest differences.
Exit codes: 0 they agree, 1 they differ or a checkpoint does not load cleanly, 2 bad input.

Usage: tools/check_export.py DIR LOGITS.json [--tolerance 1e-4]    (needs PyTorch and transformers)
       tools/check_export.py --families [--runs] [--longhaul build/bin/longhaul]
"""

import argparse
import json
import math
import pathlib
import platform
import random
import subprocess
import sys
import tempfile

import safetensors
import safetensors.torch
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
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True, output_loading_info=True
    )
    problems = [f"{kind}: {sorted(map(str, names))}" for kind, names in report.items() if names]
    return model.eval(), problems


def reference_logits(model, tokens, ours):
    """The model's logits [T, vocab], in float64."""
    config = model.config
    context = config.max_position_embeddings
    if len(tokens) > context:
        raise BadInput(f"{len(tokens)} tokens are more than the context of {context}")
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


VOCABULARY = 256
CONTEXT = 96


def make_models(folder):
    """Small random models as transformers saves them: names and directories."""
    common = {
        "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 8,
        "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "intermediate_size": 112,
        "num_key_value_heads": 2,
    }  # fmt: skip
    llama3 = {
        "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32, "rope_theta": 5000.0,
    }  # fmt: skip
    configs = {
        "gpt2": transformers.GPT2Config(
            n_embd=64, n_layer=3, n_head=4, n_inner=200, n_positions=CONTEXT,
            vocab_size=VOCABULARY, layer_norm_epsilon=1e-6,
        ),  # fmt: skip
        "llama": transformers.LlamaConfig(**common, rope_parameters=llama3),
        "qwen2": transformers.Qwen2Config(**common, tie_word_embeddings=True),
    }
    for name, config in configs.items():
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(config).float()
        for parameter in model.parameters():  # biases and norms too, or they would prove nothing
            torch.nn.init.normal_(parameter, mean=0.5 if parameter.dim() == 1 else 0, std=0.15)
        # More than one file where the model is larger than this.
        model.save_pretrained(folder / name, max_shard_size="400KB" if name == "llama" else "1GB")
        (folder / name / "merges.txt").write_text("a b\n", encoding="utf-8")
        yield name, folder / name


def longhaul(arguments, *words):
    result = subprocess.run(
        [arguments.longhaul, *map(str, words)], capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise BadInput(f"longhaul {' '.join(map(str, words[:2]))}: {result.stderr.strip()}")


def compare_generated(arguments, checkpoint, reference, logits):
    """Logits of longhaul on one directory against those of transformers on another."""
    tokens = random.Random(1).choices(range(VOCABULARY), k=CONTEXT)
    listed = ",".join(map(str, tokens))
    longhaul(arguments, "generate", "--checkpoint", checkpoint, "--prompt-tokens", listed,
             "--logits-to", logits)  # fmt: skip
    return compare(reference, logits, arguments.tolerance)


def same_tensors(first, second):
    """Whether two directories hold the same tensors, bit for bit."""

    def read(folder):
        tensors = {}
        for path in sorted(folder.glob("*.safetensors")):
            tensors.update(safetensors.torch.load_file(path))
        return tensors

    a, b = read(first), read(second)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def compare_run(arguments, name, source, folder):
    """Begins a run with the model, exports its step 0 and compares it."""
    (folder / "text.txt").write_text("longhaul " * 2000, encoding="utf-8")
    (folder / f"{name}.yaml").write_text(
        f"name: {name}\nmodel: {{from: {source}}}\ndata: {{train: text.txt}}\n"
        "train: {steps: 1, global_batch: 4, micro_batch: 2}\npipeline: {stages: 2}\n",
        encoding="utf-8",
    )
    cluster = ("--dir", folder / "cluster")
    longhaul(arguments, "run", "start", folder / f"{name}.yaml", "--wait", *cluster)
    exported = folder / f"{name}-exported"
    longhaul(arguments, "checkpoint", "export", name, "--to", exported, "--step", 0, *cluster)
    good = compare_generated(arguments, exported, exported, folder / "logits.json")
    for problem, right in (
        ("tensors differ from those the run began with", same_tensors(source, exported)),
        ("the tokenizer's file is another",
         (exported / "merges.txt").read_bytes() == (source / "merges.txt").read_bytes()),
    ):  # fmt: skip
        if not right:
            print(f"FAIL {problem}")
            good = False
    return good


def compare_families(arguments):
    """True if every family agrees."""
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        models = list(make_models(folder))
        for family, source in models:
            print(f"--- {family}: import")
            good &= compare_generated(arguments, source, source, folder / "logits.json")
        if not arguments.runs:
            return good
        cluster = ("--dir", folder / "cluster")
        longhaul(arguments, "up", "--workers", 2, "--detach", *cluster)
        try:
            for family, source in models:
                print(f"--- {family}: run, export of step 0")
                good &= compare_run(arguments, family, source, folder)
        finally:
            longhaul(arguments, "down", *cluster)
    return good


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", metavar="DIR", nargs="?", help="config.json and model.safetensors"
    )
    parser.add_argument("logits", metavar="LOGITS.json", nargs="?")
    parser.add_argument("--families", action="store_true", help="models made here instead of DIR")
    parser.add_argument("--runs", action="store_true", help="with --families: runs too")
    parser.add_argument("--longhaul", default="build/bin/longhaul", help="the command to check")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-4,
        help="largest difference, as a part of the largest logit or of 1 (default 1e-4)",
    )
    arguments = parser.parse_args()
    if arguments.families == (arguments.logits is not None):
        parser.error("give DIR and LOGITS.json, or --families")
    print_versions()
    try:
        if arguments.families:
            return 0 if compare_families(arguments) else 1
        return 0 if compare(arguments.folder, arguments.logits, arguments.tolerance) else 1
    except BadInput as error:
        print(f"check_export: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

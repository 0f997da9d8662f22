"""Text and run files that tests train with: small, and the same every time."""

import random
from pathlib import Path


def make_text(path, size, seed=1):
    """English-like text from a small vocabulary: deterministic, of exactly `size` bytes."""
    words = ("the a river ran over stone and light fell on every house while people walked home "
             "before night came with rain that nobody had seen for many long years").split()
    generator = random.Random(seed)
    pieces, length = [], 0
    while length < size:
        word = generator.choice(words) + generator.choice([" ", " ", " ", ", ", ".\n"])
        pieces.append(word)
        length += len(word)
    Path(path).write_text("".join(pieces)[:size])


def run_file(name, **options):
    """Text of a run's file; a small model unless options say otherwise."""
    o = dict(layers=4, hidden=128, heads=4, context=32, vocab=256, tied="true", train="text.txt",
             tokenizer="bytes", documents="packed", end_of_document=-1,
             validation_fraction=0.1, steps=20, global_batch=8, micro_batch=1,
             learning_rate="3.0e-3", beta2=0.95, weight_decay=0.1, grad_clip=0.5, warmup_steps=2,
             min_learning_rate="1.0e-4", seed=7, evaluate_every=0, stages="auto", schedule="1f1b",
             codec="none", every=0, family="gpt2", kv_heads="auto", ffn="auto", dropout=0,
             recompute="auto", graph=None, model_from=None, replicas="1", exact_replicas="false",
             precision="fp32", numeric_class="one")
    unknown = set(options) - set(o)
    assert not unknown, unknown
    o.update(options)
    model = f"""
  family: {o['family']}
  layers: {o['layers']}
  hidden: {o['hidden']}
  heads: {o['heads']}
  kv_heads: {o['kv_heads']}
  ffn: {o['ffn']}
  context: {o['context']}
  vocab: {o['vocab']}
  tied: {o['tied']}
  dropout: {o['dropout']}"""
    if o["graph"] is not None:
        model = f" {{graph: {o['graph']}}}"
    if o["model_from"] is not None:
        model = f" {{from: {o['model_from']}}}"
    return f"""name: {name}
model:{model}
data:
  train: {o['train']}
  tokenizer: {o['tokenizer']}
  documents: {o['documents']}
  end_of_document: {o['end_of_document']}
  validation_fraction: {o['validation_fraction']}
train:
  steps: {o['steps']}
  global_batch: {o['global_batch']}
  micro_batch: {o['micro_batch']}
  optimizer:
    name: adamw
    learning_rate: {o['learning_rate']}
    betas: [0.9, {o['beta2']}]
    weight_decay: {o['weight_decay']}
    grad_clip: {o['grad_clip']}
  schedule:
    warmup_steps: {o['warmup_steps']}
    decay: cosine
    min_learning_rate: {o['min_learning_rate']}
  seed: {o['seed']}
  precision: {o['precision']}
  evaluate_every: {o['evaluate_every']}
pipeline:
  stages: {o['stages']}
  schedule: {o['schedule']}
  recompute: {o['recompute']}
  replicas: {o['replicas']}
  exact_replicas: {o['exact_replicas']}
  numeric_class: {o['numeric_class']}
exchange: {{codec: {o['codec']}}}
checkpoint: {{every: {o['every']}}}
"""

"""The model families as PyTorch functions, written from the papers, for make_model_golden.py."""

import math
from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F


class Family(NamedTuple):
    parameter_table: Callable  # (model) -> (name, shape, kind, deviation) in the graph's order
    logits: Callable  # (model, weights, tokens [batch, context]) -> [batch, context, vocab]


DEVIATION = 0.02
EPSILON = 1e-5


def residual_deviation(model):
    return DEVIATION / math.sqrt(2 * model["layers"])


def split_heads(x, heads):
    batch, context, width = x.shape
    return x.view(batch, context, heads, width // heads).transpose(1, 2)


def join_heads(x):
    batch, heads, context, width = x.shape
    return x.transpose(1, 2).reshape(batch, context, heads * width)


def head_weights(model, weights, embedding):
    return weights[embedding] if model["tied"] else weights["head.weight"]


def gpt2_parameters(model):
    hidden = model["hidden"]
    table = [("wte", (model["vocab"], hidden), "normal", DEVIATION),
             ("wpe", (model["context"], hidden), "normal", DEVIATION)]

    def norm(name):
        table.append((name + ".weight", (hidden,), "ones", 0))
        table.append((name + ".bias", (hidden,), "zeros", 0))

    def linear(name, out, into, deviation):
        table.append((name + ".weight", (out, into), "normal", deviation))
        table.append((name + ".bias", (out,), "zeros", 0))

    for layer in range(model["layers"]):
        block = f"h.{layer}."
        norm(block + "ln_1")
        linear(block + "attn.qkv", 3 * hidden, hidden, DEVIATION)
        linear(block + "attn.proj", hidden, hidden, residual_deviation(model))
        norm(block + "ln_2")
        linear(block + "mlp.fc", 4 * hidden, hidden, DEVIATION)
        linear(block + "mlp.proj", hidden, 4 * hidden, residual_deviation(model))
    norm("ln_f")
    if not model["tied"]:
        table.append(("head.weight", (model["vocab"], hidden), "normal", DEVIATION))
    return table


def gpt2_logits(model, weights, tokens):
    hidden, heads = model["hidden"], model["heads"]

    def norm(name, x):
        return F.layer_norm(x, (hidden,), weights[name + ".weight"], weights[name + ".bias"],
                            EPSILON)

    def linear(name, x):
        return F.linear(x, weights[name + ".weight"], weights[name + ".bias"])

    x = weights["wte"][tokens] + weights["wpe"][:tokens.shape[1]]
    for layer in range(model["layers"]):
        block = f"h.{layer}."
        q, k, v = linear(block + "attn.qkv", norm(block + "ln_1", x)).split(hidden, dim=2)
        y = F.scaled_dot_product_attention(split_heads(q, heads), split_heads(k, heads),
                                           split_heads(v, heads), is_causal=True)
        x = x + linear(block + "attn.proj", join_heads(y))
        y = F.gelu(linear(block + "mlp.fc", norm(block + "ln_2", x)), approximate="tanh")
        x = x + linear(block + "mlp.proj", y)
    return F.linear(norm("ln_f", x), head_weights(model, weights, "wte"))


def llama_parameters(model):
    hidden = model["hidden"]
    width = hidden // model["heads"]
    qkv = (model["heads"] + 2 * model["kv_heads"]) * width
    table = [("embed", (model["vocab"], hidden), "normal", DEVIATION)]

    def norm(name):
        table.append((name + ".weight", (hidden,), "ones", 0))

    def linear(name, out, into, deviation):
        table.append((name + ".weight", (out, into), "normal", deviation))

    for layer in range(model["layers"]):
        block = f"layers.{layer}."
        norm(block + "input_norm")
        linear(block + "attn.qkv", qkv, hidden, DEVIATION)
        if model["qkv_bias"]:
            table.append((block + "attn.qkv.bias", (qkv,), "zeros", 0))
        linear(block + "attn.proj", hidden, hidden, residual_deviation(model))
        norm(block + "post_norm")
        linear(block + "mlp.gate_up", 2 * model["ffn"], hidden, DEVIATION)
        linear(block + "mlp.down", hidden, model["ffn"], residual_deviation(model))
    norm("norm")
    if not model["tied"]:
        table.append(("head.weight", (model["vocab"], hidden), "normal", DEVIATION))
    return table


def rotary_frequencies(head_width, theta, scaling):
    """Su et al. 2021; Llama 3 slows down the waves that are long against its first context."""
    frequencies = theta ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
    if scaling is None:
        return frequencies
    low, high = scaling["low_frequency_factor"], scaling["high_frequency_factor"]
    turns = scaling["original_context"] * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / scaling["factor"]


def rotate(x, frequencies):
    """x [batch, heads, context, width]; elements i and i + width/2 are a complex number."""
    positions = torch.arange(x.shape[2], dtype=torch.float64)
    turn = torch.polar(torch.ones(x.shape[2], len(frequencies), dtype=torch.float64),
                       torch.outer(positions, frequencies))
    turned = torch.complex(*x.chunk(2, dim=3)) * turn
    return torch.cat([turned.real, turned.imag], dim=3)


def llama_attention(model, qkv):
    heads, kv_heads = model["heads"], model["kv_heads"]
    width = model["hidden"] // heads
    frequencies = rotary_frequencies(width, model["rope_theta"], model.get("rope_scaling"))
    q, k, v = qkv.split([heads * width, kv_heads * width, kv_heads * width], dim=2)
    q = rotate(split_heads(q, heads), frequencies)
    k = rotate(split_heads(k, kv_heads), frequencies)
    return join_heads(F.scaled_dot_product_attention(
        q, k, split_heads(v, kv_heads), is_causal=True, enable_gqa=True))


def llama_logits(model, weights, tokens):
    def norm(name, x):
        return F.rms_norm(x, (model["hidden"],), weights[name + ".weight"], EPSILON)

    def linear(name, x):
        return F.linear(x, weights[name + ".weight"], weights.get(name + ".bias"))

    x = weights["embed"][tokens]
    for layer in range(model["layers"]):
        block = f"layers.{layer}."
        qkv = linear(block + "attn.qkv", norm(block + "input_norm", x))
        x = x + linear(block + "attn.proj", llama_attention(model, qkv))
        gate, up = linear(block + "mlp.gate_up", norm(block + "post_norm", x)).chunk(2, dim=2)
        x = x + linear(block + "mlp.down", F.silu(gate) * up)
    return F.linear(norm("norm", x), head_weights(model, weights, "embed"))


FAMILIES = {"gpt2": Family(gpt2_parameters, gpt2_logits),
            "llama": Family(llama_parameters, llama_logits)}

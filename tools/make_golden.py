#!/usr/bin/env python3
"""Makes the golden vectors of the operators: tests/golden/ops/*.json.

Every value comes from PyTorch in float64 on the CPU; inputs are seeded and are multiples of 1/256,
so that float holds them exactly. A file holds {"made_with": versions, "cases": [...]}; a case holds
its sizes and its tensors, flattened in row order.

Usage: tools/make_golden.py [--out tests/golden/ops]      (needs PyTorch)
"""

import argparse
import json
import pathlib
import platform

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.use_deterministic_algorithms(True)


class Inputs:
    """Seeded inputs; one generator for each file, so that files do not depend on each other."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape, scale=1.0, offset=0.0):
        values = torch.randn(*shape, generator=self.generator) * scale + offset
        return (values * 256).round() / 256

    def integers(self, low, high, *shape):
        return torch.randint(low, high, shape, generator=self.generator)


def flat(tensor):
    return tensor.detach().reshape(-1).tolist()


def case(name, sizes, tensors):
    return {"name": name, "sizes": sizes,
            "tensors": {key: flat(value) for key, value in tensors.items()}}


def gradients(output, output_gradient, inputs):
    return torch.autograd.grad(output, inputs, output_gradient)


def add_cases():
    make = Inputs(1)
    a, b = make.normal(37), make.normal(37, scale=100)
    return [case("add", {"n": 37}, {"a": a, "b": b, "output": a + b})]


def embedding_cases():
    make = Inputs(2)
    cases = []
    for name, batch, context, vocab, width, positioned in [
            ("small", 3, 4, 7, 5, True), ("one", 1, 1, 1, 1, True), ("wide", 1, 3, 2, 70, True),
            ("no positions", 2, 5, 6, 3, False)]:
        tokens = make.integers(0, vocab, batch * context)
        table = make.normal(vocab, width).requires_grad_()
        output = F.embedding(tokens.view(batch, context), table)
        leaves = [table]
        if positioned:
            leaves.append(make.normal(context, width).requires_grad_())
            output = output + leaves[1]
        output_gradient = make.normal(batch, context, width)
        grads = gradients(output, output_gradient, leaves)
        tensors = {"tokens": tokens, "table": table, "output": output,
                   "output_gradient": output_gradient, "table_gradient": grads[0]}
        if positioned:
            tensors |= {"positions": leaves[1], "positions_gradient": grads[1]}
        cases.append(case(name, {"rows": batch * context, "context": context, "vocab": vocab,
                                 "width": width}, tensors))
    return cases


def layer_norm_cases():
    make = Inputs(3)
    cases = []
    for name, rows, width, offset, epsilon in [("small", 6, 5, 0, 1e-5), ("one", 1, 1, 0, 1e-5),
                                               ("wide", 3, 131, 0, 1e-5),
                                               ("tall", 70, 3, 0, 1e-5),
                                               ("offset", 4, 33, 64, 1e-3)]:
        x = make.normal(rows, width, offset=offset).requires_grad_()
        weight = make.normal(width, offset=1).requires_grad_()
        bias = make.normal(width).requires_grad_()
        output = F.layer_norm(x, (width,), weight, bias, epsilon)
        output_gradient = make.normal(rows, width)
        dx, dw, db = gradients(output, output_gradient, (x, weight, bias))
        cases.append(case(name, {"rows": rows, "width": width, "epsilon": epsilon},
                          {"input": x, "weight": weight, "bias": bias, "output": output,
                           "output_gradient": output_gradient, "input_gradient": dx,
                           "weight_gradient": dw, "bias_gradient": db}))
    return cases


def rms_norm_cases():
    make = Inputs(10)
    cases = []
    for name, rows, width, offset, epsilon in [("small", 6, 5, 0, 1e-5), ("one", 1, 1, 0, 0.25),
                                               ("wide", 3, 131, 0, 1e-6),
                                               ("tall", 70, 3, 4, 1e-3)]:
        x = make.normal(rows, width, offset=offset).requires_grad_()
        weight = make.normal(width, offset=1).requires_grad_()
        output = F.rms_norm(x, (width,), weight, epsilon)
        output_gradient = make.normal(rows, width)
        dx, dw = gradients(output, output_gradient, (x, weight))
        cases.append(case(name, {"rows": rows, "width": width, "epsilon": epsilon},
                          {"input": x, "weight": weight, "output": output,
                           "output_gradient": output_gradient, "input_gradient": dx,
                           "weight_gradient": dw}))
    return cases


def linear_cases():
    make = Inputs(4)
    cases = []
    for name, rows, width_in, width_out, biased in [("small", 5, 7, 3, True),
                                                    ("no bias", 6, 4, 9, False),
                                                    ("one", 1, 1, 1, True),
                                                    ("two row tiles", 193, 2, 3, True),
                                                    ("odd", 20, 33, 17, True)]:
        x = make.normal(rows, width_in).requires_grad_()
        weight = make.normal(width_out, width_in).requires_grad_()
        bias = make.normal(width_out).requires_grad_() if biased else None
        output = F.linear(x, weight, bias)
        output_gradient = make.normal(rows, width_out)
        leaves = (x, weight, bias) if biased else (x, weight)
        grads = gradients(output, output_gradient, leaves)
        tensors = {"input": x, "weight": weight, "output": output,
                   "output_gradient": output_gradient, "input_gradient": grads[0],
                   "weight_gradient": grads[1]}
        if biased:
            tensors |= {"bias": bias, "bias_gradient": grads[2]}
        cases.append(case(name, {"rows": rows, "in": width_in, "out": width_out}, tensors))
    return cases


def gelu_cases():
    make = Inputs(5)
    x = torch.cat([torch.arange(-24, 25) / 4, make.normal(40, scale=3),
                   torch.tensor([-10000.0, -40.0, -33.0, -0.0, 33.0, 40.0, 10000.0])])
    x.requires_grad_()
    output = F.gelu(x, approximate="tanh")
    output_gradient = make.normal(*x.shape)
    (dx,) = gradients(output, output_gradient, (x,))
    return [case("gelu", {"n": x.numel()}, {"input": x, "output": output,
                                            "output_gradient": output_gradient,
                                            "input_gradient": dx})]


def swiglu_cases():
    make = Inputs(11)
    cases = []
    for name, rows, width, scale in [("small", 3, 5, 1), ("one", 1, 1, 1), ("wide", 2, 67, 3),
                                     ("large", 4, 8, 300)]:
        x = make.normal(rows, 2 * width, scale=scale).requires_grad_()
        gate, up = x.split(width, dim=1)
        output = F.silu(gate) * up
        output_gradient = make.normal(rows, width)
        (dx,) = gradients(output, output_gradient, (x,))
        cases.append(case(name, {"rows": rows, "width": width},
                          {"input": x, "output": output, "output_gradient": output_gradient,
                           "input_gradient": dx}))
    return cases


def rotary_frequencies(head_width, theta, scaling):
    """Checked against transformers where it is installed: its own are float32."""
    frequencies = theta ** (-torch.arange(0, head_width, 2) / head_width)
    if scaling:
        factor, low, high, original = scaling
        wavelength = 2 * torch.pi / frequencies
        kept = ((original / wavelength - low) / (high - low)).clamp(0, 1)
        frequencies = (1 - kept) * frequencies / factor + kept * frequencies
    try:
        from transformers import LlamaConfig
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    except ImportError:
        return frequencies
    if scaling:
        config = LlamaConfig(head_dim=head_width, rope_parameters={
            "rope_type": "llama3", "rope_theta": theta, "factor": factor, "low_freq_factor": low,
            "high_freq_factor": high, "original_max_position_embeddings": original})
        theirs, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
        torch.testing.assert_close(frequencies.float(), theirs.float(), rtol=1e-5, atol=0)
    return frequencies


def rotary_cases():
    make = Inputs(12)
    cases = []
    for name, batch, context, heads, head_width, rest, theta, scaling in [
            ("small", 2, 3, 2, 4, 3, 10000.0, None), ("one", 1, 1, 1, 2, 0, 10000.0, None),
            ("wide", 1, 5, 1, 64, 7, 500000.0, None),
            ("llama 3", 1, 40, 1, 16, 0, 500.0, (8.0, 1.0, 4.0, 32))]:
        frequencies = rotary_frequencies(head_width, theta, scaling)
        angles = torch.arange(context)[:, None] * frequencies
        table = torch.cat([angles.cos(), angles.sin()], dim=1)
        cos, sin = (torch.cat([part, part], dim=1)[None, :, None] for part in
                    (angles.cos(), angles.sin()))
        width = heads * head_width
        x = make.normal(batch, context, width + rest).requires_grad_()
        turned = x[..., :width].view(batch, context, heads, head_width)
        first, second = turned.chunk(2, dim=3)
        turned = turned * cos + torch.cat([-second, first], dim=3) * sin
        output = torch.cat([turned.reshape(batch, context, width), x[..., width:]], dim=2)
        output_gradient = make.normal(batch, context, width + rest)
        (dx,) = gradients(output, output_gradient, (x,))
        factor, low, high, original = scaling or (1.0, 1.0, 4.0, 1)
        cases.append(case(name, {"rows": batch * context, "context": context, "heads": heads,
                                 "head_width": head_width, "row_width": width + rest,
                                 "theta": theta, "factor": factor, "low_frequency_factor": low,
                                 "high_frequency_factor": high, "original_context": original},
                          {"table": table, "input": x, "output": output,
                           "output_gradient": output_gradient, "input_gradient": dx}))
    return cases


def attention_cases():
    make = Inputs(6)
    cases = []
    shapes = [("small", 2, 5, 2, 2, 6, 1), ("one", 1, 1, 1, 1, 3, 1),
              ("heads fill width", 1, 3, 4, 4, 4, 1), ("three blocks", 1, 70, 2, 2, 4, 1),
              ("large scores", 1, 6, 1, 1, 2, 10), ("groups of three", 2, 7, 6, 2, 12, 1),
              ("one group", 1, 35, 2, 1, 6, 1)]
    for name, batch, context, heads, kv_heads, width, scale in shapes:
        head_width = width // heads
        kv_width = kv_heads * head_width
        qkv = make.normal(batch, context, width + 2 * kv_width, scale=scale).requires_grad_()
        q, k, v = (part.view(batch, context, -1, head_width).transpose(1, 2)
                   for part in qkv.split([width, kv_width, kv_width], dim=2))
        k, v = (part.repeat_interleave(heads // kv_heads, dim=1) for part in (k, v))
        scores = q @ k.transpose(2, 3) / head_width ** 0.5
        mask = torch.ones(context, context, dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        lse = torch.logsumexp(scores, dim=3)
        reference = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        output = torch.softmax(scores, dim=3) @ v
        torch.testing.assert_close(output, reference)
        output = output.transpose(1, 2).reshape(batch, context, width)
        output_gradient = make.normal(batch, context, width)
        (dqkv,) = gradients(output, output_gradient, (qkv,))
        cases.append(case(name, {"batch": batch, "context": context, "heads": heads,
                                 "kv_heads": kv_heads, "width": width},
                          {"qkv": qkv, "output": output, "lse": lse,
                           "output_gradient": output_gradient, "qkv_gradient": dqkv}))
    return cases


def cross_entropy_cases():
    make = Inputs(7)
    cases = []
    for name, rows, vocab, scale in [("small", 5, 11, 1), ("vocab of one", 3, 1, 1),
                                     ("wide", 2, 259, 4), ("large logits", 4, 6, 10000)]:
        logits = make.normal(rows, vocab, scale=scale).requires_grad_()
        targets = make.integers(0, vocab, rows)
        if rows > 3:
            targets[1] = -1
        loss = F.cross_entropy(logits, targets, ignore_index=-1, reduction="sum")
        (dlogits,) = torch.autograd.grad(loss, (logits,))
        cases.append(case(name, {"rows": rows, "vocab": vocab},
                          {"logits": logits, "targets": targets, "loss_sum": loss,
                           "logits_gradient": dlogits}))
    return cases


def adamw_cases():
    make = Inputs(8)
    cases = []
    for name, decay, betas, epsilon in [("decays", 0.1, (0.9, 0.95), 1e-8),
                                        ("does not decay", 0.0, (0.9, 0.999), 1e-8),
                                        ("large epsilon", 0.01, (0.5, 0.99), 1e-3)]:
        weights = make.normal(21)
        parameter = torch.nn.Parameter(weights.clone())
        optimizer = torch.optim.AdamW([parameter], lr=1.0, betas=betas, eps=epsilon,
                                      weight_decay=decay, foreach=False)
        tensors = {"weights": weights}
        scale, rates = 0.25, [0.01, 0.03, 0.02, 0.005]
        for step, rate in enumerate(rates, start=1):
            gradient = make.normal(21)
            optimizer.param_groups[0]["lr"] = rate
            parameter.grad = gradient * scale
            optimizer.step()
            state = optimizer.state[parameter]
            tensors |= {f"gradient {step}": gradient, f"weights {step}": parameter.clone(),
                        f"first_moment {step}": state["exp_avg"].clone(),
                        f"second_moment {step}": state["exp_avg_sq"].clone()}
        tensors["learning_rates"] = torch.tensor(rates)
        cases.append(case(name, {"n": 21, "beta1": betas[0], "beta2": betas[1],
                                 "epsilon": epsilon, "weight_decay": decay,
                                 "gradient_scale": scale, "steps": len(rates)}, tensors))
    return cases


def sum_of_squares_cases():
    make = Inputs(9)
    values = make.normal(77, scale=3)
    return [case("sum of squares", {"n": 77}, {"values": values, "sum": (values ** 2).sum()})]


FILES = {"add": add_cases, "embedding": embedding_cases, "layer_norm": layer_norm_cases,
         "rms_norm": rms_norm_cases, "linear": linear_cases, "gelu": gelu_cases,
         "swiglu": swiglu_cases, "rotary": rotary_cases, "causal_attention": attention_cases,
         "softmax_cross_entropy": cross_entropy_cases, "adamw": adamw_cases,
         "sum_of_squares": sum_of_squares_cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/golden/ops"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    made_with = {"torch": torch.__version__.split("+")[0], "python": platform.python_version(),
                 "dtype": "float64"}
    for name, make_cases in FILES.items():
        text = json.dumps({"made_with": made_with, "cases": make_cases()}, separators=(",", ":"))
        (arguments.out / f"{name}.json").write_text(text.replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""torch_side.py MODEL LAYERS HIDDEN HEADS CONTEXT VOCAB FFN MICRO_BATCH MICRO_BATCHES

What Longhaul's CUDA backend is compared with: the same model in PyTorch on the same card, compiled,
in bf16 with fp32 weights (autocast), scaled_dot_product_attention, fused AdamW, clipped gradients,
several micro-batches a step. Prints the tokens per second: the median over rounds of a second.
"""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def attention(qkv, heads, turn=None):
    batch, context, width = qkv.shape
    q, k, v = (part.view(batch, context, heads, -1).transpose(1, 2)
               for part in qkv.split(width // 3, dim=2))
    if turn is not None:
        q, k = turn(q), turn(k)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(batch, context, width // 3)


class GptBlock(nn.Module):
    def __init__(self, hidden, heads, ffn, context):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.proj = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x):
        x = x + self.proj(attention(self.qkv(self.ln_1(x)), self.heads))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, ffn, context):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.proj = nn.Linear(hidden, hidden, bias=False)
        self.gate_up = nn.Linear(hidden, 2 * ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)
        width = hidden // heads
        rates = 10000.0 ** (-torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(context).float(), rates).repeat(1, 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def turn(self, x):
        low, high = x.chunk(2, dim=-1)
        turned = torch.cat((-high, low), dim=-1)
        return (x * self.cosines + turned * self.sines).to(x.dtype)

    def forward(self, x):
        x = x + self.proj(attention(self.qkv(self.norm_1(x)), self.heads, self.turn))
        gate, up = self.gate_up(self.norm_2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    """The head shares the embedding's table."""

    def __init__(self, family, layers, hidden, heads, context, vocab, ffn):
        super().__init__()
        gpt = family == "gpt2"
        self.table = nn.Embedding(vocab, hidden)
        self.positions = nn.Embedding(context, hidden) if gpt else None
        block = GptBlock if gpt else LlamaBlock
        self.blocks = nn.ModuleList(block(hidden, heads, ffn, context) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden) if gpt else nn.RMSNorm(hidden, eps=1e-5)
        nn.init.normal_(self.table.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.table(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.table.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[2]), targets.view(-1))


def main():
    family = sys.argv[1]
    layers, hidden, heads, context, vocab, ffn, micro_batch, micro_batches = map(int, sys.argv[2:])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    with torch.device(device):
        model = Model(family, layers, hidden, heads, context, vocab, ffn)
        batches = [(torch.arange(m, m + micro_batch * context + 1) * 7919 % vocab)
                   for m in range(micro_batches)]
    pairs = [(b[:-1].view(micro_batch, context), b[1:].view(micro_batch, context))
             for b in batches]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    compiled = torch.compile(model)

    def step():
        for tokens, targets in pairs:
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = compiled(tokens, targets)
            (loss / micro_batches).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def seconds(steps):
        wait()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        wait()
        return (time.perf_counter() - start) / steps

    seconds(3)
    steps = max(1, round(1 / seconds(1)))
    tokens = micro_batches * micro_batch * context
    print(f"{tokens / statistics.median(seconds(steps) for _ in range(5)):.6g}")


if __name__ == "__main__":
    main()

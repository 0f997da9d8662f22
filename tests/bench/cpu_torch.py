#!/usr/bin/env python3
"""The other side of `./dev bench cpu`: the same model and the same commands, in PyTorch.

Usage: cpu_torch.py LAYERS HIDDEN HEADS CONTEXT VOCAB MICRO_BATCH THREADS eager|compiled
"""

import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.mlp_proj = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, context, hidden = x.shape
        q, k, v = (part.view(batch, context, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln_1(x)).split(hidden, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, context, hidden))
        return x + self.mlp_proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, context, vocab):
        super().__init__()
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(context, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[2]), targets.view(-1))


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main():
    layers, hidden, heads, context, vocab, micro_batch, threads = map(int, sys.argv[1:8])
    torch.manual_seed(1)
    torch.set_num_threads(threads)
    before = resident_bytes()
    model = Gpt(layers, hidden, heads, context, vocab)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    call = torch.compile(model) if sys.argv[8] == "compiled" else model
    tokens = (torch.arange(micro_batch * context) * 7919 % vocab).view(micro_batch, context)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = call(tokens, tokens)
        loss.backward()
        optimizer.step()
        return loss.item()

    print("ready", sum(p.numel() for p in model.parameters()), 0, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "memory":
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before, flush=True)
            continue
        start, cpu_start = time.perf_counter(), time.process_time()
        for _ in range(int(words[1])):
            loss = step()
        print(time.perf_counter() - start, time.process_time() - cpu_start, loss, flush=True)


if __name__ == "__main__":
    main()

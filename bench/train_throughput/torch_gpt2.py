#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training steps in PyTorch, as a user would write them: GPT-2 124M, fp32, AdamW, clipping, dropout 0.

Prints one JSON line with tokens per second, or one with the reason why there is none. bench_train_throughput starts it.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # torch_block lies beside the folder of this script


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--steps", type=int, default=6)
    arguments.add_argument("--sequences", type=int, default=4)
    arguments.add_argument("--tokens", type=int, default=64)
    arguments.add_argument("--vocabulary", type=int, default=50257)
    given = arguments.parse_args()
    try:
        import torch
        from torch import nn
        from torch.nn import functional
        from torch_block import Block
    except ImportError as error:
        print(json.dumps({"skipped": f"PyTorch is not installed: {error}"}))
        return

    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    width, heads, blocks, context = 768, 12, 12, 1024

    class Gpt2(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(given.vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
            self.norm = nn.LayerNorm(width)
            self.classifier = nn.Linear(width, given.vocabulary, bias=False)
            self.classifier.weight = self.token.weight
            nn.init.normal_(self.token.weight, std=0.02)

        def forward(self, tokens, targets):
            x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
            logits = self.classifier(self.norm(self.blocks(x)))
            return functional.cross_entropy(logits.view(-1, given.vocabulary), targets.view(-1))

    model = Gpt2()
    try:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    except (RuntimeError, TypeError):  # no fused update on this machine or in this version
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    durations = []
    for _ in range(given.steps + 2):
        text = torch.randint(0, 256, (given.sequences, given.tokens + 1))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(text[:, :-1], text[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        durations.append(time.perf_counter() - start)
    median = sorted(durations[2:])[given.steps // 2]
    print(json.dumps({"version": torch.__version__, "step_s": median, "tokens_per_s": given.sequences * given.tokens / median}))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of GPT-2 and Llama on one GPU in PyTorch, as a user would write them: bf16 autocast over fp32 parameters, flash attention, torch.compile,
fused AdamW, clipping, gradients accumulated in fp32 over the microbatches of a step.

Prints one JSON line with the median of the steps' rates, or one with the reason why there is none. Shapes are those of run_on_gpu.sh's rates.
"""

import argparse
import json
import time


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--family", choices=("gpt2", "llama"), default="gpt2")
    arguments.add_argument("--vocabulary", type=int, default=50304)
    arguments.add_argument("--context", type=int, default=1024)
    arguments.add_argument("--width", type=int, default=768)
    arguments.add_argument("--heads", type=int, default=12)
    arguments.add_argument("--kv-heads", type=int, default=0, help="0: as many as heads")
    arguments.add_argument("--blocks", type=int, default=12)
    arguments.add_argument("--mlp-width", type=int, default=0, help="0: four times the width")
    arguments.add_argument("--sequences", type=int, default=16)
    arguments.add_argument("--microbatches", type=int, default=1)
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--eager", action="store_true", help="without torch.compile")
    given = arguments.parse_args()
    try:
        import torch
        from torch import nn
        from torch.nn import functional
    except ImportError as error:
        print(json.dumps({"skipped": f"PyTorch is not installed: {error}"}))
        return
    if not torch.cuda.is_available():
        print(json.dumps({"skipped": "PyTorch finds no GPU"}))
        return

    width, heads, kv_heads = given.width, given.heads, given.kv_heads or given.heads
    head = width // heads
    mlp_width = given.mlp_width or 4 * width
    llama = given.family == "llama"
    norm = (lambda: nn.RMSNorm(width, eps=1e-5)) if llama else (lambda: nn.LayerNorm(width))

    def rotated(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = norm(), norm()
            self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * head, bias=not llama)
            self.out = nn.Linear(width, width, bias=not llama)
            self.up = nn.Linear(width, (2 if llama else 1) * mlp_width, bias=not llama)
            self.down = nn.Linear(mlp_width, width, bias=not llama)

        def forward(self, x, cos, sin):
            batch, tokens, _ = x.shape
            q, k, v = (p.view(batch, tokens, -1, head).transpose(1, 2) for p in self.qkv(self.norm1(x)).split((heads * head, kv_heads * head, kv_heads * head), 2))
            if llama:
                q, k = rotated(q, cos, sin), rotated(k, cos, sin)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kv_heads != heads)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
            up = self.up(self.norm2(x))
            if llama:
                gate, value = up.chunk(2, dim=-1)
                return x + self.down(functional.silu(gate) * value)
            return x + self.down(functional.gelu(up, approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(given.vocabulary, width)
            self.position = None if llama else nn.Embedding(given.context, width)
            self.blocks = nn.ModuleList(Block() for _ in range(given.blocks))
            self.norm = norm()
            self.classifier = nn.Linear(width, given.vocabulary, bias=False)
            if not llama:
                self.classifier.weight = self.token.weight
            nn.init.normal_(self.token.weight, std=0.02)
            angles = torch.outer(torch.arange(given.context), 10000.0 ** (-torch.arange(0, head, 2) / head))
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)

        def forward(self, tokens, targets):
            x = self.token(tokens)
            if self.position is not None:
                x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            logits = self.classifier(self.norm(x))
            return functional.cross_entropy(logits.float().view(-1, given.vocabulary), targets.view(-1))

    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    with torch.device("cuda"):
        model = Model()
    step_model = model if given.eager else torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    durations = []
    warm_up = 3
    begun = time.perf_counter()
    for _ in range(given.steps + warm_up):
        text = torch.randint(0, given.vocabulary, (given.microbatches, given.sequences, given.context + 1), device="cuda")
        torch.cuda.synchronize()
        start = time.perf_counter()
        for part in text:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = step_model(part[:, :-1].contiguous(), part[:, 1:].contiguous())
            (loss / given.microbatches).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        durations.append(time.perf_counter() - start)
    median = sorted(durations[warm_up:])[given.steps // 2]
    tokens = given.microbatches * given.sequences * given.context
    print(json.dumps({
        "family": given.family, "parameters": sum(p.numel() for p in model.parameters()), "version": torch.__version__, "compiled": not given.eager,
        "device": torch.cuda.get_device_name(), "step_s": median, "tokens_per_s": tokens / median, "seconds_in_all": time.perf_counter() - begun,
        "peak_bytes": torch.cuda.max_memory_allocated()}))


main()

# SPDX-License-Identifier: Apache-2.0
"""The transformer block of the comparisons with PyTorch, as a user would write it: GPT-2's, pre-norm, with SDPA and the tanh GELU.

It needs PyTorch to be imported; the scripts that use it say so themselves where there is none.
"""

from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, 2))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

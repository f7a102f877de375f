#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint costs the training: torch.distributed.checkpoint.async_save of a GPT-2's parameters and AdamW moments, in turns with bench_checkpoint.

  torch_async_save.py FOLDER [--rheo build/release/bin/bench_checkpoint] [--elements 124439808] [--turns 3]

The stall is how long async_save takes to return, which copies the state; the rate is that of all bytes until the checkpoint is there.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--rheo")
parser.add_argument("--elements", type=int, default=124_439_808)
parser.add_argument("--turns", type=int, default=3)
options = parser.parse_args()

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "29511")
dist.init_process_group("gloo", rank=0, world_size=1)
torch.set_num_threads(1)
rows = options.elements // 768
cuts = [rows // 12 + (i < rows % 12) for i in range(12)]
state = {f"{role}.{i}": torch.randn(cut, 768) for role in ("parameter", "exp_avg", "exp_avg_sq") for i, cut in enumerate(cuts)}
size = sum(t.numel() * 4 for t in state.values())
stalls, times = [], []
for turn in range(options.turns):
    target = options.folder / f"torch-{turn}"
    start = time.perf_counter()
    pending = checkpoint.async_save(state, checkpoint_id=str(target))
    stalls.append(time.perf_counter() - start)
    pending.result()
    times.append(time.perf_counter() - start)
    shutil.rmtree(target)
    os.sync()
    if options.rheo:
        subprocess.run([options.rheo, str(options.folder), "--turns", "1"], check=True)
print(f"torch {torch.__version__} async_save: {size / 2**20:.0f} MiB, stall {1000 * statistics.median(stalls):.0f} ms, {size / 2**20 / statistics.median(times):.0f} MiB/s")
dist.destroy_process_group()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A step of the same model under PyTorch's own pipelining schedules, on as many ranks: torch.distributed.pipelining, CPU, gloo.

The shape is that of `bench_timeline --kernels`: a GPT in stages, forward and backward of all microbatches of a step, no update. The
ranks are processes of this machine, one thread each. With --rheo the two take turns. Prints a line per schedule, or one that says
why there is none.

  torch_schedules.py [--rheo build/release/bin/bench_timeline] [--mpirun "mpirun --bind-to none"] [--turns 3]
                     [--ranks 2] [--microbatches 16] [--blocks 6] [--width 256] [--repeats 3] [--json]
"""

import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # torch_block lies beside the folder of this script

heads, sequences, length, vocabulary = 4, 4, 64, 256

# ours -> theirs, stages per rank, whether these lie in a V
families = {"gpipe": ("ScheduleGPipe", 1, False), "1f1b": ("Schedule1F1B", 1, False), "interleaved": ("ScheduleInterleaved1F1B", 2, False),
            "looped-bfs": ("ScheduleLoopedBFS", 2, False), "zb1p": ("ScheduleInterleavedZeroBubble", 2, False),
            "zb-v": ("ScheduleZBVZeroBubble", 2, True), "dualpipe-v": ("ScheduleDualPipeV", 2, True)}


def build(torch, given, stage, stages):
    """The layers of one stage: blocks dealt evenly, the embedding with the first, the classifier with the last."""
    from torch import nn
    from torch_block import Block

    width = given.width

    class Embedding(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)

        def forward(self, tokens):
            return self.token(tokens) + self.position.weight

    layers = [Embedding()] if stage == 0 else []
    layers += [Block(width, heads) for _ in range(given.blocks * (stage + 1) // stages - given.blocks * stage // stages)]
    if stage + 1 == stages:
        layers += [nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)]
    return nn.Sequential(*layers)


def work(given):
    import torch
    import torch.distributed as dist
    from torch.distributed import pipelining
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(1)
    rank = given.rank
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{given.port}", rank=rank, world_size=given.ranks)
    tokens = torch.randint(0, vocabulary, (sequences * given.microbatches, length))
    targets = torch.randint(0, vocabulary, (sequences * given.microbatches, length))

    def loss(logits, wanted):
        return functional.cross_entropy(logits.reshape(-1, vocabulary), wanted.reshape(-1))

    for ours, (theirs, chunks, in_v) in families.items():
        result = {"schedule": ours, "of_torch": theirs, "version": torch.__version__}
        try:
            kind = getattr(pipelining, theirs, None) or getattr(pipelining.schedules, theirs)
            stages = chunks * given.ranks
            mine = [stages - 1 - rank if in_v and chunk == 1 else rank + chunk * given.ranks for chunk in range(chunks)]
            parts = [pipelining.PipelineStage(build(torch, given, s, stages), s, stages, torch.device("cpu")) for s in mine]
            schedule = kind(parts if chunks > 1 else parts[0], given.microbatches, loss_fn=loss)
            inputs = (tokens,) if 0 in mine else ()
            wanted = {"target": targets} if stages - 1 in mine else {}
            durations = []
            for _ in range(given.repeats + 1):
                dist.barrier()
                begin = time.perf_counter()
                schedule.step(*inputs, **wanted)
                longest = torch.tensor(time.perf_counter() - begin, dtype=torch.float64)
                dist.all_reduce(longest, op=dist.ReduceOp.MAX)
                durations.append(longest.item())
            result["step_s"] = sorted(durations[1:])[given.repeats // 2]
        except Exception as error:  # a version without the schedule, or one that it refuses: the same on all ranks
            result["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        if rank == 0:
            print(json.dumps(result), flush=True)
    dist.destroy_process_group()


def lines_of(commands):
    """Starts them at once; the objects that they print, one a line."""
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    try:
        texts = [each.communicate(timeout=600)[0] for each in started]
    finally:
        for each in started:
            each.kill()
    if any(each.returncode for each in started):
        sys.exit(f"ended with {[each.returncode for each in started]}: {shlex.join(commands[0])}")
    return [json.loads(line) for text in texts for line in text.splitlines()]


def shape_of(given):
    return [word for name in ("microbatches", "blocks", "width", "repeats") for word in (f"--{name}", str(getattr(given, name)))]


def turn_of_torch(given):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return lines_of([[sys.executable, os.path.abspath(__file__), *shape_of(given), "--ranks", str(given.ranks), "--rank", str(r), "--port", str(port)]
                     for r in range(given.ranks)])


def turn_of_rheo(given):
    return lines_of([[*shlex.split(given.mpirun), "-n", str(given.ranks), given.rheo, "--kernels", "--json", "--copies", "1", "--schedules", ",".join(families), *shape_of(given)]])


def main():
    arguments = argparse.ArgumentParser()
    for name, default in (("--ranks", 2), ("--microbatches", 16), ("--blocks", 6), ("--width", 256), ("--repeats", 3), ("--turns", 3), ("--rank", -1), ("--port", 0)):
        arguments.add_argument(name, type=int, default=default, help=argparse.SUPPRESS if default < 1 else None)
    arguments.add_argument("--rheo", default="")
    arguments.add_argument("--mpirun", default="mpirun --bind-to none")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    if given.rank >= 0:
        work(given)
        return
    try:
        import torch  # noqa: F401
    except ImportError as error:
        print(json.dumps({"skipped": f"PyTorch is not installed: {error}"}) if given.json else f"skipped: PyTorch is not installed: {error}")
        return
    rows = {name: {"bench": "torch_schedules", "ranks": given.ranks, "microbatches": given.microbatches, "schedule": name} for name in families}
    times = {name: {"torch_s": [], "rheo_s": []} for name in families}
    for _ in range(given.turns):
        found = [("torch_s", "step_s", turn_of_torch(given))] + ([("rheo_s", "measured_s", turn_of_rheo(given))] if given.rheo else [])
        for whose, key, lines in found:
            for line in lines:
                if key in line:
                    times[line["schedule"]][whose].append(line[key])
                rows.get(line.get("schedule"), {}).update({k: line[k] for k in ("of_torch", "version", "error") if k in line})
    if not given.json:
        print(f"{given.ranks} ranks, {given.microbatches} microbatches, medians of {given.turns} turns, ms; PyTorch {torch.__version__}\n"
              f"  {'schedule':<16}{'rheo':>10}{'PyTorch':>10}{'PyTorch/rheo':>14}")
    for name, row in rows.items():
        row.update({whose: sorted(each)[len(each) // 2] for whose, each in times[name].items() if each})
        if given.json:
            print(json.dumps(row))
            continue
        shown = [f"{row[whose] * 1e3:>10.1f}" if whose in row else f"{'-':>10}" for whose in ("rheo_s", "torch_s")]
        ratio = f"{row['torch_s'] / row['rheo_s']:>14.2f}" if "torch_s" in row and "rheo_s" in row else f"{'-':>14}"
        print(f"  {name:<16}{''.join(shown)}{ratio}  {row.get('cannot', '')}".rstrip())


if __name__ == "__main__":
    main()

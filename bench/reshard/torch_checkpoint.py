#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's way to another layout: torch.distributed.checkpoint saves a matrix of floats in block rows and loads it in block columns.

The ranks are processes of this machine with one thread each, over gloo; files lie in a tmpfs. With --rheo, turns of it alternate with turns of
`bench_reshard`, whose case `block rows to block columns` moves the same matrix. The best turn of each counts. Every loaded element is checked.

  torch_checkpoint.py [--rheo build/release/bin/bench_reshard] [--mpirun "mpirun --bind-to none"] [--turns 3] [--ranks 4] [--mib 64] [--repeats 5]
                      [--tmpfs /dev/shm] [--json]
"""

import argparse
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time


def side_of(given):
    """Rows and columns of the matrix: as bench_reshard takes them for as many MiB at each rank."""
    n = 64
    while n * n * 4 < (given.mib << 20) * given.ranks:
        n += 64
    return n


def work(given):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{given.port}", rank=given.rank, world_size=given.ranks)
    mesh = init_device_mesh("cpu", (given.ranks,))
    n = side_of(given)
    first, last = n * given.rank // given.ranks, n * (given.rank + 1) // given.ranks

    def values(rows, columns):
        return (rows[:, None] * 31 + columns[None, :]).remainder(65521).to(torch.float32)

    everything, mine = torch.arange(n), torch.arange(first, last)
    rows = DTensor.from_local(values(mine, everything), mesh, [Shard(0)])
    columns = DTensor.from_local(torch.zeros(n, last - first), mesh, [Shard(1)])
    durations = {"save_s": [], "load_s": [], "both_s": []}
    for repeat in range(given.repeats):
        folder = os.path.join(given.folder, str(repeat))
        columns.to_local().zero_()
        marks = []
        for step in (lambda: None, lambda: checkpoint.save({"matrix": rows}, checkpoint_id=folder), lambda: checkpoint.load({"matrix": columns}, checkpoint_id=folder)):
            step()
            dist.barrier()
            marks.append(time.perf_counter())
        assert torch.equal(columns.to_local(), values(everything, mine)), "loaded elements are not those that were saved"
        for key, begin, end in (("save_s", 0, 1), ("load_s", 1, 2), ("both_s", 0, 2)):
            durations[key].append(marks[end] - marks[begin])
        if given.rank == 0:
            shutil.rmtree(folder)
    if given.rank == 0:
        print(json.dumps({"version": torch.__version__, **{key: min(times) for key, times in durations.items()}}), flush=True)
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
    return [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]


def turn_of_torch(given):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="torch-checkpoint-", dir=given.tmpfs) as folder:
        sizes = [word for name in ("mib", "repeats", "ranks") for word in (f"--{name}", str(getattr(given, name)))]
        return lines_of([[sys.executable, os.path.abspath(__file__), *sizes, "--rank", str(rank), "--port", str(port), "--folder", folder]
                         for rank in range(given.ranks)])[0]


def turn_of_rheo(given):
    lines = lines_of([[*shlex.split(given.mpirun), "-n", str(given.ranks), given.rheo, str(given.mib), str(given.repeats), "--json"]])
    return max(line["gigabytes_per_s"] for line in lines if line["case"] == "block rows to block columns" and line["way"] == "rheo::reshard")


def main():
    arguments = argparse.ArgumentParser()
    for name, default in (("--ranks", 4), ("--mib", 64), ("--repeats", 5), ("--turns", 3), ("--rank", -1), ("--port", 0)):
        arguments.add_argument(name, type=int, default=default, help=argparse.SUPPRESS if default < 1 else None)
    for name, default in (("--rheo", ""), ("--mpirun", "mpirun --bind-to none"), ("--tmpfs", "/dev/shm"), ("--folder", "")):
        arguments.add_argument(name, default=default)
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
    size = side_of(given) ** 2 * 4
    row = {"bench": "torch_checkpoint", "ranks": given.ranks, "bytes": size}
    for _ in range(given.turns):
        found = turn_of_torch(given)
        row["version"] = found.pop("version")
        row.update({key: min(row.get(key, value), value) for key, value in found.items()})
        if given.rheo:
            row["rheo_s"] = min(row.get("rheo_s", 1e300), size / turn_of_rheo(given) / 1e9)
    if "rheo_s" in row:
        row["torch_over_rheo"] = row["both_s"] / row["rheo_s"]
    if given.json:
        print(json.dumps(row))
        return
    print(f"{given.ranks} ranks, {size / 1e6:.0f} MB, block rows to block columns, the best of {given.turns} turns of {given.repeats}")
    print(f"PyTorch {row['version']}: save {row['save_s'] * 1e3:.0f} ms, load {row['load_s'] * 1e3:.0f} ms, both {row['both_s'] * 1e3:.0f} ms")
    if "rheo_s" in row:
        print(f"rheo::reshard: {row['rheo_s'] * 1e3:.0f} ms; PyTorch takes {row['torch_over_rheo']:.1f} times as long")


if __name__ == "__main__":
    main()

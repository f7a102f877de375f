# SPDX-License-Identifier: Apache-2.0
# torch_checkpoint.py <exported_model> <rheo> <folder>: PyTorch itself reads what `rheo convert --format dcp` writes, whole and as shards of other
# cuts on two processes, and saves shards of its own, which `rheo convert` reads: the same bits both ways. Where this Python has no
# torch with the safetensors form of distributed checkpoints, the test says so and is skipped.
import os
import shutil
import subprocess
import sys
import zlib

try:
    import torch
    import torch.distributed
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import load_file
    from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
    from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, zeros
    from torch.multiprocessing import spawn
except ImportError as error:
    print(f"skipped: this test needs a Python with safetensors and a torch that saves distributed checkpoints in it, or its name in -DRHEO_TORCH_PYTHON: {error}")
    sys.exit(77)

moments = {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"}


def key_of(name):
    role, slash, tensor = name.partition("/")
    return f"state.{tensor}.{moments[role]}" if slash else name


def stored(folder):  # the values of a checkpoint in one piece, under PyTorch's keys
    values = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            values.update({key_of(name): value for name, value in load_file(os.path.join(folder, file)).items()})
    return values


def trained(key, value):  # what a training of PyTorch's might have made of it
    draw = torch.Generator().manual_seed(zlib.crc32(key.encode()))
    return value + torch.randn(value.shape, generator=draw)


def placement(key, value):  # any cut will do, as long as it is another
    kind = zlib.crc32(key.encode()) % 3
    return Replicate() if kind == 2 else Shard(min(kind, value.dim() - 1))


def same(what, expected, got):
    assert set(expected) == set(got), f"{what}: {set(expected) ^ set(got)}"
    for key, value in expected.items():
        assert got[key].dtype == value.dtype and got[key].shape == value.shape, f"{what}: {key} is {got[key].dtype} {got[key].shape}"
        assert torch.equal(got[key].view(torch.int32), value.view(torch.int32)), f"{what}: {key} has other bits"
    print(f"ok: {what}")


def shards(rank, folder, expected):  # one of two processes
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    state = {key: zeros(value.shape, device_mesh=mesh, placements=[placement(key, value)]) for key, value in expected.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(f"{folder}/written"))
    full = {key: value.full_tensor() for key, value in state.items()}
    if rank == 0:
        same("torch loads it as shards of two processes", expected, full)
    changed = {key: distribute_tensor(trained(key, value), mesh, [placement(key, value)]) for key, value in expected.items()}
    dcp.save(changed, storage_writer=HuggingFaceStorageWriter(f"{folder}/saved", save_distributed=True))
    torch.distributed.destroy_process_group()


def main(exported_model, rheo, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    shutil.rmtree(folder, ignore_errors=True)

    def run(*command):
        subprocess.run(command, check=True, cwd=folder, timeout=60)

    subprocess.run([exported_model, "make", "gpt2", folder], check=True, timeout=60)
    run(rheo, "convert", "step-1", "written", "--layout", "3,2,2", "--format", "dcp")
    expected = stored(f"{folder}/step-1")
    assert any("-model-00003-of-00003" in name for name in os.listdir(f"{folder}/written")), "a rank has three boxes of fused queries, keys and values"

    state = {key: torch.zeros_like(value) for key, value in expected.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(f"{folder}/written"), no_dist=True)
    same("torch loads it whole", expected, state)
    os.mkdir(f"{folder}/whole")
    consolidate_safetensors_files(input_dir=f"{folder}/written", output_dir=f"{folder}/whole", fqn_to_index_mapping=dict.fromkeys(expected, 1))
    same("torch consolidates it", expected, stored(f"{folder}/whole"))
    spawn(shards, (folder, expected), nprocs=2)

    assert len(os.listdir(f"{folder}/saved")) == 2
    run(rheo, "convert", "saved", "read", "--layout", "1,1,1", "--like", "step-1")
    changed = {key: trained(key, value) for key, value in expected.items()}
    same("rheo reads what torch saved", changed, stored(f"{folder}/read"))
    run(rheo, "convert", "read", "again", "--layout", "1,3,1", "--format", "dcp")
    state = {key: torch.zeros_like(value) for key, value in expected.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(f"{folder}/again"), no_dist=True)
    same("and back", changed, state)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3]))

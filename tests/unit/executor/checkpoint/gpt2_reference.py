# SPDX-License-Identifier: Apache-2.0
# gpt2_reference.py <exported_gpt> tied|untied <folder>: runs the exported model.safetensors with a GPT-2 in numpy, in double precision,
# written from the paper's formulas and Hugging Face's names and shapes, and compares the logits. When transformers is
# installed it must agree, too.
import json
import os
import struct
import subprocess
import sys

import numpy as np


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, about in header.items():
        if name != "__metadata__":
            assert about["dtype"] == "F32", name
            begin, end = about["data_offsets"]
            tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(about["shape"]).astype(np.float64)
    return tensors


def norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def logits_of(w, config, tokens):  # tokens [sequences, length] -> [sequences, length, vocabulary]
    heads, epsilon = config["n_head"], config["layer_norm_epsilon"]
    count, length = tokens.shape
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:length]
    mask = np.tril(np.ones((length, length), bool))
    for block in range(config["n_layer"]):
        def p(name):
            return w[f"transformer.h.{block}.{name}"]

        y = norm(x, p("ln_1.weight"), p("ln_1.bias"), epsilon)
        q, k, v = np.split(y @ p("attn.c_attn.weight") + p("attn.c_attn.bias"), 3, -1)
        q, k, v = (z.reshape(count, length, heads, -1).transpose(0, 2, 1, 3) for z in (q, k, v))
        scores = np.where(mask, q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(count, length, -1)
        x = x + mixed @ p("attn.c_proj.weight") + p("attn.c_proj.bias")
        y = norm(x, p("ln_2.weight"), p("ln_2.bias"), epsilon)
        x = x + gelu(y @ p("mlp.c_fc.weight") + p("mlp.c_fc.bias")) @ p("mlp.c_proj.weight") + p("mlp.c_proj.bias")
    x = norm(x, w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], epsilon)
    return x @ w.get("lm_head.weight", w["transformer.wte.weight"]).T


def compare(name, logits, expected):
    difference = np.abs(logits - expected).max()
    bound = 2e-5 * np.abs(expected).max()
    print(f"{name}: logits up to {np.abs(expected).max():.3f}, largest difference {difference:.2e}, allowed {bound:.2e}")
    return difference <= bound


def main():
    program, kind, folder = sys.argv[1:]
    subprocess.run([program, kind, folder], check=True)
    exported = os.path.join(folder, "exported")
    with open(os.path.join(exported, "config.json")) as file:
        config = json.load(file)
    weights = read_safetensors(os.path.join(exported, "model.safetensors"))
    assert ("lm_head.weight" in weights) == (kind == "untied")
    tokens = np.fromfile(os.path.join(folder, "tokens.i32"), "<i4").reshape(-1, config["n_positions"])
    logits = np.fromfile(os.path.join(folder, "logits.f32"), "<f4").reshape(*tokens.shape, config["vocab_size"]).astype(np.float64)
    good = compare("numpy", logits, logits_of(weights, config, tokens))
    try:
        import torch
        import transformers
    except ImportError:
        print("transformers and torch are not installed: not compared with them")
    else:
        model = transformers.GPT2LMHeadModel.from_pretrained(exported).eval()
        with torch.no_grad():
            good = compare("transformers", logits, model(torch.tensor(tokens.astype(np.int64))).logits.double().numpy()) and good
    return 0 if good else 1


sys.exit(main())

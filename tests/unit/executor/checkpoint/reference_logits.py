# SPDX-License-Identifier: Apache-2.0
# reference_logits.py <exported_model> <kind> <folder>: runs exported weights with a GPT-2 or a Llama in numpy, in double precision, written from the
# papers' formulas and Hugging Face's names and shapes, and compares the logits. When transformers is installed it must agree, too.
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


def rms(x, weight, epsilon):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attend(q, k, v):  # [sequences, heads, length, width of a head]: each position to itself and those before
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)


def gpt2(w, config, tokens):  # tokens [sequences, length] -> [sequences, length, vocabulary]
    heads, epsilon = config["n_head"], config["layer_norm_epsilon"]
    count, length = tokens.shape
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:length]
    for block in range(config["n_layer"]):
        def p(name):
            return w[f"transformer.h.{block}.{name}"]

        y = norm(x, p("ln_1.weight"), p("ln_1.bias"), epsilon)
        parts = np.split(y @ p("attn.c_attn.weight") + p("attn.c_attn.bias"), 3, -1)
        mixed = attend(*(z.reshape(count, length, heads, -1).transpose(0, 2, 1, 3) for z in parts))
        x = x + mixed @ p("attn.c_proj.weight") + p("attn.c_proj.bias")
        y = norm(x, p("ln_2.weight"), p("ln_2.bias"), epsilon)
        x = x + gelu(y @ p("mlp.c_fc.weight") + p("mlp.c_fc.bias")) @ p("mlp.c_proj.weight") + p("mlp.c_proj.bias")
    x = norm(x, w["transformer.ln_f.weight"], w["transformer.ln_f.bias"], epsilon)
    return x @ w.get("lm_head.weight", w["transformer.wte.weight"]).T


def frequencies(config, width):  # of each pair, per position; scaled by the length of its wave
    plain = config["rope_theta"] ** (-2 * np.arange(width // 2) / width)
    scaling = config["rope_scaling"]
    if scaling is None:
        return plain
    if scaling["rope_type"] == "linear":
        return plain / scaling["factor"]
    assert scaling["rope_type"] == "llama3"
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = scaling["original_max_position_embeddings"] / (2 * np.pi / plain)
    share = np.clip((waves - low) / (high - low), 0, 1)
    return (1 - share) * plain / scaling["factor"] + share * plain


def turned(x, angles):  # [..., length, width]: elements i and i + width / 2 are the parts of a complex number
    half = x.shape[-1] // 2
    z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([z.real, z.imag], -1)


def llama(w, config, tokens):
    heads, groups, width = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    epsilon = config["rms_norm_eps"]
    count, length = tokens.shape
    x = w["model.embed_tokens.weight"][tokens]
    angles = np.outer(np.arange(length), frequencies(config, width))
    for block in range(config["num_hidden_layers"]):
        def p(name):
            return w[f"model.layers.{block}.{name}"]

        def project(y, name):
            z = y @ p(f"self_attn.{name}_proj.weight").T
            if config["model_type"] == "qwen2":
                z = z + p(f"self_attn.{name}_proj.bias")
            z = z.reshape(count, length, -1, width)
            if config["model_type"] == "qwen3" and name != "v":
                z = rms(z, p(f"self_attn.{name}_norm.weight"), epsilon)
            return z.transpose(0, 2, 1, 3)

        y = rms(x, p("input_layernorm.weight"), epsilon)
        q, k, v = (project(y, name) for name in "qkv")
        k, v = (np.repeat(turned(z, angles) if z is k else z, heads // groups, 1) for z in (k, v))
        x = x + attend(turned(q, angles), k, v) @ p("self_attn.o_proj.weight").T
        y = rms(x, p("post_attention_layernorm.weight"), epsilon)
        gate = y @ p("mlp.gate_proj.weight").T
        x = x + (gate / (1 + np.exp(-gate)) * (y @ p("mlp.up_proj.weight").T)) @ p("mlp.down_proj.weight").T
    x = rms(x, w["model.norm.weight"], epsilon)
    return x @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


def compare(name, logits, expected):
    difference = np.abs(logits - expected).max()
    bound = 2e-5 * np.abs(expected).max()
    print(f"{name}: logits up to {np.abs(expected).max():.3f}, largest difference {difference:.2e}, allowed {bound:.2e}")
    return difference <= bound


def main():
    program, kind, folder = sys.argv[1:]
    subprocess.run([program, "make", kind, folder], check=True)
    exported = os.path.join(folder, "exported")
    with open(os.path.join(exported, "config.json")) as file:
        config = json.load(file)
    weights = read_safetensors(os.path.join(exported, "model.safetensors"))
    assert ("lm_head.weight" in weights) == (not config["tie_word_embeddings"])
    of_gpt2 = config["model_type"] == "gpt2"
    length = config["n_positions"] if of_gpt2 else config["max_position_embeddings"]
    tokens = np.fromfile(os.path.join(folder, "tokens.i32"), "<i4").reshape(-1, length)
    logits = np.fromfile(os.path.join(folder, "logits.f32"), "<f4").reshape(*tokens.shape, config["vocab_size"]).astype(np.float64)
    good = compare("numpy", logits, (gpt2 if of_gpt2 else llama)(weights, config, tokens))
    try:
        import torch
        import transformers
    except ImportError:
        print("transformers and torch are not installed: not compared with them")
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(exported).eval()
        with torch.no_grad():
            good = compare("transformers", logits, model(torch.tensor(tokens.astype(np.int64))).logits.double().numpy()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""finetuned.py <rheo> <folder with reference_logits.py> <work folder>: a random model of Llama 3.2's shape as Hugging Face has it is imported, fine-tuned on
text by two pipelines that lose a rank, and exported. Greedy decoding by rheo gives the tokens of a Llama in numpy, in double precision, and those of
transformers where this Python has it. RHEO_MPIRUN names the launcher."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np

rheo, reference, work = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
sys.path.insert(0, reference)
import reference_logits as by_numpy  # noqa: E402

config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "vocab_size": 300, "max_position_embeddings": 64,
          "hidden_size": 32, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
          "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "torch_dtype": "float32",
          "rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16},
          "bos_token_id": 298, "eos_token_id": [299]}
generation = {"bos_token_id": 298, "eos_token_id": [299], "do_sample": False}


def shapes():
    width, mlp, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], width)
    for block in range(config["num_hidden_layers"]):
        for name, shape in {"input_layernorm": (width,), "self_attn.q_proj": (queries, width), "self_attn.k_proj": (keys, width),
                            "self_attn.v_proj": (keys, width), "self_attn.o_proj": (width, queries), "post_attention_layernorm": (width,),
                            "mlp.gate_proj": (mlp, width), "mlp.up_proj": (mlp, width), "mlp.down_proj": (width, mlp)}.items():
            yield f"model.layers.{block}.{name}.weight", shape
    yield "model.norm.weight", (width,)


def save(folder):
    random, header, data = np.random.default_rng(5), {}, b""
    for name, shape in shapes():
        values = (random.standard_normal(shape) * 0.3 + (len(shape) == 1)).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(generation))


def run(*command):
    result = subprocess.run([str(c) for c in command], cwd=work, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{command}\n{result.stdout}{result.stderr}")
    return result.stdout


shutil.rmtree(work, ignore_errors=True)
save(work / "saved")
(work / "text").write_text("".join(f"line {i} of a text that is always the same\n" for i in range(400)))
run(rheo, "import", "saved", "run")
launch = [os.environ["RHEO_MPIRUN"], "--with-ft", "ulfm", "--mca", "pml", "ob1", "--oversubscribe", "--bind-to", "none"]
launch += ["--allow-run-as-root"] if os.geteuid() == 0 else []
log = run(*launch, "-n", 4, rheo, "train", "run/config.toml", "--set", 'data.paths=["text"]', "--set", "plan.pipelines=[2,2]", "--set", "train.steps=8",
          "--set", "train.microbatches=6", "--set", "optimizer.learning_rate=1e-3", "--inject", "kill:2@3:backward")
assert "lost rank 2 in step 4: 3 ranks in " in log, log
run(rheo, "export", "run", "exported")
exported = json.loads((work / "exported/config.json").read_text())
assert all(exported[key] == config[key] for key in config), exported
assert json.loads((work / "exported/generation_config.json").read_text()) == generation
weights = by_numpy.read_safetensors(work / "exported/model.safetensors")
before = by_numpy.read_safetensors(work / "saved/model.safetensors")
assert all(not np.array_equal(weights[name], before[name]) for name in before)  # it was trained

prompts = np.frombuffer((work / "text").read_bytes()[:96], np.uint8).reshape(4, 24).astype(np.int64)
more = 24
(work / "prompts.jsonl").write_text("".join(json.dumps({"tokens": p.tolist()}) + "\n" for p in prompts))
made = json.loads(run(rheo, "generate", "exported", "--prompts", "prompts.jsonl", "--tokens", more, "--temperature", 0, "--ignore-end", "--json"))
tokens = np.array([text["prompt_tokens"] + text["tokens"] for text in made["texts"]])
expected = prompts
for _ in range(more):
    expected = np.concatenate([expected, by_numpy.llama(weights, exported, expected)[:, -1].argmax(-1)[:, None]], -1)
assert np.array_equal(tokens, expected), (tokens, expected)
print(f"{len(prompts)} x {more} greedy tokens are those of numpy")
try:
    import torch
    import transformers
except ImportError:
    print("transformers and torch are not installed: not compared with them")
else:
    model = transformers.AutoModelForCausalLM.from_pretrained(work / "exported").eval()
    assert model.generation_config.eos_token_id == generation["eos_token_id"]
    model.generation_config.eos_token_id = None  # as --ignore-end
    with torch.no_grad():
        by_transformers = model.generate(torch.tensor(prompts), max_new_tokens=more, do_sample=False, pad_token_id=0).numpy()
    assert np.array_equal(by_transformers, tokens), (by_transformers, tokens)
    print("and those of transformers")

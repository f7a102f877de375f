#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second of `rheo generate` and of transformers, greedy, from the same random weights in fp32, in turns on the same cores; the best of each.

  with_transformers.py --rheo build/release/bin/rheo [--shape llama] [--batches 1 8] [--threads 2]

The shape is GPT-2 124M, or two layers of Llama 3.2 1B with its vocabulary. With the cache of keys and values and without, for one prompt and for several. Times are
those of prompts and tokens, without start and loading.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

import torch
import transformers

parser = argparse.ArgumentParser()
parser.add_argument("--rheo", required=True)
parser.add_argument("--shape", choices=["gpt2", "llama"], default="gpt2")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--prompt", type=int, default=64, help="tokens of each prompt")
parser.add_argument("--tokens", type=int, default=32, help="tokens to generate")
parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--no-uncached", action="store_true")
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(5)
none = dict(bos_token_id=None, eos_token_id=None, pad_token_id=None)
if options.shape == "gpt2":
    config = transformers.GPT2Config(**none)
else:
    config = transformers.LlamaConfig(vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=2, num_attention_heads=32,
                                      num_key_value_heads=8, max_position_embeddings=2048, tie_word_embeddings=True, **none)
model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
tokens = torch.randint(config.vocab_size, (max(options.batches), options.prompt))


def by_transformers(batch, cached):
    begin = time.perf_counter()
    with torch.no_grad():
        made = model.generate(tokens[:batch], attention_mask=torch.ones_like(tokens[:batch]), max_new_tokens=options.tokens, do_sample=False, use_cache=cached,
                              pad_token_id=0)
    return made[:, options.prompt :].tolist(), time.perf_counter() - begin


def by_rheo(folder, batch, cached):
    prompts = os.path.join(folder, "prompts.jsonl")
    with open(prompts, "w") as file:
        for sequence in tokens[:batch].tolist():
            file.write(json.dumps({"tokens": sequence}) + "\n")
    command = [options.rheo, "generate", folder, "--prompts", prompts, "--tokens", str(options.tokens), "--temperature", "0", "--batch", str(batch),
               "--threads", str(options.threads), "--json"] + ([] if cached else ["--no-cache"])
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return [text["tokens"] for text in result["texts"]], result["seconds"]  # without the start and the loading of weights, as above


print(f"{options.shape}, {sum(p.numel() for p in model.parameters()) / 1e6:.0f} M parameters, prompts of {options.prompt} tokens, {options.tokens} generated, "
      f"{options.threads} threads, torch {torch.__version__}, transformers {transformers.__version__}")
print(f"{'prompts':>8} {'cache':>6} {'rheo':>10} {'transformers':>13}  tokens/s, prompts included in the time")
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    for batch in options.batches:
        for cached in (True, False):
            if options.no_uncached and not cached:
                continue
            best = [float("inf"), float("inf")]
            for _ in range(options.repeats):
                ours, seconds = by_rheo(folder, batch, cached)
                best[0] = min(best[0], seconds)
                theirs, seconds = by_transformers(batch, cached)
                best[1] = min(best[1], seconds)
            count = batch * options.tokens
            note = "" if ours == theirs else "  (tokens differ: likely a tie within rounding)"
            print(f"{batch:>8} {'yes' if cached else 'no':>6} {count / best[0]:>10.1f} {count / best[1]:>13.1f}{note}", flush=True)

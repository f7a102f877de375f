# SPDX-License-Identifier: Apache-2.0
# transformers_families.py <exported_model> <rheo> <folder>: small random models of each family as transformers saves them (in shards, in F32, BF16 or F16)
# are imported; the logits that rheo computes are those of transformers, and so are the tokens that it generates and the loss that it measures; exported
# again they load with the same bits and generate the same tokens.
# Configs that are computed otherwise are refused. Where this Python has no transformers, the test says so and is skipped.
import json
import os
import shutil
import subprocess
import sys

try:
    import numpy as np
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: this test needs a Python with numpy, torch and transformers, or its name in -DRHEO_TRANSFORMERS_PYTHON: {error}")
    sys.exit(77)

context, vocabulary = 24, 300
llama_like = dict(vocab_size=vocabulary, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                  max_position_embeddings=context, rms_norm_eps=1e-5, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def rope(theta, **scaling):  # transformers 5 has one member, those before it two
    if hasattr(transformers.LlamaConfig(), "rope_parameters"):
        return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **scaling}}
    return {"rope_theta": theta, "rope_scaling": scaling or None}


families = {
    "gpt2": lambda: transformers.GPT2Config(vocab_size=vocabulary, n_positions=context, n_embd=48, n_head=6, n_layer=3, bos_token_id=None, eos_token_id=None),
    "llama2": lambda: transformers.LlamaConfig(**{**llama_like, "num_key_value_heads": 6}),
    "llama-tied": lambda: transformers.LlamaConfig(**llama_like, **rope(500000.0), tie_word_embeddings=True),
    "llama3": lambda: transformers.LlamaConfig(**llama_like, **rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                                   original_max_position_embeddings=16)),
    "llama-linear": lambda: transformers.LlamaConfig(**llama_like, **rope(10000.0, rope_type="linear", factor=2.5)),
    "mistral": lambda: transformers.MistralConfig(**llama_like, **rope(1000000.0), sliding_window=None),
    "mistral-nemo": lambda: transformers.MistralConfig(**llama_like, head_dim=10, sliding_window=None),
    "qwen2": lambda: transformers.Qwen2Config(**{**llama_like, "rms_norm_eps": 1e-6}, **rope(1000000.0)),
    "qwen2-tied": lambda: transformers.Qwen2Config(**{**llama_like, "rms_norm_eps": 1e-6}, tie_word_embeddings=True),
    "qwen3": lambda: transformers.Qwen3Config(**{**llama_like, "rms_norm_eps": 1e-6}, head_dim=12, **rope(1000000.0)),
    "qwen3-tied": lambda: transformers.Qwen3Config(**{**llama_like, "rms_norm_eps": 1e-6}, head_dim=8, tie_word_embeddings=True),
}
refused = {
    "mistral-window": (lambda: transformers.MistralConfig(**llama_like, sliding_window=8), "attends to the last 8 of 24 tokens"),
    "llama-bias": (lambda: transformers.LlamaConfig(**llama_like, attention_bias=True), "has another 'attention_bias' than false"),
    "qwen3-bias": (lambda: transformers.Qwen3Config(**llama_like, head_dim=8, attention_bias=True), "has another 'attention_bias' than false"),
    "llama-yarn": (lambda: transformers.LlamaConfig(**llama_like, **rope(10000.0, rope_type="yarn", factor=2.0, original_max_position_embeddings=12)),
                   "has rotary positions of the type 'yarn'; default, linear and llama3 can be taken"),
}


def randomized(config, dtype):  # no weight is a zero or a one
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.to(dtype).eval()


def generated(model, tokens):
    with torch.no_grad():
        return model.generate(tokens[:, :8], max_new_tokens=8, do_sample=False, pad_token_id=0)


def generated_by_rheo(rheo, model, folder, tokens, *options):  # greedy, the rest of the context behind the first 8 tokens
    prompts = os.path.join(folder, "prompts.jsonl")
    with open(prompts, "w") as file:
        for sequence in tokens[:, :8].tolist():
            file.write(json.dumps({"tokens": sequence}) + "\n")
    result = run(rheo, "generate", model, "--prompts", prompts, "--tokens", "8", "--temperature", "0", "--json", *options)
    return torch.tensor([text["prompt_tokens"] + text["tokens"] for text in json.loads(result.stdout)["texts"]])


def check_loss(rheo, model, folder, reference, tokens):  # of one document, in windows of the context
    file = os.path.join(folder, "document.bin")
    with open(file, "wb") as document:
        header = np.zeros(256, "<i4")
        header[:3] = 20240520, 1, tokens.numel()
        document.write(header.tobytes() + tokens.numpy().astype("<u2").tobytes())
    result = json.loads(run(rheo, "evaluate", model, file, "--window", str(context), "--json").stdout)
    sequence, losses = tokens.reshape(-1), []
    for begin in range(0, len(sequence) - 1, context):
        window = sequence[begin : begin + context + 1]
        with torch.no_grad():
            logits = reference(window[:-1].reshape(1, -1)).logits[0]
        losses.append(torch.nn.functional.cross_entropy(logits, window[1:], reduction="none"))
    expected = torch.cat(losses).double().mean().item()
    assert result["tokens"] == len(sequence) - 1 and abs(result["loss"] - expected) < 1e-5 * expected, (result, expected)


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stdout, result.stderr)
    return result


def check(program, rheo, folder, name, config, dtype, shards):
    saved, imported, exported = (os.path.join(folder, f"{name}-{what}") for what in ("saved", "run", "exported"))
    model = randomized(config, dtype)
    model.save_pretrained(saved, max_shard_size="20KB" if shards else "5GB")
    assert os.path.exists(os.path.join(saved, "model.safetensors.index.json")) == shards
    assert run(rheo, "import", saved, imported).returncode == 0
    tokens = torch.randint(vocabulary, (2, context))
    tokens.numpy().astype("<i4").tofile(os.path.join(imported, "tokens.i32"))
    assert run(program, "logits", os.path.join(imported, "step-0"), imported).returncode == 0
    logits = np.fromfile(os.path.join(imported, "logits.f32"), "<f4").reshape(2, context, vocabulary)
    reference = transformers.AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32).eval()  # model.float() would keep rounded angles
    with torch.no_grad():
        expected = reference(tokens).logits.numpy()
    difference, bound = np.abs(logits - expected).max(), 2e-5 * np.abs(expected).max()
    print(f"{name}, {dtype}: logits up to {np.abs(expected).max():.3f}, largest difference {difference:.2e}, allowed {bound:.2e}")
    assert difference <= bound
    greedy = generated(reference, tokens)
    for options in ([], ["--no-cache"], ["--batch", "1", "--threads", "2"]):
        assert torch.equal(generated_by_rheo(rheo, imported, imported, tokens, *options), greedy), (name, options)
    assert torch.equal(generated_by_rheo(rheo, saved, imported, tokens), greedy)
    check_loss(rheo, imported, imported, reference, tokens)
    short = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}[dtype]
    assert run(rheo, "export", imported, exported, "--dtype", short, *(["--shard-size", "0.02"] if shards else [])).returncode == 0
    again = transformers.AutoModelForCausalLM.from_pretrained(exported, dtype=dtype)
    assert type(again) is type(model)
    theirs, ours = (m.to(dtype).state_dict() for m in (model, again))
    assert theirs.keys() == ours.keys()
    assert all(torch.equal(theirs[key], ours[key]) for key in theirs)
    again = transformers.AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32).eval()
    assert torch.equal(greedy, generated(again, tokens))


def main():
    program, rheo, folder = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for number, (name, config) in enumerate(families.items()):
        dtype = (torch.float32, torch.bfloat16, torch.float16)[number % 3]
        check(program, rheo, folder, name, config(), dtype, number % 2 == 1)
    for name, (config, words) in refused.items():
        saved = os.path.join(folder, name)
        randomized(config(), torch.float32).save_pretrained(saved)
        result = subprocess.run([rheo, "import", saved, saved + "-run"], capture_output=True, text=True)
        assert result.returncode == 4 and words in result.stderr, result.stderr
        assert not os.path.exists(saved + "-run")
        print(f"{name}: refused, {result.stderr.strip()}")


main()

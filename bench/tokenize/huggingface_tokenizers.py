#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenizing of text files by `rheo tokenize` and by Hugging Face's `tokenizers`, in turns on the same cores; the tokens must be equal.

  huggingface_tokenizers.py --rheo build/release/bin/rheo /usr/share/doc

The files (UTF-8 as they are, or packed by gzip) become JSON lines with documents of about 64 KiB. A tokenizer is trained on them by rheo unless one is given.
rheo's time is that of the whole command, from its start to the renamed file; that of `tokenizers` is encode_batch_fast on texts in memory.
"""
import argparse
import gzip
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time


def documents(paths, most):
    size = 0
    for path in paths:
        for folder, folders, names in os.walk(path):
            folders.sort()
            for name in sorted(names):
                file = pathlib.Path(folder) / name
                if file.is_symlink():
                    continue
                try:
                    data = (gzip.open(file) if name.endswith(".gz") else open(file, "rb")).read()
                    text = data.decode()
                except (OSError, EOFError, UnicodeDecodeError):
                    continue
                if "\0" in text:
                    continue
                at = 0
                while at < len(text):
                    end = text.find("\n", at + (64 << 10)) + 1 or len(text)
                    yield text[at:end]
                    size += len(text[at:end].encode())
                    at = end
                    if size >= most:
                        return


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("paths", nargs="+")
    parse.add_argument("--rheo", required=True)
    parse.add_argument("--tokenizer", help="a tokenizer.json; else one is trained")
    parse.add_argument("--vocabulary", type=int, default=32000)
    parse.add_argument("--megabytes", type=int, default=32)
    parse.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parse.add_argument("--rounds", type=int, default=3)
    options = parse.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    import tokenizers  # reads the variables when it starts its threads

    texts = list(documents(options.paths, options.megabytes * 1_000_000))
    size = sum(len(t.encode()) for t in texts)
    with tempfile.TemporaryDirectory() as folder:
        lines = pathlib.Path(folder) / "texts.jsonl"
        lines.write_text("".join(json.dumps({"text": t}, ensure_ascii=False) + "\n" for t in texts), encoding="utf-8")
        file = options.tokenizer or f"{folder}/tokenizer.json"
        if not options.tokenizer:
            begin = time.perf_counter()
            subprocess.run([options.rheo, "tokenize", "--train", "bpe", "--vocabulary", str(options.vocabulary), str(lines), "--out", file,
                            "--threads", str(options.threads)], check=True, stdout=subprocess.DEVNULL)
            print(f"trained a tokenizer of {options.vocabulary} tokens in {time.perf_counter() - begin:.1f} s")
        reference = tokenizers.Tokenizer.from_file(file)
        out = f"{folder}/tokens.bin"
        best = {"rheo": 1e30, "tokenizers": 1e30}
        for _ in range(options.rounds):
            begin = time.perf_counter()
            subprocess.run([options.rheo, "tokenize", file, str(lines), "--out", out, "--document-token", "none", "--no-special-tokens", "--threads",
                            str(options.threads)], check=True, stdout=subprocess.DEVNULL)
            best["rheo"] = min(best["rheo"], time.perf_counter() - begin)
            begin = time.perf_counter()
            encoded = reference.encode_batch_fast(texts, add_special_tokens=False)
            best["tokenizers"] = min(best["tokenizers"], time.perf_counter() - begin)
        expected = [i for e in encoded for i in e.ids]
        data = pathlib.Path(out).read_bytes()
        magic, _, count = struct.unpack_from("<3i", data)
        tokens = list(struct.unpack_from(f"<{count}{'H' if magic == 20240520 else 'I'}", data, 1024))
        print(f"{size / 1e6:.1f} MB, {len(texts)} documents, {count} tokens, {options.threads} threads; tokenizers {tokenizers.__version__}")
        for name, seconds in best.items():
            print(f"{name:12} {size / 1e6 / seconds:8.1f} MB/s")
        print(f"rheo is {best['tokenizers'] / best['rheo']:.1f} times as fast; the tokens are {'equal' if tokens == expected else 'NOT equal'}")
        return tokens != expected


if __name__ == "__main__":
    sys.exit(main())

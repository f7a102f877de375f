#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""huggingface_tokens.py <tokens_of> <rheo> <folder>: builds tokenizers in the form of each family with Hugging Face's `tokenizers`, and compares tokens and
decoded texts of many scripts with those of rheo; trains one with both and compares the merges. Exit code 77 where the package is missing.

  huggingface_tokens.py --golden <folder>   writes the vectors that the unit tests read, which need no Python
"""
import json
import pathlib
import random
import subprocess
import sys
import unicodedata

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError:
    print("this test needs a Python with tokenizers (pip install tokenizers)")
    sys.exit(77)

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

SCRIPTS = [
    "The quick brown fox jumps over the lazy dog. It's what they've said: we'll see, I'd say; THEY'RE 'S 'ſ.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ἄνθρωπος",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлки ё",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ١٢٣٤٥",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה שָׁלוֹם",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश करने वाले विष्णुवतार भगवान श्रीराम १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "我能吞下玻璃而不伤身体。天地玄黄,宇宙洪荒;日月盈昃,辰宿列张。一二三123",
    "いろはにほへと ちりぬるを。カタカナとガギグゲゴ、ｶﾞｷﾞ 漢字かな交じり文",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 각각",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 ☕️ 🇩🇪🇫🇷 e\u0301a\u0308 \u1e9b\u0323 A\u030a \u212b \u0344",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * 0x1F; // 12345678 \u00bd \u2167 \u0661\u06f2\n}\r\n\r\n    return sum;\n",
    "  leading\t\ttabs   and    runs \n\n\n of \r\n white\u00a0space\u2003wide\u3000ideographic \u180e mongolian \u200b zero  ",
    "<|endoftext|>in the middle <|endoftext|> <|im_start|>user\nhi<|im_end|><s>x</s> <unk> <mask> word<mask>word \u2581literal\u2581mark",
    "\u1100\u1161\u11a8 \uac00\u11a8 \u0f71\u0f72 \u0931\u093c \u09c7\u09be i\u0307\u0323 \u0130stanbul \ufb01 \u2460 \u33a5 \u00c5ngstr\u00f6m",
    "", " ", "\n", "\n\n", "a", "\u2581", "  a", "\ufeffbom", "x\u0000y", "naïve café — “quotes” … 50% €100 #tag @user https://example.org/?q=1&r=2",
]


def texts(seed):
    """The scripts, and mixtures of pieces of them in which anything may stand beside anything."""
    draw = random.Random(seed)
    whole = "".join(SCRIPTS)
    made = list(SCRIPTS) + ["\n".join(SCRIPTS)]
    for _ in range(150):
        text = ""
        for _ in range(draw.randint(1, 12)):
            at = draw.randrange(len(whole))
            text += whole[at:at + draw.choice((1, 1, 2, 5, 20))] + draw.choice(("", "", " ", "\n", "  ", "\n ", " \n", "\r\n"))
        made.append(text)
    for _ in range(100):  # any characters that Unicode 3.2 had: newer ones are letters in one library and unassigned in the other
        drawn = (chr(draw.choice((draw.randrange(0x80), draw.randrange(0x800), draw.randrange(0xd800), 0x10000 + draw.randrange(0x10000))))
                 for _ in range(draw.randint(1, 80)))
        made.append("".join(c for c in drawn if unicodedata.ucd_3_2_0.category(c) != "Cn"))
    return made


CORPUS = [" ".join(SCRIPTS[:13])] * 3 + SCRIPTS[:13] + ["lower lowest newer newest wider widest code encode decode tokens tokenizer 2024 1999 30000"] * 5


def byte_level(pre, normalizer, vocabulary, special, post=None, ignore_merges=False):
    made = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = pre
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=special, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    if post:
        made.post_processor = post
    return made


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), None, 700, ["<|endoftext|>"], processors.ByteLevel(trim_offsets=False))


def gpt2_prefix():
    made = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), None, 500, ["<|endoftext|>"])
    made.add_tokens([AddedToken("<mask>", lstrip=True), AddedToken("word", single_word=True), AddedToken("jumps", rstrip=True, normalized=False)])
    return made


def llama3():
    return byte_level(split(LLAMA3), None, 800, ["<|begin_of_text|>", "<|end_of_text|>"], processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B", special_tokens=[("<|begin_of_text|>", 0)])]),
        ignore_merges=True)


def qwen2():
    made = byte_level(split(QWEN2), normalizers.NFC(), 800, [], processors.ByteLevel(trim_offsets=False))
    made.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    made.add_tokens(["\u00e9", "user"])  # looked for in the normalized text
    return made


def digits():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return byte_level(pre, None, 600, ["<|endoftext|>"])


def sentencepiece_vocabulary(extra):
    """A character-level BPE trained on marked words, with bytes to fall back to, as SentencePiece's are."""
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    trained.pre_tokenizer = pre_tokenizers.Split("\u2581", "merged_with_next")
    trained.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=500, show_progress=False, limit_alphabet=150, initial_alphabet=["\u2581"]))
    model = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(model["vocab"], key=model["vocab"].get) + extra
    merges = [tuple(m) for m in model["merges"]]
    return {t: i for i, t in enumerate(dict.fromkeys(tokens))}, merges


def llama2():
    vocabulary, merges = sentencepiece_vocabulary(["\u2581\u2581", "\u2581\u2581\u2581\u2581"])
    made = Tokenizer(models.BPE(vocabulary, merges + [("\u2581", "\u2581"), ("\u2581\u2581", "\u2581\u2581")], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    made.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    return made


def mistral():
    vocabulary, merges = sentencepiece_vocabulary([])
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="first", split=False)
    made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    made.add_special_tokens([AddedToken(t, normalized=False) for t in ("<unk>", "<s>", "</s>")])
    return made


def crossing():
    """Merges that join across blanks: nothing may be cut there."""
    vocabulary = {t: i for i, t in enumerate(["<unk>", "\u2581", "a", "n", "t", "h", "e", "th", "the", "e\u2581", "\u2581a"])}
    made = Tokenizer(models.BPE(vocabulary, [("t", "h"), ("e", "\u2581"), ("\u2581", "a")], unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    made.decoder = decoders.Metaspace()
    return made


def unknown(fuse):
    vocabulary, merges = sentencepiece_vocabulary([])
    vocabulary = {t: i for i, t in enumerate(t for t in vocabulary if not t.startswith("<0x") or t in ("<0xC3>", "<0xA9>", "<0xF0>"))}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=fuse, byte_fallback=True))
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return made


def words():
    """The pre-tokenizers that look at classes of characters."""
    made = byte_level(pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Digits(),
                                               pre_tokenizers.Split("o", "merged_with_next"), pre_tokenizers.Split(Regex("[aeiou]+"), "contiguous", invert=True),
                                               pre_tokenizers.Split("l", "removed"), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)]),
                      normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.NFKD()]), 500, [])
    return made


FAMILIES = {"gpt2": gpt2, "gpt2_prefix": gpt2_prefix, "llama3": llama3, "qwen2": qwen2, "digits": digits, "llama2": llama2, "mistral": mistral, "crossing": crossing,
            "unknown": lambda: unknown(False), "unknown_fused": lambda: unknown(True), "words": words}


GOLDEN = ("gpt2", "llama3", "qwen2", "llama2", "mistral")


def write_golden(folder):
    """<name>.json: a tokenizer, and for texts their tokens and what they decode to. Small: they are part of the tree."""
    for name in GOLDEN:
        reference = FAMILIES[name]()
        rows = []
        for text in SCRIPTS:
            ids = reference.encode(text, add_special_tokens=False).ids
            rows.append({"text": text, "ids": ids, "decoded": reference.decode(ids, skip_special_tokens=False), "short": reference.decode(ids),
                         "with_special": reference.encode(text).ids})
        golden = {"tokenizer": json.loads(reference.to_str()), "texts": rows}
        (folder / f"{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    return 0


def compare_training(rheo, folder):
    """Merges learned by `rheo tokenize --train bpe` are those of Hugging Face's trainer."""
    corpus = texts(99) + CORPUS
    lines, file = folder / "corpus.jsonl", folder / "trained.json"
    lines.write_text("".join(json.dumps({"text": t}) + "\n" for t in corpus))
    subprocess.run([rheo, "tokenize", "--train", "bpe", "--vocabulary", "1200", str(lines), "--out", str(file)], check=True, stdout=subprocess.DEVNULL)
    mine = json.loads(file.read_text())
    reference = Tokenizer(models.BPE())
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=1200, min_frequency=2, special_tokens=["<|endoftext|>"], show_progress=False,
                                                              initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    theirs = json.loads(reference.to_str())["model"]["merges"]
    same = [tuple(m) for m in mine["model"]["merges"]] == [tuple(m) for m in theirs]
    taken = Tokenizer.from_file(str(file))  # what rheo writes, Hugging Face's library reads
    whole = all(taken.decode(taken.encode(t).ids, skip_special_tokens=False) == t for t in corpus)
    print(f"training: {len(theirs)} merges, {'equal' if same else 'NOT equal'}; texts {'are' if whole else 'are NOT'} whole")
    return 0 if same and whole else 1


def main():
    if sys.argv[1] == "--golden":
        return write_golden(pathlib.Path(sys.argv[2]))
    program, rheo, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    wrong = compare_training(rheo, folder)
    for seed, (name, make) in enumerate(FAMILIES.items()):
        reference = make()
        file, lines = folder / f"{name}.json", folder / f"{name}.txt"
        file.write_text(reference.to_str(), encoding="utf-8")
        reference = Tokenizer.from_file(str(file))
        all_texts = texts(seed)
        lines.write_text("".join(json.dumps(t) + "\n" for t in all_texts))
        run = subprocess.run([program, str(file), str(lines)], stdout=subprocess.PIPE, text=True)
        answers = [json.loads(line) for line in run.stdout.splitlines()]
        if run.returncode or len(answers) != len(all_texts):
            print(f"{name}: {len(answers)} answers to {len(all_texts)} texts, exit code {run.returncode}")
            wrong += 1
            continue
        tokens = 0
        for text, answer in zip(all_texts, answers):
            ids = reference.encode(text, add_special_tokens=False).ids
            expected = {"ids": ids, "text": reference.decode(ids, skip_special_tokens=False), "short": reference.decode(ids)}
            tokens += len(ids)
            if answer != expected:
                wrong += 1
                both = ({k: v for k, v in one.items() if v != other[k]} for one, other in ((expected, answer), (answer, expected)))
                print(f"{name}: {text[:200]!r}\n  expected {next(both)}\n  but      {next(both)}"[:2000])
        print(f"{name}: {len(all_texts)} texts, {tokens} tokens")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())

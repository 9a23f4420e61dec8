"""Writes json/NAME/tokenizer.json and json/NAME/cases.jsonl: small tokenizers of every kind.

Needs `tokenizers` (PyPI); they are trained on the strings of words.py.
"""

import json
import os
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pt

import words

HERE = Path(__file__).parent

TEXTS = words.texts()
MORE = [
    "", "<mask>", "a<mask>b", "a <mask> b", "a  <mask>  b", " <mask>", "<mask> ", "x <left> y",
    "x <right> y", "x<left>y<right>z", "tok tokens tok. atok", "  tok  ", "<s>", "a<s>b", "<s> a",
    "</s><s>", "<S>", "Tok TOK", "a\u0301 tok", "\u2581", "\u2581a \u2581b", "<0x41>", "##a a##",
    "\u2460 \ufb01 \u212b \u1e9b\u0323 \uac00 \u1100\u1161", "\u0130I\u0131i", "  a  b  ", "ÀÉÎ",
]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def train(model, trainer, normalizer=None, pre=None):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def ordinary_bytes(tokenizer):
    """Bytes as the models' files have them: in the vocabulary, but no added tokens."""
    tree = json.loads(tokenizer.to_str())
    tree["added_tokens"] = [t for t in tree["added_tokens"] if t["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(tree))


def llama(scheme=None):
    """Byte pair encoding over marked text, unknown characters as bytes."""
    if scheme is None:
        normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
        pre = None
        trained_pre = pt.Split(Regex("\u2581+"), "merged_with_next")
    else:
        normalizer = None
        pre = pt.Metaspace("\u2581", scheme, False)
        trained_pre = pt.Metaspace("\u2581", scheme, True)
    trainer = trainers.BpeTrainer(
        vocab_size=560, special_tokens=SPECIAL + BYTES, limit_alphabet=90, show_progress=False
    )
    model = models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    tokenizer = ordinary_bytes(train(model, trainer, normalizer, trained_pre))
    tokenizer.pre_tokenizer = pre
    space = [decoders.Strip(" ", 1, 0)] if scheme is None else []
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = (
        decoders.Sequence(steps + space) if scheme is None else decoders.Metaspace("\u2581", scheme)
    )
    return tokenizer


def unigram():
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    pre = pt.Metaspace("\u2581", "always", True)
    trained = train(models.Unigram(), trainer, normalizer, pre)
    pieces = json.loads(trained.to_str())["model"]["vocab"]
    # Only a part of the letters, so that others fall back to bytes.
    pieces = [(text, score) for text, score in pieces if len(text) > 1 or text < "\u0250"]
    pieces += [("\u2581", -4.0)] + [(byte, -12.0) for byte in BYTES]
    pieces = list({text: (text, score) for text, score in reversed(pieces)}.values())[::-1]
    unk = [text for text, _ in pieces].index("<unk>")
    tokenizer = Tokenizer(models.Unigram(pieces, unk, True))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace("\u2581", "always", True)]
    )
    return tokenizer


def unigram_unknown():
    """No bytes: what has no piece is the unknown token."""
    trainer = trainers.UnigramTrainer(
        vocab_size=700, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False,
        initial_alphabet=[],
    )
    pre = pt.Sequence([pt.WhitespaceSplit(), pt.Metaspace("\u2581", "first", True)])
    normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])
    trained = train(models.Unigram(), trainer, normalizer, pre)
    pieces = json.loads(trained.to_str())["model"]["vocab"]
    pieces = [(text, score) for text, score in pieces if text.isascii() or "\u2581" in text]
    tokenizer = Tokenizer(models.Unigram(pieces, 0, False))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    tokenizer.decoder = decoders.Metaspace("\u2581", "first", True)
    return tokenizer


def word_piece():
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]"], limit_alphabet=90, show_progress=False
    )
    model = models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40)
    return train(model, trainer, normalizers.BertNormalizer(), pt.BertPreTokenizer())


def byte_level(pre, normalizer=None):
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pt.ByteLevel.alphabet(),
    )
    tokenizer = train(models.BPE(), trainer, normalizer, pre)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


BARE = pt.ByteLevel(add_prefix_space=False, use_regex=False)
KINDS = {
    "llama": llama(),
    "metaspace_first": llama("first"),
    "metaspace_never": llama("never"),
    "unigram": unigram(),
    "unigram_unknown": unigram_unknown(),
    "word_piece": word_piece(),
    "byte_level": byte_level(pt.ByteLevel(add_prefix_space=False), normalizers.NFC()),
    "prefixed": byte_level(pt.Sequence([pt.Digits(True), pt.ByteLevel(add_prefix_space=True)])),
    "behaviours": byte_level(
        pt.Sequence(
            [
                pt.Split(Regex(r"[aeiou]"), "merged_with_previous"),
                pt.Split("b", "merged_with_next"),
                pt.Split(Regex(r"[xyz]"), "contiguous"),
                pt.Split(Regex(r"\t"), "removed"),
                pt.Split(Regex(r"\p{L}+"), "isolated", invert=True),
                pt.Punctuation("contiguous"),
                pt.Digits(False),
                BARE,
            ]
        ),
        normalizers.Sequence([normalizers.Lowercase(), normalizers.NFKD()]),
    ),
}


def main():
    for name, tokenizer in KINDS.items():
        tokenizer.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
        tokenizer.add_tokens(
            [
                AddedToken("<left>", lstrip=True, normalized=False),
                AddedToken("<right>", rstrip=True, normalized=False),
                AddedToken("tok", single_word=True, normalized=True),
            ]
        )
        folder = HERE / "json" / name
        os.makedirs(folder, exist_ok=True)
        compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False)
        (folder / "tokenizer.json").write_text(compact + "\n")
        with open(folder / "cases.jsonl", "w") as file:
            for text in TEXTS + MORE:
                case = {"text": text, "ids": {}}
                for key, plain in (("special", False), ("plain", True)):
                    tokenizer.encode_special_tokens = plain
                    case["ids"][key] = tokenizer.encode(text, add_special_tokens=False).ids
                case["decoded"] = tokenizer.decode(case["ids"]["special"], True)
                file.write(json.dumps(case, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()

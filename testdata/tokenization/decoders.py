"""Writes json/NAME for decoders that look at neighbours, and for a SentencePiece table.

Needs `tokenizers` and `sentencepiece` (PyPI); they are trained on the strings of words.py.
"""

import json
import os
import tempfile
from pathlib import Path

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as protocol
from tokenizers import Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pt

import words

HERE = Path(__file__).parent
TEXTS = words.texts()
MORE = [
    "", "[CLS] a [SEP]", "don't . we 've , it 's", "x ! ? .", "do not", "##a a##", "a  b", "<pad>",
    "hello || book", "\ufb01sh \u212b\u2460 \uff21\uff22\uff23 \ufdfa!", "e\u0301\u0301 \u1100\u1161",
    "\u3000a\u00a0b\tc", "\u200dx\u200d", "\U0001d4d0\u200d\u2122",
]

# Spellings and what they become: letters, marks, one that grows, and one that goes.
RULES = {
    "\ufb01": "fi", "\u212b": "\u00c5", "e\u0301": "\u00e9", "\u2460": "1", "\u3000": " ",
    "\u00a0": " ", "\t": " ", "\u2122": "TM", "\u200d": "", "\u1100\u1161": "\uac00",
    "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647",
    **{chr(0xFF21 + i): chr(ord("A") + i) for i in range(26)},
}


def charsmap():
    """SentencePiece's own table for the rules."""
    with tempfile.TemporaryDirectory() as folder:
        rules, text = Path(folder) / "rules.tsv", Path(folder) / "text"
        code = lambda spelled: " ".join(f"{ord(c):X}" for c in spelled)
        rules.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in sorted(RULES.items())))
        text.write_text("\n".join(line for line in TEXTS if "\n" not in line))
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=folder + "/m", vocab_size=1000, hard_vocab_limit=False,
            normalization_rule_tsv=str(rules), minloglevel=2,
        )
        model = protocol.ModelProto.FromString((Path(folder) / "m.model").read_bytes())
        return model.normalizer_spec.precompiled_charsmap


def word_piece(cleanup):
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[UNK]", "[CLS]", "[SEP]"], limit_alphabet=90,
        show_progress=False,
    )
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pt.BertPreTokenizer()
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.decoder = decoders.WordPiece("##", cleanup)
    return tokenizer


def words_only():
    """No decoder at all: tokens stand with spaces between them."""
    trainer = trainers.WordLevelTrainer(
        vocab_size=200, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pt.Whitespace()
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def ctc():
    """Letters and a bar between words; the same letter in a row is one, unless a pad parts them."""
    letters = ["<pad>", "<unk>", "|", "'"] + [chr(ord("a") + i) for i in range(26)]
    model = models.WordLevel({letter: i for i, letter in enumerate(letters)}, "<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(" ", "|")]
    )
    tokenizer.pre_tokenizer = pt.Split("", "isolated")
    tokenizer.decoder = decoders.CTC("<pad>", "|", True)
    return tokenizer


def precompiled():
    table = normalizers.Precompiled(charsmap())
    normalizer = normalizers.Sequence([table, normalizers.Strip(False, True)])
    pre = pt.Metaspace("\u2581", "always", True)
    trainer = trainers.UnigramTrainer(
        vocab_size=500, special_tokens=["<unk>", "[CLS]", "[SEP]"], unk_token="<unk>",
        show_progress=False,
    )
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    tokenizer.train_from_iterator(TEXTS + MORE, trainer)
    tokenizer.decoder = decoders.Metaspace("\u2581", "always", True)
    return tokenizer


KINDS = {
    "word_piece_cleaned": word_piece(True),
    "word_piece_spaced": word_piece(False),
    "word_level": words_only(),
    "ctc": ctc(),
    "precompiled": precompiled(),
}


def main():
    for name, tokenizer in KINDS.items():
        folder = HERE / "json" / name
        os.makedirs(folder, exist_ok=True)
        compact = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False)
        (folder / "tokenizer.json").write_text(compact + "\n")
        with open(folder / "cases.jsonl", "w") as file:
            for text in TEXTS[:: 1 if name == "precompiled" else 3] + MORE:
                case = {"text": text, "ids": {}}
                for key, plain in (("special", False), ("plain", True)):
                    tokenizer.encode_special_tokens = plain
                    case["ids"][key] = tokenizer.encode(text, add_special_tokens=False).ids
                case["decoded"] = tokenizer.decode(case["ids"]["special"], True)
                if name != "precompiled":
                    case["shown"] = tokenizer.decode(case["ids"]["special"], False)
                # From the middle of a word on.
                case["tail"] = tokenizer.decode(case["ids"]["special"][1:], True)
                file.write(json.dumps(case, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()

"""Writes words.jsonl: where each pre-tokenizer's expressions cut a list of strings.

Needs `tokenizers` (PyPI); the expressions are those of the models' own tokenizer.json files,
with every look-ahead, run by Oniguruma.
"""

import json
import re
import sys

from tokenizers import Regex
from tokenizers import pre_tokenizers as pt

GGUF = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def cl100k(digits, start=GGUF + "|", letters=r"\p{L}+", marks="", tail=r"[\r\n]*", lines="+"):
    other = rf" ?[^\s{marks}\p{{L}}\p{{N}}]+{tail}"
    return (
        rf"{start}[^\r\n\p{{L}}\p{{N}}]?{letters}|{digits}|{other}"
        rf"|\s*[\r\n]{lines}|\s+(?!\S)|\s+"
    )


def cased(digits, contraction=GGUF + "?", tail=r"[\r\n/]*", minus=""):
    upper = rf"[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{minus}]"
    lower = rf"[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{minus}]"
    one = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{one}{upper}*{lower}+{contraction}|{one}{upper}+{lower}*{contraction}"
        rf"|{digits}| ?[^\s\p{{L}}\p{{N}}]+{tail}|\s*[\r\n]+|\s+(?!\S)|\s+"
    )


def deepseek(tail=r"[\r\n]*|\s*[\r\n]+"):
    return (
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
        r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        rf"| ?[\p{{P}}\p{{S}}]+{tail}|\s+(?!\S)|\s+"
    )


KANA = "[一-龥\u3040-ゟ゠-ヿ]+"
CASED_LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2"
    "\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"
)
SPACES = "|".join(rf"\s{{{n}}}(?!\S)" for n in (512, 256, 128, 64, 32, 16, 8, 4))
NO_PUNCTUATION = r" ?[^(\s|.,!?…。，、।۔،)]+"

TABLE = {
    "gpt-2": [GPT2],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "smollm": [r"\p{N}", GPT2],
    "qwen2": [cl100k(r"\p{N}")],
    "qwen35": [cl100k(r"\p{N}", letters=r"[\p{L}\p{M}]+", marks=r"\p{M}")],
    "llama-bpe": [cl100k(r"\p{N}{1,3}")],
    "minicpm5": [r"\p{N}{1,3}", cl100k(r"\p{N}+")],
    "ufakzeka": [cl100k(r"\p{N}", start="")],
    "laguna": [r"[^\n]+|[\n]+", cl100k(r"\p{N}")],
    "jais-2": [
        cl100k(r"\p{N}{1,3}").replace(r"\s+(?!\S)|\s+", SPACES + r"|\s{1,2}(?!\S)|\s{1}")
    ],
    "exaone-moe": [
        cl100k(
            r"\p{N}", letters=r"(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+", tail=r"[\r\n/]?", lines=""
        )
    ],
    "bailingmoe": [
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
        r"|\s*[\r\n]|\s+(?!\S)|\s+"
    ],
    "seed-coder": [
        GGUF + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+"
    ],
    "tekken": [cased(r"\p{N}", contraction="")],
    "gpt-4o": [cased(r"\p{N}{1,3}")],
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", cased(r"\p{N}{1,3}")],
    "youtu": [
        "[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|" + KANA,
        cased(r"\p{N}"),
    ],
    "kimi-k2": [
        r"[\p{Han}]+|" + cased(r"\p{N}{1,3}", tail=r"[\r\n]*", minus=r"&&[^\p{Han}]")
    ],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "deepseek-llm": [
        r"[\r\n]",
        rf"\s?[{CASED_LETTERS}]+",
        r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
        r"\s+$",
        "[一-龥ࠀ-一가-퟿]+",
        r"\p{N}+",
    ],
    "deepseek-coder": [
        r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}",
    ],
    "deepseek-v3": [r"\p{N}{1,3}", KANA, deepseek()],
    "spark2_5": [r"\p{N}{1,3}", KANA, deepseek(tail=r"|[\r\n]"), r"\p{N}"],
    "afmoe": [
        r"(?<!\p{N})\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))|\p{N}{3}",
        "[一-鿿㐀-䶿\uf900-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
        deepseek(),
    ],
    "bloom": [NO_PUNCTUATION],
    "viking": [NO_PUNCTUATION, r"\p{N}"],
    "chameleon": [
        "<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
        r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2,
    ],
}

TEXTS = """
Hello, world!|I'm you're HE'LL we'Ve it'S 'tis o'clock 'dx 'mx|don't DON'T d'accord l'été
'ſx 'ſ ſ's K's|The quick brown fox jumps over 13 lazy dogs.|HelloWorld helloWORLD ABCdef aBcDeF
x=1;y = 22;z  =  333;w   =   4444|1234567890 12 345 6789|a1b22c333d4444e55555|1,234,567.89
3.14159e-10|½ ¾ ² ³ ①②③ Ⅳ ⅷ ٣٤٥ ४५६ １２３４|1²34 12²345 345² 12345²6 99a a1234 1234a 1234_ _1234
2024-01-31T23:59:59Z|$100 €200 £3 ¥4 50% #5 @6 a+b<c>=d^e~f`g`|__init__ snake_case camelCase
(foo) [bar] {baz} <qux/> "quoted" 'single'|...!!! ??? --- ___ *** /// \\\\\\ a/b/c //x /y/
中文字符测试|中文，标点。测试！“引号”‘单’——：；、|日本語のテキスト、カタカナとひらがな。|한국어 텍스트 ㄱㄴㄷ 1234
ㄅㄆㄇ ㄨㄩ|中a文b1字 2c 中1文22字333|漢字English混合123テスト|עברית טקסט 123|مرحبا بالعالم ١٢٣ ،؟
हिन्दी नमस्ते १२३ ।|বাংলা ভাষা|తెలుగు|ไทยภาษา ๑๒๓|ລາວ|ភាសាខ្មែរ|မြန်မာ|Ελληνικά ΆΈΉ ώ|Русский ТЕКСТ ёЁ
Türkiye'nin İstanbul'da ıI|é é è́ ñ ñ Å Å|ǅ ǈ Ǆ ʰ ˠ ªº|ﬀ ﬃ ﬅ Ａｂｃ １２３！（）|𝐀𝐁 𝟏𝟐𝟑 𐐀𐐨 𞤀𞥃
😀 😀😀 👨‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 ❤️|a😀b 1😀2 😀. .😀 😀😀😀!|→ ← ≤ ≥ ∑ ∫ √ ∞ ± × ÷|℃ ℕ ℝ Ⅷ ™ © ®
<|endoftext|> <s> </s> [INST] <sentinel:12> IMGIMGABCDZ IMGIMGXZ|http://example.com/a?b=c&d=e#f
user@example.org C:\\\\dir\\\\file.txt /usr/bin/env|def f(x):\\n    return x + 1\\n|if (a) {\\n\\tb();\\n}\\n\\n
a b|a  b|a   b|a    b| a|  a|   a|    a|     1|      !|a |a  |a   |  |   |1 2  3   4| 1  2   3
\\n|\\n\\n|\\n\\n\\n|a\\nb|a\\n\\nb|a \\nb|a\\n b|a \\n b|a  \\n  b|a\\n \\nb|\\n a|\\n\\n a|a\\n|a\\n\\n|a.\\n|a.\\n\\nb
\\r\\n|a\\r\\nb|a\\r\\n\\r\\nb|\\r|a\\rb|a \\r\\n b|!\\r\\n!|...\\n\\n...| \\n|\\n | \\n |  \\n\\n  |a!\\n\\n b|1\\n2|1\\n\\n 2
\\t|\\ta|\\t\\ta|a\\tb|a\\t\\tb| \\ta|\\t a|\\t\\n\\ta|\\t\\t\\t1|\\t!|a\\t |\\t \\t \\t|  \\t\\n \\t x|/\\n/|a/\\n\\n/b/ \\n|x /\\n
\\u3000a|a\\u3000b|\\u3000\\u3000|\\u3000\\u3000a|a\\u00a0b|\\u00a0\\u00a0a|\\u2003x \\u2009y|\\u200ba\\u200bb|\\ufeffa|\\u2028a\\u2029b
\\u0085a|a\\u0085\\u0085b|\\u000b\\u000ca|\\u001c\\u001da|\\u0000a\\u0000|a\\u0000\\u0000b|\\u007f\\u0080|\\u200fa\\u202eb
e\\u0301\\u0301|\\u0301a|1\\u0301|\\u0301\\u0301| \\u0301a|!\\u0301|a\\u0301's|A\\u0301B\\u0301c|\\u093f\\u0915|\\u0e49\\u0e01
\\ufffd|a\\ufffdb|\\ue000|\\U000f0000a|\\U0001f468\\u200d\\U0001f469|\\ufe0f|\\u20e3 1\\ufe0f\\u20e3|\\u00ad a\\u00adb
(a|b) a | b || c|(( )) ( a ) |,, ., !? …a …|aA'Sb Aa'sB A'LL's 'S'T|'''s ''s 's's|\\u2019s it\\u2019s
' s|'\\ns|a' b'|'1 '2s|-a -1 -- -A +x +1 .a .1 ,a|_a _1 __A|#a ##b @a|\\u00bfQu\\u00e9? \\u00a1S\\u00ed!
\\u02bca \\u02bb|\\u2160\\u2170|\\u3007\\u3021|\\u4e00\\u9fa5\\u9fa6\\u3400\\uf900|\\u0800\\u07ff\\ud7b0|\\u30fb\\u30fc\\uff70
"""


def texts():
    found = []
    for line in TEXTS.strip().split("\n"):
        for text in line.split("|"):
            text = re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)), text)
            text = re.sub(r"\\U([0-9a-f]{8})", lambda m: chr(int(m[1], 16)), text)
            for letter, char in (("n", "\n"), ("r", "\r"), ("t", "\t")):
                text = re.sub(rf"(?<!\\)\\{letter}", char, text)
            found.append(text.replace("\\\\", "\\"))
    found += ["a|b", "| |", "<|im_start|>user\nhi<|im_end|>"]
    for count in (1, 2, 3, 4, 5, 7, 8, 9, 15, 33, 64, 65, 130, 513, 700):
        found += [" " * count, " " * count + "a", "a" + " " * count + "1", "x" + "\t" * count]
    for count in (4, 5, 6, 7, 100):
        found += ["7" * count, "a" * count, "!" * count, "中" * count, "é" * count, "\n" * count]
    return list(dict.fromkeys(text for text in found if text))


def main():
    steps = {
        name: pt.Sequence([pt.Split(Regex(e), "isolated") for e in expressions])
        for name, expressions in TABLE.items()
    }
    for text in texts():
        cuts = {}
        for name, step in steps.items():
            words = [word for word, _ in step.pre_tokenize_str(text)]
            assert "".join(words) == text, (name, text, words)
            cuts.setdefault(tuple(len(word.encode()) for word in words), []).append(name)
        cuts = {" ".join(names): list(lengths) for lengths, names in cuts.items()}
        json.dump({"text": text, "words": cuts}, sys.stdout, ensure_ascii=True)
        print()


if __name__ == "__main__":
    main()

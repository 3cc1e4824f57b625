#!/usr/bin/env python3
"""Computes fingerprints with other simhash tools. Each preset is a profile of simstore that gives the fingerprints of one tool.

    presets.py golden                                      write text/tests/data/presets.tsv
    presets.py compare PRESET SIMSTORE CORPUS [--limit N]  compare with the fingerprints of SIMSTORE, the program
    presets.py speed PRESET CORPUS [--limit N]             speed of the tool: documents a second, one process

CORPUS is a .jsonl or .jsonl.gz file.

Setup, with Python 3.11 (Unicode 14):

    python3.11 -m venv venv && venv/bin/pip install simhash==2.1.2 "numpy<2" jieba==0.42.1
    npm pack nodejieba@3.5.8 && tar xf nodejieba-3.5.8.tgz     # cppjieba 5.4.0 and its dictionaries
    g++ -O2 -std=c++14 -I package/submodules/cppjieba/include -I package/submodules/cppjieba/deps/limonp/include \\
        scripts/presets/yanyiwu.cpp -o yanyiwu
    export YANYIWU="$PWD/yanyiwu $PWD/package/submodules/cppjieba/dict"

simhash 2.1.2 multiplies bytes by weights above 255, which numpy 2 refuses. seomoz/simhash-cpp, and the class `simhash` of Python and Java
tutorials (preset `string-hash-64`), are not published as packages: this file implements their definitions. The implementation of
seomoz/simhash-cpp is checked against a value from its own tests.
"""

import argparse
import gzip
import json
import os
import random
import re
import shlex
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MASK_32 = 2**32 - 1
MASK_64 = 2**64 - 1


def pypi_simhash(text):
    from simhash import Simhash

    return Simhash(text).value


def rotate(value, by, bits):
    return (value << by | value >> (bits - by)) & (1 << bits) - 1


def lookup3(key):
    """Returns a 64-bit hash: hashlittle2 of Bob Jenkins's lookup3.c with both seeds 0. Its `c` is the high 32 bits, `b` the low ones."""
    state = [(0xDEADBEEF + len(key)) & MASK_32] * 3

    def step(target, source, by):
        state[target] = (state[target] - state[source] & MASK_32) ^ rotate(state[source], by, 32)

    def add(target, source):
        state[target] = state[target] + state[source] & MASK_32

    def last(target, source, by):
        state[target] = (state[target] ^ state[source]) - rotate(state[source], by, 32) & MASK_32

    a, b, c = range(3)
    for at in range(0, len(key), 12):
        block = key[at : at + 12].ljust(12, b"\0")
        if at > 0:
            for target, source, by, other in (a, c, 4, b), (b, a, 6, c), (c, b, 8, a), (a, c, 16, b), (b, a, 19, c), (c, b, 4, a):
                step(target, source, by)
                add(source, other)
        for word in range(3):
            state[word] = state[word] + int.from_bytes(block[4 * word : 4 * word + 4], "little") & MASK_32
    if key:
        for target, source, by in (c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24):
            last(target, source, by)
    return state[c] << 32 | state[b]


def seomoz_simhash(text):
    """Returns the fingerprint that `hash_tokenizer(text, Strspn())` of seomoz/simhash-cpp makes at commit 98dd188."""
    length = 3
    tokens, current, counter, counts = [0] * length, 0, 0, [0] * 64
    for word in re.findall("[a-zA-Z]+", text.split("\0")[0]):
        value = lookup3(word.encode())
        current = rotate(current, 1, 64) ^ rotate(tokens[counter], length, 64) ^ value
        tokens[counter] = value
        counter = (counter + 1) % length
        for bit in range(64):
            counts[63 - bit] += 1 if current >> bit & 1 else -1
    return sum(1 << bit for bit in range(64) if counts[bit] > 0)


def string_hash(token, bits):
    if not token:
        return 0
    x = ord(token[0]) << 7
    for c in token:
        x = (x * 1000003 ^ ord(c)) % (1 << bits)
    return x ^ len(token)


def string_hash_simhash(bits):
    def fingerprint(text):
        sums = [0] * bits
        for token in text.split():
            value = string_hash(token, bits)
            for bit in range(bits):
                sums[bit] += 1 if value >> bit & 1 else -1
        return sum(1 << bit for bit in range(bits) if sums[bit] >= 0)

    return fingerprint


def practice_report(text):
    import jieba.analyse

    han = "".join(re.findall("[\u4e00-\u9fcc]+", text))
    tags = jieba.analyse.extract_tags(han, topK=None, withWeight=True)
    tags.sort(key=lambda tag: (-tag[1], tag[0]))
    sums = [0.0] * 64
    for word, weight in tags[:50]:
        value = string_hash(word, 128) & MASK_64
        for bit in range(64):
            sums[bit] += weight if value >> bit & 1 else -weight
    return sum(1 << bit for bit in range(64) if sums[bit] > 0)


class Yanyiwu:
    """Computes fingerprints with the program made from yanyiwu.cpp. The environment variable YANYIWU has the command of the program."""

    def __init__(self):
        command = shlex.split(os.environ["YANYIWU"])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, text):
        data = text.encode()
        self.process.stdin.write(b"%d\n%s" % (len(data), data))
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[0], 16)


def yanyiwu_simhash(text):
    if not hasattr(yanyiwu_simhash, "tool"):
        yanyiwu_simhash.tool = Yanyiwu()
    return yanyiwu_simhash.tool(text)


PRESETS = {
    "pypi-simhash": (pypi_simhash, 64),
    "seomoz-simhash": (seomoz_simhash, 64),
    "yanyiwu-simhash": (yanyiwu_simhash, 64),
    "string-hash-64": (string_hash_simhash(64), 64),
    "string-hash-128": (string_hash_simhash(128), 128),
    "practice-report": (practice_report, 64),
}

ADVERSARIAL = [
    "", " ", "\n", "a", "ab", "abc", "abcd", "abcde", "_", "?", "?!.,", "0", "½²Ⅷ٣", "\0", "a\0b c", "中", "中文", "中文字符",
    "的 了 的", "我是中国人", "ΟΔΥΣΣΕΥΣ", "ΑΣ Σ ΣΑΣ'Σ ΑΣ\u0301 Σ\u00ad", "İstanbul I ı", "ǅ ǈ ẞ ß ﬁ", "e\u0301 é a\u0308\u0308",
    "\u0301", "\u200d\u200c", "👩‍👩‍👧‍👦 👍🏽", "😀", "𝒜𝓑𝕮 𐐀𐐨", "नमस्ते दुनिया",
    "ไทยแลนด์", "かな カナ 漢字", "한국어 텍스트", "ʼn ŉ", "a\u00a0b\u2003c\u3000d",
    "a\x1cb\x1dc\x1ed\x1fe\x85f", "\ufeffbom", "\uffff\U0010ffff", "snake_case camelCase x1 1x 3.14 -5%", "O'Neill's",
    "我是蓝翔技工拖拉机学院手扶拖拉机专业的。不用多久，我就会升职加薪，当上总经理，出任CEO，走上人生巅峰。",
    "IP地址和C盘、U盘：T恤，B超；吉林省（长春）", "张三（李四）王五、赵六", "北京 北京 上海", "数据库 数据库 数据库 引擎 引擎 索引 备份",
    "\u9fcc\u9fcd\u3400\U00020000", "①②③ 一二三 〇〡〢", "...---...", "AT&T C++ C# c++11",
]  # fmt: skip


def assigned_blocks():
    """Yields ranges (first, last) of up to 64 successive assigned characters.

    Leaves out large blocks, such as Hangul, in which all characters have the same properties.
    """
    alike = [(0x3400, 0x4DC0), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0xD800, 0xF900), (0x12000, 0x14647), (0x17000, 0x18D09)]
    alike += [(0x16800, 0x16A39), (0x1B170, 0x1B2FC), (0x20000, 0x110000)]
    first = None
    for code in range(0x110000):
        ends = any(low <= code < high for low, high in alike) or unicodedata.category(chr(code)) == "Cn"
        if first is not None and (ends or code - first == 64):
            yield first, code - 1
            first = None
        if first is None and not ends:
            first = code


def golden_texts():
    for text in ADVERSARIAL:
        yield text, text
    for first, last in assigned_blocks():
        yield {"first": first, "last": last}, "".join(map(chr, range(first, last + 1)))
    for repeats, text in (250_000, "abcd"), (300, "a"), (100_000, "of letters "), (40_000, "数据库引擎，"), (20_000, "中文 and English "):
        yield {"repeats": repeats, "text": text}, repeats * text
    for name in "en", "zh":
        for line, document in enumerate((ROOT / f"samples/{name}.jsonl").open(encoding="utf-8")):
            yield {"sample": name, "line": line}, json.loads(document)["text"]
    draw = random.Random(1)
    han = "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学数据库文档索引查询"
    alphabets = [
        "ab ", "abcdefghijklmnopqrstuvwxyz  ,.", "aAbBσΣςİıßé\u0301\u0308 -", han, han + "，。、（） ab1", "0123456789.% ax",
        "".join(chr(c) for c in range(0x20, 0x3000) if unicodedata.category(chr(c))[0] not in "C"),
        "".join(chr(c) for c in range(0x1F300, 0x1F650)) + "\u200d\ufe0f ",
    ]  # fmt: skip
    for _ in range(30):
        for alphabet in alphabets:
            text = "".join(draw.choices(alphabet, k=draw.randint(1, 60)))
            yield text, text


def write_golden():
    columns = list(PRESETS)
    rows = ["# Written by scripts/presets/presets.py: by the tools, of these texts.", "\t".join(["text"] + columns)]
    for source, text in golden_texts():
        values = [f"{tool(text):0{bits // 4}x}" for tool, bits in PRESETS.values()]
        rows.append("\t".join([json.dumps(source, ensure_ascii=False)] + values))
    path = ROOT / "text/tests/data/presets.tsv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    print(f"{path}: {len(rows) - 2} texts")


def documents(path, limit):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as lines:
        for number, line in enumerate(lines):
            if number == limit:
                return
            document = json.loads(line)
            yield document["id"], document["text"]


def compare(preset, simstore, corpus, limit):
    tool, bits = PRESETS[preset]
    command = [simstore, "fingerprint", "--json", "--bits", str(bits), "--profile", preset, corpus]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ours = {}
        for line in process.stdout:
            document = json.loads(line)
            ours[document["id"]] = int(document["fingerprint"], 16)
    count, different = 0, []
    for name, text in documents(corpus, limit):
        count += 1
        distance = bin(tool(text) ^ ours[name]).count("1")
        if distance:
            different.append((distance, name))
    print(f"{preset}, {corpus}: {count} documents, {len(different)} differ ({100 * len(different) / count:.2f}%)")
    for distance, name in different[:10]:
        print(f"  {name}: {distance} bits")


def speed(preset, corpus, limit):
    tool, _ = PRESETS[preset]
    texts = [text for _, text in documents(corpus, limit)]
    tool(texts[0])
    start = time.perf_counter()
    for text in texts:
        tool(text)
    seconds = time.perf_counter() - start
    size = sum(len(text.encode()) for text in texts)
    print(f"{preset}: {len(texts) / seconds:.0f} documents/s, {size / seconds / 1e6:.2f} MB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("golden")
    for mode in "compare", "speed":
        arguments = modes.add_parser(mode)
        arguments.add_argument("preset", choices=PRESETS)
        if mode == "compare":
            arguments.add_argument("simstore")
        arguments.add_argument("corpus")
        arguments.add_argument("--limit", type=int)
    arguments = parser.parse_args()
    if arguments.mode == "golden":
        write_golden()
    elif arguments.mode == "compare":
        compare(arguments.preset, arguments.simstore, arguments.corpus, arguments.limit)
    else:
        speed(arguments.preset, arguments.corpus, arguments.limit)


if __name__ == "__main__":
    sys.exit(main())

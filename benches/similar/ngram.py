#!/usr/bin/env python3
"""Which n makes n characters of a script without spaces weigh what 3 words weigh in a script with spaces.

    python3 benches/similar/ngram.py ../shared/data

A shingle starts at each word (a character of an unspaced script is one) and takes what follows until it weighs 3 words; such a
character weighs 3/n of one. Four questions, each for n from 2 to 6, beside English words:

1. how similar revisions of one page are (Jaccard, median), by how much of the text has changed;
2. how similar texts are of which a share of the words was replaced, one here, one there;
3. how similar Chinese texts are of which just as many words were replaced, left out and put in, in the same places, as in the
   English revisions;
4. how well 0.8 tells revisions from random pairs, of whole texts and of paragraphs of 20 to 100 characters.

Plain Python, fixed seed, two minutes.
"""

import bisect
import difflib
import gzip
import json
import random
import re
import sys
import unicodedata

CHOICES = range(2, 7)
PAIRS = 1500
RANDOM = 40_000
TOKENS = 1500  # longer texts are cut, as comparing them takes quadratic time
HAN_A_WORD = 1.6  # characters of Chinese for a word of English
BANDS = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
SHARES = [0.01, 0.02, 0.05, 0.1, 0.2]

UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
TOKEN = re.compile(f"[{UNSPACED}\U00020000-\U0003ffff]|(?:(?![{UNSPACED}\U00020000-\U0003ffff_])\\w)+")
MARKUP = re.compile(r"<!--.*?-->|</?[a-zA-Z!?][^<>]*>|&#?\w{1,32};|\]\([^)\n]*\)|^(?:```|~~~).*$", re.S | re.M)


def clean(text):
    if text.startswith("---"):
        end = text.find("\n---", 3)
        text = text[text.find("\n", end + 1) + 1 :] if end >= 0 else text
    return unicodedata.normalize("NFKC", MARKUP.sub(" ", text)).lower()


def tokens(text):
    return TOKEN.findall(text)


def is_unspaced(token):
    return ord(token[0]) > 0xE00 and re.match(f"[{UNSPACED}\U00020000-\U0003ffff]", token) is not None


def shingles(words, n):
    """Weights are thirds of n-ths: a word has n of them, a character of an unspaced script 3, a shingle 3n."""
    weights = [3 if is_unspaced(word) else n for word in words]
    ends = [0]
    for weight in weights:
        ends.append(ends[-1] + weight)
    found = set()
    for at in range(len(words)):
        end = bisect.bisect_left(ends, ends[at] + 3 * n)
        if end > len(words):
            break
        found.add(" ".join(words[at:end]))
    return found or {" ".join(words)} - {""}


def jaccard(a, b):
    return len(a & b) / len(a | b) if a or b else 1.0


def changed(a, b):
    """Share of the tokens of both that are in no common block."""
    same = sum(block.size for block in difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return 1 - 2 * same / (len(a) + len(b))


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def revisions(path, chance):
    """Texts of both moments that are not equal, as tokens, and as they are cleaned."""
    rows = list(lines(path))
    chance.shuffle(rows)
    found = []
    for row in rows:
        texts = clean(row["text_old"]), clean(row["text_new"])
        a, b = (tokens(text)[:TOKENS] for text in texts)
        if a != b and min(len(a), len(b)) >= 30:
            found.append((a, b, texts))
        if len(found) == PAIRS:
            break
    return found


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def median(values):
    return quantile(values, 0.5)


def han_words(words):
    """Runs of about HAN_A_WORD characters of an unspaced script, one or two by turns, as words to replace."""
    found, at, owed = [], 0, 0.0
    while at < len(words):
        length = 1
        if is_unspaced(words[at]):
            owed += HAN_A_WORD
            length = max(1, round(owed))
            owed -= length
            end = at + 1
            while end < len(words) and end < at + length and is_unspaced(words[end]):
                end += 1
            length = end - at
        found.append(words[at : at + length])
        at += length
    return found


def replaced(words, share, others, chance):
    new = []
    for unit in han_words(words):
        new += chance.choice(others) if chance.random() < share else unit
    return new


def transplanted(edits, words, others, chance):
    """A Chinese text, and the same after the edits of an English one, of as many words."""
    length = edits[-1][2]
    words = han_words(words)[:length]
    if len(words) < length:
        return None
    new = []
    for tag, start, end, new_start, new_end in edits:
        if tag == "equal":
            new += words[start:end]
        elif new_end > new_start:
            wanted = new_end - new_start
            at = chance.randrange(max(1, len(others) - wanted))
            new += others[at : at + wanted]
    return [token for word in words for token in word], [token for word in new for token in word]


def row(label, values):
    print("|", " | ".join([label, *values]), "|", flush=True)


def main():
    data, chance = sys.argv[1], random.Random(7)
    english = revisions(f"{data}/labelled/win32-revision-pairs.jsonl.gz", chance)
    chinese = revisions(f"{data}/labelled/sqldocs-zh-revision-pairs.jsonl.gz", chance)
    sets = [("English, 3 words", english, 3)] + [(f"Chinese, n = {n}", chinese, n) for n in CHOICES]
    changes = {id(pairs): [changed(a, b) for a, b, _ in pairs] for pairs in (english, chinese)}

    print(f"Revisions ({len(english)} English and {len(chinese)} Chinese pairs): median Jaccard by the share of text changed\n")
    row("changed", [f"{100 * low:g} to {100 * high:g}%" for low, high in zip(BANDS, BANDS[1:])] + ["changed at 0.75 to 0.85"])
    row("---", ["---"] * len(BANDS))
    for label, pairs, n in sets:
        similar = [jaccard(shingles(a, n), shingles(b, n)) for a, b, _ in pairs]
        both = list(zip(changes[id(pairs)], similar))
        cells = []
        for low, high in zip(BANDS, BANDS[1:]):
            band = [value for change, value in both if low < change <= high]
            cells.append(f"{median(band):.3f} ({len(band)})")
        at = [change for change, value in both if 0.75 <= value < 0.85]
        row(label, cells + [f"{100 * median(at):.1f}% ({len(at)})"])

    print(f"\nWords replaced at random (a Chinese one has {HAN_A_WORD} characters on average): mean Jaccard\n")
    row("replaced", [f"{100 * share:g}%" for share in SHARES])
    row("---", ["---"] * len(SHARES))
    others = {id(pairs): [unit for a, _, _ in pairs[:200] for unit in han_words(a)] for pairs in (english, chinese)}
    for label, pairs, n in sets:
        cells = []
        for share in SHARES:
            values = []
            for a, _, _ in pairs[:400]:
                b = replaced(a, share, others[id(pairs)], random.Random(len(a)))
                values.append(jaccard(shingles(a, n), shingles(b, n)))
            cells.append(f"{sum(values) / len(values):.3f}")
        row(label, cells)

    print("\nEnglish revisions, and their edits made to Chinese texts: Jaccard\n")
    row("", ["pairs", "mean", "25%", "median", ">= 0.8", "0.7 to 0.9 in English: mean", "the same side of 0.8"])
    row("---", ["---"] * 7)
    made = []
    texts = [a for a, _, _ in chinese]
    flat = [unit for a in texts[:300] for unit in han_words(a)]
    for a, b, _ in english:
        edits = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        for text in chance.sample(texts, 20):
            pair = transplanted(edits, text, flat, chance)
            if pair:
                made.append((a, b, pair))
                break
    truth = [jaccard(shingles(a, 3), shingles(b, 3)) for a, b, _ in made]
    for label, n in [("English, 3 words", None)] + [(f"Chinese, n = {n}", n) for n in CHOICES]:
        values = truth if n is None else [jaccard(*(shingles(text, n) for text in pair)) for _, _, pair in made]
        near = [value for value, english_value in zip(values, truth) if 0.7 <= english_value < 0.9]
        same = [(value >= 0.8) == (english_value >= 0.8) for value, english_value in zip(values, truth)]
        row(
            label,
            [f"{len(values)}", f"{sum(values) / len(values):.3f}", f"{quantile(values, 0.25):.3f}", f"{median(values):.3f}",
             f"{100 * sum(value >= 0.8 for value in values) / len(values):.1f}%", f"{sum(near) / len(near):.3f}",
             f"{100 * sum(same) / len(same):.1f}%"],
        )

    pages = []
    for name in ("sql-docs", "dotnet-docs"):
        rows = list(lines(f"{data}/zh/{name}.jsonl.gz"))
        pages += [tokens(clean(page["text"]))[:TOKENS] for page in chance.sample(rows, 1500)]
    pages = [page for page in pages if len(page) >= 30]
    en_pages = [tokens(clean(page["text"]))[:TOKENS] for page in chance.sample(list(lines(f"{data}/en/win32.jsonl.gz")), 3000)]
    en_pages = [page for page in en_pages if len(page) >= 30]
    in_chinese = [(f"Chinese, n = {n}", chinese, pages, n) for n in CHOICES]
    separation("whole texts", [("English, 3 words", english, en_pages, 3), *in_chinese], chance)

    def paragraphs(text):
        found = (tokens(paragraph) for paragraph in text.split("\n"))
        return [words for words in found if 20 <= len(words) <= 100 and sum(map(is_unspaced, words)) * 2 >= len(words)]

    related, single = [], []
    for _, _, texts in chinese:
        old, new = map(paragraphs, texts)
        news = {tuple(words) for words in new}
        for words in old:
            if tuple(words) in news:
                continue
            near = max(new, key=lambda other: difflib.SequenceMatcher(None, words, other, autojunk=False).quick_ratio(), default=None)
            if near and changed(words, near) <= 0.3:
                related.append((words, near, None))
    for name in ("sql-docs", "dotnet-docs"):
        for page in list(lines(f"{data}/zh/{name}.jsonl.gz"))[::12]:
            found = paragraphs(clean(page["text"]))
            if found:
                single.append(chance.choice(found))
    separation("paragraphs of 20 to 100 characters", [(f"Chinese, n = {n}", related, single, n) for n in CHOICES], chance)
    few = [changed(a, b) for a, b, _ in related]
    print(f"\nShort related pairs: Jaccard by the share changed ({len(related)} pairs)\n")
    row("changed", ["0 to 5%", "5 to 10%", "10 to 20%", "20 to 30%"])
    row("---", ["---"] * 4)
    for n in CHOICES:
        cells = []
        for low, high in ((0, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.3)):
            band = [jaccard(shingles(a, n), shingles(b, n)) for (a, b, _), change in zip(related, few) if low < change <= high]
            cells.append(f"{median(band):.3f} ({len(band)})")
        row(f"n = {n}", cells)


def separation(what, sets, chance):
    print(f"\nRevisions and random pairs: {what}\n")
    row("", ["pairs", "revisions >= 0.8", "random pairs", "random, mean", "99.9%", ">= 0.5", ">= 0.8", "revisions above the 99.9%"])
    row("---", ["---"] * 8)
    for label, pairs, pages, n in sets:
        near = [jaccard(shingles(a, n), shingles(b, n)) for a, b, _ in pairs]
        cut = [shingles(page, n) for page in pages]
        draw = random.Random(11)
        far = [jaccard(*draw.sample(cut, 2)) for _ in range(RANDOM)]
        high = quantile(far, 0.999)

        def share(values, least):
            return sum(value >= least for value in values) / len(values)

        row(
            label,
            [f"{len(near)}", f"{100 * share(near, 0.8):.1f}%", f"{len(far)}", f"{sum(far) / len(far):.4f}", f"{high:.3f}",
             f"{100 * share(far, 0.5):.3f}%", f"{100 * share(far, 0.8):.3f}%", f"{100 * share(near, high):.1f}%"],
        )


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Chooses n: how many characters of a script without spaces should weigh as much as 3 words of a script with spaces?

    python3 benches/similar/ngram.py ../shared/data

A shingle starts at each word and extends until it weighs as much as 3 words. A character of an unspaced script is a token that weighs 3/n
of a word. The script answers four questions, each for English words and for n from 2 to 6:

1. How similar are revisions of a page (median Jaccard similarity), depending on the share of the text that changed?
2. How similar is a text to its copy if a share of its words is replaced at random?
3. How similar are Chinese texts after the edits of English revisions: as many words replaced, deleted and inserted, at the same places?
4. How well does the threshold 0.8 separate revisions from random pairs, for whole texts and for paragraphs of 20 to 100 characters?

It needs only the standard library, uses a fixed seed, and takes two minutes.
"""

import bisect
import difflib
import gzip
import json
import random
import re
import sys
import unicodedata

N_VALUES = range(2, 7)
MAX_PAIRS = 1500
RANDOM_PAIRS = 40_000
MAX_TOKENS = 1500  # longer texts are truncated, because comparing them takes quadratic time
HAN_PER_WORD = 1.6  # Chinese characters per English word
CHANGE_BOUNDS = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4]
REPLACED_SHARES = [0.01, 0.02, 0.05, 0.1, 0.2]

UNSPACED = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
TOKEN = re.compile(f"[{UNSPACED}\U00020000-\U0003ffff]|(?:(?![{UNSPACED}\U00020000-\U0003ffff_])\\w)+")
MARKUP = re.compile(r"<!--.*?-->|</?[a-zA-Z!?][^<>]*>|&#?\w{1,32};|\]\([^)\n]*\)|^(?:```|~~~).*$", re.S | re.M)


def clean(text):
    """Returns the text without front matter and markup, in lower case, normalized to NFKC."""
    if text.startswith("---"):
        end = text.find("\n---", 3)
        text = text[text.find("\n", end + 1) + 1 :] if end >= 0 else text
    return unicodedata.normalize("NFKC", MARKUP.sub(" ", text)).lower()


def tokenize(text):
    return TOKEN.findall(text)


def is_unspaced(token):
    return ord(token[0]) > 0xE00 and re.match(f"[{UNSPACED}\U00020000-\U0003ffff]", token) is not None


def shingles(words, n):
    """Returns the set of shingles of a text. `words` are its tokens: words, and characters of unspaced scripts.

    A shingle has 3 words, or n characters of an unspaced script. In mixed text, a word weighs n and a character 3, and a shingle is
    the fewest successive tokens that together weigh at least 3n.
    """
    weights = [3 if is_unspaced(word) else n for word in words]
    ends = [0]
    for weight in weights:
        ends.append(ends[-1] + weight)
    result = set()
    for start in range(len(words)):
        end = bisect.bisect_left(ends, ends[start] + 3 * n)
        if end > len(words):
            break
        result.add(" ".join(words[start:end]))
    return result or {" ".join(words)} - {""}


def jaccard(a, b):
    return len(a & b) / len(a | b) if a or b else 1.0


def changed_share(a, b):
    """Returns the share of changed tokens: tokens of `a` and `b` outside the blocks that `difflib` finds in both."""
    same = sum(block.size for block in difflib.SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return 1 - 2 * same / (len(a) + len(b))


def read_json_lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def read_revisions(path, random_source):
    """Returns pairs of different revisions of a page, each as (old tokens, new tokens, (old cleaned text, new cleaned text))."""
    rows = list(read_json_lines(path))
    random_source.shuffle(rows)
    revisions = []
    for row in rows:
        texts = clean(row["text_old"]), clean(row["text_new"])
        a, b = (tokenize(text)[:MAX_TOKENS] for text in texts)
        if a != b and min(len(a), len(b)) >= 30:
            revisions.append((a, b, texts))
        if len(revisions) == MAX_PAIRS:
            break
    return revisions


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def median(values):
    return quantile(values, 0.5)


def split_into_words(words):
    """Groups the tokens of a text, here the argument `words`, into longer words. Returns the list of tokens of each longer word.

    A longer word is one token of a script with spaces, or about HAN_PER_WORD successive characters of a script without spaces.
    """
    result, start, pending = [], 0, 0.0
    while start < len(words):
        length = 1
        if is_unspaced(words[start]):
            pending += HAN_PER_WORD
            length = max(1, round(pending))
            pending -= length
            end = start + 1
            while end < len(words) and end < start + length and is_unspaced(words[end]):
                end += 1
            length = end - start
        result.append(words[start : start + length])
        start += length
    return result


def replace_words(words, share, replacements, random_source):
    """Replaces each word, with probability `share`, by a random word of `replacements`. Returns the new tokens."""
    new = []
    for unit in split_into_words(words):
        new += random_source.choice(replacements) if random_source.random() < share else unit
    return new


def transplant_edits(edits, words, replacements, random_source):
    """Applies the edits between two English revisions to a Chinese text, at the same word positions.

    The Chinese text is first cut to the number of words of the old English revision. Inserted words are from `replacements`. Returns
    (tokens before the edits, tokens after the edits), or None if the Chinese text has too few words.
    """
    length = edits[-1][2]
    words = split_into_words(words)[:length]
    if len(words) < length:
        return None
    new = []
    for tag, start, end, new_start, new_end in edits:
        if tag == "equal":
            new += words[start:end]
        elif new_end > new_start:
            inserted = new_end - new_start
            offset = random_source.randrange(max(1, len(replacements) - inserted))
            new += replacements[offset : offset + inserted]
    return [token for word in words for token in word], [token for word in new for token in word]


def print_row(label, values):
    print("|", " | ".join([label, *values]), "|", flush=True)


def main():
    data, random_source = sys.argv[1], random.Random(7)
    english = read_revisions(f"{data}/labelled/win32-revision-pairs.jsonl.gz", random_source)
    chinese = read_revisions(f"{data}/labelled/sqldocs-zh-revision-pairs.jsonl.gz", random_source)
    sets = [("English, 3 words", english, 3)] + [(f"Chinese, n = {n}", chinese, n) for n in N_VALUES]
    changes = {id(pairs): [changed_share(a, b) for a, b, _ in pairs] for pairs in (english, chinese)}

    print(f"Revisions ({len(english)} English and {len(chinese)} Chinese pairs): median Jaccard by the share of text changed\n")
    intervals = [f"{100 * low:g} to {100 * high:g}%" for low, high in zip(CHANGE_BOUNDS, CHANGE_BOUNDS[1:])]
    print_row("changed", [*intervals, "changed at 0.75 to 0.85"])
    print_row("---", ["---"] * len(CHANGE_BOUNDS))
    for label, pairs, n in sets:
        similarities = [jaccard(shingles(a, n), shingles(b, n)) for a, b, _ in pairs]
        points = list(zip(changes[id(pairs)], similarities))
        cells = []
        for low, high in zip(CHANGE_BOUNDS, CHANGE_BOUNDS[1:]):
            band = [value for change, value in points if low < change <= high]
            cells.append(f"{median(band):.3f} ({len(band)})")
        near_changes = [change for change, value in points if 0.75 <= value < 0.85]
        print_row(label, cells + [f"{100 * median(near_changes):.1f}% ({len(near_changes)})"])

    print(f"\nWords replaced at random (a Chinese one has {HAN_PER_WORD} characters on average): mean Jaccard\n")
    print_row("replaced", [f"{100 * share:g}%" for share in REPLACED_SHARES])
    print_row("---", ["---"] * len(REPLACED_SHARES))
    replacements = {id(pairs): [unit for a, _, _ in pairs[:200] for unit in split_into_words(a)] for pairs in (english, chinese)}
    for label, pairs, n in sets:
        cells = []
        for share in REPLACED_SHARES:
            values = []
            for a, _, _ in pairs[:400]:
                b = replace_words(a, share, replacements[id(pairs)], random.Random(len(a)))
                values.append(jaccard(shingles(a, n), shingles(b, n)))
            cells.append(f"{sum(values) / len(values):.3f}")
        print_row(label, cells)

    print("\nEnglish revisions, and their edits made to Chinese texts: Jaccard\n")
    print_row("", ["pairs", "mean", "25%", "median", ">= 0.8", "0.7 to 0.9 in English: mean", "the same side of 0.8"])
    print_row("---", ["---"] * 7)
    transplanted = []
    texts = [a for a, _, _ in chinese]
    chinese_words = [unit for a in texts[:300] for unit in split_into_words(a)]
    for a, b, _ in english:
        edits = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        for text in random_source.sample(texts, 20):
            pair = transplant_edits(edits, text, chinese_words, random_source)
            if pair:
                transplanted.append((a, b, pair))
                break
    truth = [jaccard(shingles(a, 3), shingles(b, 3)) for a, b, _ in transplanted]
    for label, n in [("English, 3 words", None)] + [(f"Chinese, n = {n}", n) for n in N_VALUES]:
        values = truth if n is None else [jaccard(*(shingles(text, n) for text in pair)) for _, _, pair in transplanted]
        near_values = [value for value, english_value in zip(values, truth) if 0.7 <= english_value < 0.9]
        same_side = [(value >= 0.8) == (english_value >= 0.8) for value, english_value in zip(values, truth)]
        print_row(
            label,
            [f"{len(values)}", f"{sum(values) / len(values):.3f}", f"{quantile(values, 0.25):.3f}", f"{median(values):.3f}",
             f"{100 * sum(value >= 0.8 for value in values) / len(values):.1f}%", f"{sum(near_values) / len(near_values):.3f}",
             f"{100 * sum(same_side) / len(same_side):.1f}%"],
        )

    pages = []
    for name in ("sql-docs", "dotnet-docs"):
        rows = list(read_json_lines(f"{data}/zh/{name}.jsonl.gz"))
        pages += [tokenize(clean(page["text"]))[:MAX_TOKENS] for page in random_source.sample(rows, 1500)]
    pages = [page for page in pages if len(page) >= 30]
    rows = list(read_json_lines(f"{data}/en/win32.jsonl.gz"))
    en_pages = [tokenize(clean(page["text"]))[:MAX_TOKENS] for page in random_source.sample(rows, 3000)]
    en_pages = [page for page in en_pages if len(page) >= 30]
    chinese_sets = [(f"Chinese, n = {n}", chinese, pages, n) for n in N_VALUES]
    print_separation("whole texts", [("English, 3 words", english, en_pages, 3), *chinese_sets], random_source)

    def paragraphs(text):
        found = (tokenize(paragraph) for paragraph in text.split("\n"))
        return [words for words in found if 20 <= len(words) <= 100 and sum(map(is_unspaced, words)) * 2 >= len(words)]

    related, single = [], []
    for _, _, texts in chinese:
        old, new = map(paragraphs, texts)
        unchanged = {tuple(words) for words in new}
        for words in old:
            if tuple(words) in unchanged:
                continue
            closest = max(new, key=lambda other: difflib.SequenceMatcher(None, words, other, autojunk=False).quick_ratio(), default=None)
            if closest and changed_share(words, closest) <= 0.3:
                related.append((words, closest, None))
    for name in ("sql-docs", "dotnet-docs"):
        for page in list(read_json_lines(f"{data}/zh/{name}.jsonl.gz"))[::12]:
            found = paragraphs(clean(page["text"]))
            if found:
                single.append(random_source.choice(found))
    print_separation("paragraphs of 20 to 100 characters", [(f"Chinese, n = {n}", related, single, n) for n in N_VALUES], random_source)
    related_changes = [changed_share(a, b) for a, b, _ in related]
    print(f"\nShort related pairs: Jaccard by the share changed ({len(related)} pairs)\n")
    print_row("changed", ["0 to 5%", "5 to 10%", "10 to 20%", "20 to 30%"])
    print_row("---", ["---"] * 4)
    for n in N_VALUES:
        cells = []
        for low, high in ((0, 0.05), (0.05, 0.1), (0.1, 0.2), (0.2, 0.3)):
            band = [jaccard(shingles(a, n), shingles(b, n)) for (a, b, _), change in zip(related, related_changes) if low < change <= high]
            cells.append(f"{median(band):.3f} ({len(band)})")
        print_row(f"n = {n}", cells)


def print_separation(title, sets, random_source):
    """Prints a table that shows how well a similarity threshold separates pairs of revisions from random pairs of texts.

    `sets` has a tuple for each row of the table: (label, pairs of revisions, tokens of each text for the random pairs, n).
    """
    print(f"\nRevisions and random pairs: {title}\n")
    print_row("", ["pairs", "revisions >= 0.8", "random pairs", "random, mean", "99.9%", ">= 0.5", ">= 0.8", "revisions above the 99.9%"])
    print_row("---", ["---"] * 8)
    for label, pairs, pages, n in sets:
        similar = [jaccard(shingles(a, n), shingles(b, n)) for a, b, _ in pairs]
        page_shingles = [shingles(page, n) for page in pages]
        pair_source = random.Random(11)
        unrelated = [jaccard(*pair_source.sample(page_shingles, 2)) for _ in range(RANDOM_PAIRS)]
        high = quantile(unrelated, 0.999)

        def share(values, threshold):
            return sum(value >= threshold for value in values) / len(values)

        print_row(
            label,
            [f"{len(similar)}", f"{100 * share(similar, 0.8):.1f}%", f"{len(unrelated)}",
             f"{sum(unrelated) / len(unrelated):.4f}", f"{high:.3f}",
             f"{100 * share(unrelated, 0.5):.3f}%", f"{100 * share(unrelated, 0.8):.3f}%", f"{100 * share(similar, high):.1f}%"],
        )


if __name__ == "__main__":
    main()

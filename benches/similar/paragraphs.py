#!/usr/bin/env python3
"""Pairs of Chinese paragraphs of 20 to 100 characters, labelled by how similar they are, for `simstore evaluate`.

    python3 benches/similar/paragraphs.py ../shared/data > paragraphs.jsonl

Paragraphs that a revision changed stand beside what they became; paragraphs of other pages, each beside itself, are there to make
random pairs of. No paragraph comes in two pairs. Fixed seed.
"""

import random
import sys

from ngram import TOKENS, changed, clean, difflib, is_unspaced, jaccard, json, lines, revisions, shingles, tokens


def paragraphs(text):
    """Each with its tokens; more than half of these are characters of an unspaced script."""
    for paragraph in text.split("\n"):
        words = tuple(tokens(paragraph)[:TOKENS])
        if 20 <= len(words) <= 100 and sum(map(is_unspaced, words)) * 2 >= len(words):
            yield words, paragraph.strip()


def write(path, a, b, similarity):
    print(json.dumps({"path": path, "text_a": a, "text_b": b, "jaccard3": similarity}, ensure_ascii=False))


def main():
    data, chance, seen = sys.argv[1], random.Random(7), set()
    for number, (_, _, texts) in enumerate(revisions(f"{data}/labelled/sqldocs-zh-revision-pairs.jsonl.gz", chance)):
        old, new = (list(paragraphs(text)) for text in texts)
        kept = {words for words, _ in new}
        for words, paragraph in old:
            if words in kept or words in seen or not new:
                continue
            near = max(new, key=lambda other: difflib.SequenceMatcher(None, words, other[0], autojunk=False).quick_ratio())
            if changed(words, near[0]) <= 0.4:
                seen.add(words)
                write(f"revision {number}", paragraph, near[1], jaccard(shingles(words, 3), shingles(near[0], 3)))
    for name in ("sql-docs", "dotnet-docs"):
        for page in list(lines(f"{data}/zh/{name}.jsonl.gz"))[::5]:
            found = [pair for pair in paragraphs(clean(page["text"])) if pair[0] not in seen]
            if found:
                words, paragraph = chance.choice(found)
                seen.add(words)
                write(f"{name}/{page['id']}", paragraph, paragraph, 1.0)


if __name__ == "__main__":
    main()

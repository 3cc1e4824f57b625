#!/usr/bin/env python3
"""Prints pairs of Chinese paragraphs of 20 to 100 characters, labelled with their Jaccard similarity, for `simstore evaluate`.

    python3 benches/similar/paragraphs.py ../shared/data > paragraphs.jsonl

Some pairs are the old and the new version of a revised paragraph. The other pairs are from other pages, and each has the same paragraph
twice; they only provide more texts, from which `evaluate` makes random pairs. No paragraph is in two pairs. The seed is fixed.
"""

import random
import sys

from ngram import (
    MAX_TOKENS,
    changed_share,
    clean,
    difflib,
    is_unspaced,
    jaccard,
    json,
    read_json_lines,
    read_revisions,
    shingles,
    tokenize,
)


def read_paragraphs(text):
    """Yields (tokens, paragraph) for each paragraph that has 20 to 100 tokens, at least half of them in scripts without spaces."""
    for paragraph in text.split("\n"):
        words = tuple(tokenize(paragraph)[:MAX_TOKENS])
        if 20 <= len(words) <= 100 and sum(map(is_unspaced, words)) * 2 >= len(words):
            yield words, paragraph.strip()


def write(path, a, b, similarity):
    print(json.dumps({"path": path, "text_a": a, "text_b": b, "jaccard3": similarity}, ensure_ascii=False))


def main():
    data, random_source, seen = sys.argv[1], random.Random(7), set()
    for number, (_, _, texts) in enumerate(read_revisions(f"{data}/labelled/sqldocs-zh-revision-pairs.jsonl.gz", random_source)):
        old, new = (list(read_paragraphs(text)) for text in texts)
        unchanged = {words for words, _ in new}
        for words, paragraph in old:
            if words in unchanged or words in seen or not new:
                continue
            closest = max(new, key=lambda other: difflib.SequenceMatcher(None, words, other[0], autojunk=False).quick_ratio())
            if changed_share(words, closest[0]) <= 0.4:
                seen.add(words)
                write(f"revision {number}", paragraph, closest[1], jaccard(shingles(words, 3), shingles(closest[0], 3)))
    for name in ("sql-docs", "dotnet-docs"):
        for page in list(read_json_lines(f"{data}/zh/{name}.jsonl.gz"))[::5]:
            unseen = [pair for pair in read_paragraphs(clean(page["text"])) if pair[0] not in seen]
            if unseen:
                words, paragraph = random_source.choice(unseen)
                seen.add(words)
                write(f"{name}/{page['id']}", paragraph, paragraph, 1.0)


if __name__ == "__main__":
    main()

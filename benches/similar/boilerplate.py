#!/usr/bin/env python3
"""Measures the effect of navigation on the similarity of web pages, and how well the profile `main-text` excludes navigation.

The real pages mark their main text, so the script knows it exactly. It deduplicates three versions of each page: only the main text (the
truth), all text of the page (the default), and the text that the profile `main-text` finds. For each threshold, it counts the pages
removed, the pages removed wrongly, and the pages kept wrongly. It also prints which share of the words of the main text `main-text` loses,
and how many other words it keeps.

    apt-get download python3.11-doc git-doc postgresql-doc-15 libreoffice-help-en-us
    for package in *.deb; do dpkg-deb -x $package pages; done
    python3 benches/similar/boilerplate.py pages [--simstore target/release/simstore]
"""

import argparse
import html.parser
import json
import subprocess
import tempfile
from pathlib import Path

# Folder of the pages, and the attribute and its value that mark the element with the main text. If the attribute is None, the values are
# classes of elements that are not main text.
SITES = {
    "python": ("usr/share/doc/python3.11/html", "role", "main"),
    "postgresql": ("usr/share/doc/postgresql-doc-15/html", None, ("navheader", "navfooter")),
    "libreoffice": ("usr/share/libreoffice/help/en-US/text", "id", "DisplayArea"),
}
VOID_ELEMENTS = "area base br col embed hr img input link meta source track wbr".split()
MAX_PAGES = 600
# Generated pages resemble a news site: words of the frame, which all pages share, words of an article, and number of pages.
FRAME_WORDS, ARTICLE_WORDS, GENERATED_PAGES = 340, 35, 40


class MainText(html.parser.HTMLParser):
    """Collects the main text of a page.

    If `attribute` is the name of an attribute, the main text is inside the elements in which it has the value `values`, a string.
    If `attribute` is None, the main text is outside the elements whose attribute `class` is in the list `values`.
    """

    def __init__(self, attribute, values):
        super().__init__()
        self.keeps_marked = attribute is not None
        self.attribute, self.values = (attribute, [values]) if self.keeps_marked else ("class", values)
        self.open_elements, self.marked_depth, self.hidden_depth, self.text = [], 0, 0, []

    def handle_starttag(self, tag, attributes):
        self.text.append(" ")
        if tag in VOID_ELEMENTS:
            return
        is_marked = dict(attributes).get(self.attribute) in self.values
        is_hidden = tag in ("script", "style", "head")
        self.open_elements.append((tag, is_marked, is_hidden))
        self.marked_depth += is_marked
        self.hidden_depth += is_hidden

    def handle_endtag(self, tag):
        self.text.append(" ")
        if not any(tag == name for name, *_ in self.open_elements):
            return
        while self.open_elements:
            name, is_marked, is_hidden = self.open_elements.pop()
            self.marked_depth -= is_marked
            self.hidden_depth -= is_hidden
            if name == tag:
                break

    def handle_data(self, data):
        if not self.hidden_depth and bool(self.marked_depth) == self.keeps_marked:
            self.text.append(data)


def removed_ids(program, documents, threshold, *options):
    """Runs `simstore dedup`. Returns the ids of the removed documents, and the entry `boilerplate` of the JSON summary, if it has one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pages.jsonl")
        path.write_text("\n".join(json.dumps({"id": key, "text": text}) for key, text in documents))
        command = [program, "dedup", "--json", "--similar", str(threshold), "--remove-list", Path(folder, "removed"), path, *options]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        lines = Path(folder, "removed").read_text().split("\n")
        removed = {json.loads(line)["id"] if line.startswith("{") else line for line in lines if line}
        return removed, json.loads(output).get("boilerplate")


def distinct_word_counts(program, texts, profile):
    """Returns the number of distinct words of each text. The profile says how simstore splits texts into words."""
    counts = []
    for _, text in texts:
        command = [program, "fingerprint", "-", "--format", "text", "--json", "--profile", profile]
        output = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
        counts.append(json.loads(output.splitlines()[0])["features"])
    return counts


def read_pages(folder, attribute, values):
    """Returns up to MAX_PAGES pages of a folder as (path, HTML, main text).

    `attribute` and `values` mark the main text; they are the arguments of `MainText`.
    """
    pages = []
    for path in sorted(Path(folder).rglob("*.html")):
        page = path.read_text(errors="replace")
        parser = MainText(attribute, values)
        parser.feed(page)
        text = "".join(parser.text)
        if len(text.split()) >= 20:
            pages.append((str(path.relative_to(folder)), page, text))
    step = max(1, len(pages) // MAX_PAGES)
    return pages[::step][:MAX_PAGES]


def generated_pages(element):
    """Yields pages as (name, HTML, article text).

    All pages have the same navigation, in an HTML element with the name `element`. Each page has its own article.
    """

    def word(index):
        return f"word{index * 2654435761 % 9973}"

    frame = " ".join(word(index) for index in range(FRAME_WORDS))
    for page in range(GENERATED_PAGES):
        text = " ".join(word(1000 + page * ARTICLE_WORDS + index) for index in range(ARTICLE_WORDS))
        html_page = f"<html><body><{element}>{frame}</{element.split()[0]}><div><p>{text}</p></div></body></html>"
        yield f"page{page}", html_page, text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--simstore", default="target/release/simstore")
    arguments = parser.parse_args()
    program = arguments.simstore
    sites = {name: read_pages(Path(arguments.folder, directory), *marker) for name, (directory, *marker) in SITES.items()}
    for element in ["nav", 'div role="navigation"', 'div class="menu"']:
        sites[f"made, `<{element}>`"] = list(generated_pages(element))
    print("| pages | | at | should go | go: all text | wrongly | missed | told of boilerplate | go: `main-text` | wrongly | missed |")
    print("|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|")
    for name, pages in sites.items():
        documents = [(key, page) for key, page, _ in pages]
        main_texts = [(key, text) for key, _, text in pages]
        for threshold in [0.9, 0.8, 0.7]:
            expected, _ = removed_ids(program, main_texts, threshold)
            removed_by_default, boilerplate = removed_ids(program, documents, threshold)
            removed_by_main, _ = removed_ids(program, documents, threshold, "--verify-profile", "main-text")
            warned = f"{boilerplate['mostly']} of {boilerplate['looked_at']}" if boilerplate else "no"
            row = [len(removed_by_default), len(removed_by_default - expected), len(expected - removed_by_default), warned]
            row += [len(removed_by_main), len(removed_by_main - expected), len(expected - removed_by_main)]
            print(f"| {name} | {len(pages)} | {threshold} | {len(expected)} |", " | ".join(map(str, row)), "|", flush=True)
    print("\n| pages | words of the main text, median | lost by `main-text`: pages, words | kept besides: pages, words |")
    print("|---|--:|--:|--:|")
    for name in SITES:
        pages = sites[name][::8]
        expected_counts = distinct_word_counts(program, [(key, text) for key, _, text in pages], "words-1,no-nfkc,weights=none")
        actual_counts = distinct_word_counts(program, [(key, page) for key, page, _ in pages], "words-1,main-text,no-nfkc,weights=none")
        lost = [(expected - actual) / expected for expected, actual in zip(expected_counts, actual_counts) if actual < expected]
        extra = [(actual - expected) / expected for expected, actual in zip(expected_counts, actual_counts) if actual > expected]

        def mean(shares, pages=pages):
            return f"{len(shares)} of {len(pages)}, {sum(shares) / max(len(shares), 1):.1%}"

        print(f"| {name} | {sorted(expected_counts)[len(expected_counts) // 2]} | {mean(lost)} | {mean(extra)} |", flush=True)


if __name__ == "__main__":
    main()

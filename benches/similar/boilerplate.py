#!/usr/bin/env python3
"""Effect of navigation on the similarity of web pages, and of `main-text`, which leaves navigation out.

Pages are real pages whose main text is marked, so the main text is known without a guess. The script compares the main text by itself
(the truth), all text of the page (the default), and the text that the profile `main-text` finds. For each similarity, it counts the pages
that go, the pages that go wrongly, and the pages that stay wrongly. It also prints the share of words of the main text that `main-text`
loses, or keeps besides.

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

# Folder of the pages, and the attribute value of the element that holds the main text.
SITES = {
    "python": ("usr/share/doc/python3.11/html", "role", "main"),
    "postgresql": ("usr/share/doc/postgresql-doc-15/html", None, ("navheader", "navfooter")),
    "libreoffice": ("usr/share/libreoffice/help/en-US/text", "id", "DisplayArea"),
}
VOID = "area base br col embed hr img input link meta source track wbr".split()
PAGES = 600
# Words in a frame, words in an article, and number of pages, as on a news site.
FRAME, ARTICLE, MADE = 340, 35, 40


class MainText(html.parser.HTMLParser):
    """The text inside, or outside, of marked elements."""

    def __init__(self, attribute, values):
        super().__init__()
        self.inside = attribute is not None
        self.attribute, self.values = (attribute, [values]) if self.inside else ("class", values)
        self.open, self.marked, self.unseen, self.text = [], 0, 0, []

    def handle_starttag(self, tag, attributes):
        self.text.append(" ")
        if tag in VOID:
            return
        is_marked = dict(attributes).get(self.attribute) in self.values
        is_unseen = tag in ("script", "style", "head")
        self.open.append((tag, is_marked, is_unseen))
        self.marked += is_marked
        self.unseen += is_unseen

    def handle_endtag(self, tag):
        self.text.append(" ")
        if not any(tag == name for name, *_ in self.open):
            return
        while self.open:
            name, is_marked, is_unseen = self.open.pop()
            self.marked -= is_marked
            self.unseen -= is_unseen
            if name == tag:
                break

    def handle_data(self, data):
        if not self.unseen and bool(self.marked) == self.inside:
            self.text.append(data)


def removed(program, lines, least, *options):
    """The ids of the documents that go, and the boilerplate entry of the summary."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pages.jsonl")
        path.write_text("\n".join(json.dumps({"id": key, "text": text}) for key, text in lines))
        command = [program, "dedup", "--json", "--similar", str(least), "--remove-list", Path(folder, "gone"), path, *options]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        gone = Path(folder, "gone").read_text().split("\n")
        return {json.loads(line)["id"] if line.startswith("{") else line for line in gone if line}, json.loads(said).get("boilerplate")


def words(program, texts, profile):
    """Number of different words of each text."""
    counts = []
    for _, text in texts:
        command = [program, "fingerprint", "-", "--format", "text", "--json", "--profile", profile]
        said = subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout
        counts.append(json.loads(said.splitlines()[0])["features"])
    return counts


def pages_of(folder, attribute, values):
    """Pages, and their main texts."""
    found = []
    for path in sorted(Path(folder).rglob("*.html")):
        page = path.read_text(errors="replace")
        parser = MainText(attribute, values)
        parser.feed(page)
        text = "".join(parser.text)
        if len(text.split()) >= 20:
            found.append((str(path.relative_to(folder)), page, text))
    step = max(1, len(found) // PAGES)
    return found[::step][:PAGES]


def made(element):
    """Pages of one frame, in such an element, with an article of random words each."""

    def word(at):
        return f"word{at * 2654435761 % 9973}"

    frame = " ".join(word(at) for at in range(FRAME))
    for page in range(MADE):
        text = " ".join(word(1000 + page * ARTICLE + at) for at in range(ARTICLE))
        html_page = f"<html><body><{element}>{frame}</{element.split()[0]}><div><p>{text}</p></div></body></html>"
        yield f"page{page}", html_page, text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--simstore", default="target/release/simstore")
    asked = parser.parse_args()
    program = asked.simstore
    sites = {name: pages_of(Path(asked.folder, place), *how) for name, (place, *how) in SITES.items()}
    for element in ["nav", 'div role="navigation"', 'div class="menu"']:
        sites[f"made, `<{element}>`"] = list(made(element))
    print("| pages | | at | should go | go: all text | wrongly | missed | told of boilerplate | go: `main-text` | wrongly | missed |")
    print("|---|--:|--:|--:|--:|--:|--:|---|--:|--:|--:|")
    for name, pages in sites.items():
        whole = [(key, page) for key, page, _ in pages]
        texts = [(key, text) for key, _, text in pages]
        for least in [0.9, 0.8, 0.7]:
            truth, _ = removed(program, texts, least)
            every, found = removed(program, whole, least)
            of_main, _ = removed(program, whole, least, "--verify-profile", "main-text")
            told = f"{found['mostly']} of {found['looked_at']}" if found else "no"
            row = [len(every), len(every - truth), len(truth - every), told, len(of_main), len(of_main - truth), len(truth - of_main)]
            print(f"| {name} | {len(pages)} | {least} | {len(truth)} |", " | ".join(map(str, row)), "|", flush=True)
    print("\n| pages | words of the main text, median | lost by `main-text`: pages, words | kept besides: pages, words |")
    print("|---|--:|--:|--:|")
    for name in SITES:
        pages = sites[name][::8]
        in_truth = words(program, [(key, text) for key, _, text in pages], "words-1,no-nfkc,weights=none")
        in_main = words(program, [(key, page) for key, page, _ in pages], "words-1,main-text,no-nfkc,weights=none")
        lost = [(truth - kept) / truth for truth, kept in zip(in_truth, in_main) if kept < truth]
        more = [(kept - truth) / truth for truth, kept in zip(in_truth, in_main) if kept > truth]

        def mean(shares, pages=pages):
            return f"{len(shares)} of {len(pages)}, {sum(shares) / max(len(shares), 1):.1%}"

        print(f"| {name} | {sorted(in_truth)[len(in_truth) // 2]} | {mean(lost)} | {mean(more)} |", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Whether pages that differ as much are as similar in every language.

Pages are made of messages of MediaWiki, which are translated, with names filled in: two and more messages a page, and in a copy of
it some other names. The same pages and copies are made in English and in another language; told is how similar page and copy are, and
how many copies are at least 0.8 similar, by `simstore dedup`.

    apt-get download mediawiki && dpkg-deb -x mediawiki_*.deb wiki
    python3 benches/similar/languages.py wiki [--simstore target/release/simstore] [--profile NAME]
"""

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

LANGUAGES = ["th", "lo", "km", "my", "ja", "zh-hans", "ko", "ru", "ar", "de"]
NAMES = """bundler clojure gunzip docker helix compare wireshark python vim identify fossil rename maria peter london""".split()
NAMES += ["open source", "visual studio", "berlin city", "main page", "user talk"]
PAIRS = 400


def messages(folder, language):
    """The messages of a language, by their keys."""
    found = {}
    for path in sorted(Path(folder).rglob(f"i18n/**/{language}.json")):
        texts = json.loads(path.read_text())
        found.update({f"{path.parent}/{key}": text for key, text in texts.items() if isinstance(text, str)})
    return found


def is_usable(english, other):
    """Whether a message has one place for a name in both languages, and no markup."""
    return (
        20 < len(english) < 300
        and english != other
        and english.count("$") == other.count("$")
        and "$1" in english
        and "$1" in other
        and not any(sign in english for sign in "{<")
    )


def similarities(pages, program, profile):
    """How similar each page is to its copy; 0 where they are less than 0.46 similar, which is the least that can be asked for."""
    with tempfile.TemporaryDirectory() as folder:
        found = [0.0] * len(pages)
        # Pages of the same messages are similar, too: each is compared with its copy alone.
        lines = [
            json.dumps({"id": 2 * at + copy, "text": f"{text}"}) for at, both in enumerate(pages) for copy, text in enumerate(both)
        ]
        path = Path(folder, "pages.jsonl")
        path.write_text("\n".join(lines))
        command = [program, "dedup", "-q", path, "--similar", "0.46", "--pairs", "-"]
        if profile:
            command += ["--verify-profile", profile]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            a, b, similarity = line.split("\t")
            if a.isdigit() and int(a) // 2 == int(b) // 2:
                found[int(a) // 2] = float(similarity)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--profile")
    asked = parser.parse_args()
    english = messages(asked.folder, "en")
    print("| language | messages | mean similarity, English | here | 0.8 and more, English | here |")
    print("|---|--:|--:|--:|--:|--:|")
    for language in LANGUAGES:
        here = messages(asked.folder, language)
        keys = sorted(key for key, text in english.items() if key in here)
        keys = [key for key in keys if is_usable(english[key], here[key])]
        choice = random.Random(7)
        pages = [[], []]
        while len(pages[0]) < PAIRS:
            some = choice.choices(keys, k=choice.randint(2, 9))
            names = choice.choices(NAMES, k=len(some))
            others = list(names)
            for _ in range(choice.randint(1, 3)):
                others[choice.randrange(len(some))] = choice.choice(NAMES)
            if names == others:
                continue
            for of_language, texts in zip(pages, [english, here]):
                def fill(names, texts=texts, some=some):
                    return "\n".join(texts[key].replace("$1", name) for key, name in zip(some, names))

                of_language.append((fill(names), fill(others)))
        row = [similarities(of_language, asked.simstore, asked.profile) for of_language in pages]
        mean = [sum(found) / PAIRS for found in row]
        similar = [sum(similarity >= 0.8 for similarity in found) / PAIRS for found in row]
        print(f"| {language} | {len(keys)} | {mean[0]:.3f} | {mean[1]:.3f} | {similar[0]:.1%} | {similar[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()

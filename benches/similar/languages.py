#!/usr/bin/env python3
"""Compares languages: do equal changes of a page give equal similarities?

A page consists of two to nine translated messages of MediaWiki, filled in with names. A copy of the page has some other names. The script
generates the same pages and copies in English and in another language. It prints the mean similarity of a page and its copy, and the share
of copies with a similarity of at least 0.8, as `simstore dedup` reports them.

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
PAGE_COUNT = 400


def read_messages(folder, language):
    """Returns the translated messages of a language by their keys."""
    messages = {}
    for path in sorted(Path(folder).rglob(f"i18n/**/{language}.json")):
        texts = json.loads(path.read_text())
        messages.update({f"{path.parent}/{key}": text for key, text in texts.items() if isinstance(text, str)})
    return messages


def is_usable(english, other):
    """Whether a message has the placeholder `$1` in both languages, equally many placeholders, and no markup."""
    return (
        20 < len(english) < 300
        and english != other
        and english.count("$") == other.count("$")
        and "$1" in english
        and "$1" in other
        and not any(character in english for character in "{<")
    )


def copy_similarities(pages, program, profile):
    """Returns the similarity of each (page, copy) in `pages`, as simstore reports it; 0 if it is below 0.46."""
    with tempfile.TemporaryDirectory() as folder:
        similarities = [0.0] * len(pages)
        # Other pages with the same messages are similar too; only the pairs of a page and its copy count.
        lines = [
            json.dumps({"id": 2 * index + copy, "text": f"{text}"})
            for index, versions in enumerate(pages)
            for copy, text in enumerate(versions)
        ]
        path = Path(folder, "pages.jsonl")
        path.write_text("\n".join(lines))
        command = [program, "dedup", "-q", path, "--similar", "0.46", "--pairs", "-"]
        if profile:
            command += ["--verify-profile", profile]
        for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
            a, b, similarity = line.split("\t")
            if a.isdigit() and int(a) // 2 == int(b) // 2:
                similarities[int(a) // 2] = float(similarity)
        return similarities


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--simstore", default="target/release/simstore")
    parser.add_argument("--profile")
    arguments = parser.parse_args()
    english = read_messages(arguments.folder, "en")
    print("| language | messages | mean similarity, English | here | 0.8 and more, English | here |")
    print("|---|--:|--:|--:|--:|--:|")
    for language in LANGUAGES:
        translated = read_messages(arguments.folder, language)
        keys = sorted(key for key, text in english.items() if key in translated)
        keys = [key for key in keys if is_usable(english[key], translated[key])]
        random_source = random.Random(7)
        pages = [[], []]
        while len(pages[0]) < PAGE_COUNT:
            chosen = random_source.choices(keys, k=random_source.randint(2, 9))
            names = random_source.choices(NAMES, k=len(chosen))
            changed_names = list(names)
            for _ in range(random_source.randint(1, 3)):
                changed_names[random_source.randrange(len(chosen))] = random_source.choice(NAMES)
            if names == changed_names:
                continue
            for language_pages, texts in zip(pages, [english, translated]):
                def fill(names, texts=texts, chosen=chosen):
                    return "\n".join(texts[key].replace("$1", name) for key, name in zip(chosen, names))

                language_pages.append((fill(names), fill(changed_names)))
        similarity_lists = [copy_similarities(language_pages, arguments.simstore, arguments.profile) for language_pages in pages]
        mean = [sum(similarities) / PAGE_COUNT for similarities in similarity_lists]
        similar = [sum(similarity >= 0.8 for similarity in similarities) / PAGE_COUNT for similarities in similarity_lists]
        print(f"| {language} | {len(keys)} | {mean[0]:.3f} | {mean[1]:.3f} | {similar[0]:.1%} | {similar[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()

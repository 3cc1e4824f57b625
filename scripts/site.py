"""Builds the documentation site: the pages of the repository, and references of the command line and of the Python package.

    target/venv/bin/python scripts/site.py            writes target/site, from target/site-source
    target/venv/bin/python scripts/site.py --check    the same in a temporary folder

Fails if a page is missing in the navigation of docs/mkdocs.yml, if a link or an anchor is broken, or if a page loads anything from the
network. SIMSTORE is the binary whose help is used. The default is target/release/simstore, or else target/debug/simstore.
"""

import ast
import html
import inspect
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from pygments.formatters import HtmlFormatter

ROOT = Path(__file__).parents[1]
SETTINGS = ROOT / "docs/mkdocs.yml"
PAGES = ["*.md", "docs/*.md", "format-spec/*.md", "benches/history/*.md"]
ASSETS = ["docs/*.svg", "docs/site.css", "benches/history/*.svg"]
COMMANDS = "reference/commands"
PYTHON = "reference/python"
CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())
MODULES = ["simstore", "simstore.pandas", "simstore.polars", "simstore.spark", "simstore.tasks"]

# A code block, a code span, or a link to a file: image mark, text, path and anchor.
LINK = re.compile(
    r"^ *```.*?^ *```$|(?P<ticks>`+).+?(?P=ticks)|(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)",
    re.MULTILINE | re.DOTALL,
)
# The start of a section of a help text: usage, examples, options or commands.
HELP_SECTION = re.compile(r"^(?=Usage: |Examples?:$|\S.*:\n +[-<\[]|\w+:\n  [a-z-]+ +[A-Z])", re.MULTILINE)
# The documentation of a Rust item: its comment, attributes, indentation and name; or the type of an `impl` block.
RUST_ITEM = re.compile(
    r"((?:^ *///.*\n)+)((?:^ *#\[[^\0]*?\]\n)*)^( *)(?:pub(?:\(crate\))? )?(?:struct|enum|fn) (?:r#)?(\w+)|^impl (\w+) \{", re.MULTILINE
)


# Pages of the repository


def files_of(patterns: list[str]) -> dict[str, bytes]:
    """Reads the files of the repository that match one of the glob patterns. Returns their contents by path."""
    return {path.relative_to(ROOT).as_posix(): path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))}


def with_links(page: str, text: str, files: Iterable[str]) -> str:
    """Rewrites the links of a page that lead to files outside the site.

    `text` is the text of the page, and `page` its path. `files` has the files of the site. A rewritten link leads to the file in the
    repository. If the address of the repository is not known, the link becomes plain text.
    """

    def rewrite(link: re.Match[str]) -> str:
        _, image, label, path, anchor = link.groups()
        target = os.path.normpath(os.path.join(os.path.dirname(page), path or ""))
        # MkDocs reports links to missing files.
        if not path or target in files or not (ROOT / target).exists():
            return link[0]
        repository = CARGO["package"].get("repository")
        return f"{image}[{label}]({repository}/blob/HEAD/{target}{anchor or ''})" if repository else label

    return LINK.sub(rewrite, text)


def with_indentation(text: str) -> str:
    """Indents the content of list items by 4 spaces, as Python-Markdown expects. Code blocks in items lose their fence and get 8 spaces."""
    lines, width, fenced, is_loose = [], 0, False, False
    for line in text.splitlines():
        is_inside = width > 0 and line.startswith(" " * width)
        content = line[width:] if is_inside else line
        is_fence = content.startswith("```")
        item = None if fenced else re.match(r"([-*]|\d+\.) +(?=\S)", line)
        if item:
            # After an item of several paragraphs, the next one needs an empty line before it.
            lines += [""] if width and is_loose else []
            is_loose, width = False, len(item[0])
            line = f"{item[1]:<3} {line[width:]}"
        elif is_inside:
            line = "" if is_fence else " " * (8 if fenced else 4) + content
        elif line and not fenced:
            width = 0
        fenced ^= is_fence
        is_loose |= not line
        lines.append(line)
    return "\n".join(lines) + "\n"


# The command line


def help_of(*command: str) -> str:
    """Returns the help text of a command of simstore. Without `command`, returns the help text of simstore itself."""
    programs = [os.environ.get("SIMSTORE"), ROOT / "target/release/simstore", ROOT / "target/debug/simstore"]
    program = next((program for program in programs if program and Path(program).exists()), None)
    if program is None:
        sys.exit("site: found no simstore binary: build it, or set SIMSTORE to its path")
    return subprocess.run([program, "help", *command], check=True, capture_output=True, text=True).stdout


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """Splits a help text into sections. Yields (kind, heading, content); the kind is console, options, commands or text."""
    for part in HELP_SECTION.split(text):
        heading = re.match(r"(.*?):(?=[ \n])", part) if HELP_SECTION.match(part) else None
        end = heading.end() if heading else 0
        if heading:
            content = re.compile(r"(?: .*\n|\n)*").match(part, end)[0]
            end += len(content)
            kind = "options" if re.match(r"\s*[-<\[]", content) else "commands"
            yield "console" if heading[1] in ("Usage", "Example", "Examples") else kind, heading[1], content
        yield "text", "", part[end:]


def escaped(text: str, commands: Iterable[str] = ()) -> str:
    """Converts plain text to Markdown: escapes special characters outside code spans, and makes names of pages and commands links."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    for at, part in enumerate(parts):
        if at % 2 == 0:
            part = re.sub(r"([\\*_\[\]])", r"\\\1", html.escape(part, quote=False))
            parts[at] = re.sub(r"docs/([\w-]+)\.md", r"[\g<0>](../../docs/\1.md)", part)
        elif (command := re.match(r"`simstore ([\w-]+)", part)) and command[1] in commands:
            parts[at] = f"[{part}]({command[1]}.md)"
    return "".join(parts)


def options(content: str, commands: Iterable[str]) -> Iterator[str]:
    """Converts the arguments and options of a help text to a definition list in Markdown. The anchor of an option is its long name."""
    for entry in re.split(r"^ {2}(?: {4})?(?=[-<\[])", content, flags=re.MULTILINE)[1:]:
        term, description = re.match(r"(.*?)(?: {2,}|\n|$)(.*)", entry, re.DOTALL).groups()
        name = re.search(r"--[\w-]+", term)
        yield f'<a id="{name[0]}" href="#{name[0]}">`{term}`</a>' if name else f"`{term}`"
        # Paragraphs and items of lists.
        for at, part in enumerate(re.split(r"\n\s*\n|\n +(?=- )", description.strip())):
            mark = "-   " if part.strip().startswith("- ") else ""
            yield ("    " if at else ":   ") + mark + escaped(part.strip().removeprefix("- "), commands) + "\n"


def command_page(title: str, text: str, commands: list[str]) -> str:
    """Returns the Markdown page of a command. `text` is the help text of the command, and `commands` has the names of all commands."""
    page = [f"# {title}\n"]
    for kind, heading, content in sections(text):
        page += [f"## {escaped(heading)}\n"] if heading else []
        if kind == "options":
            page += options(content, commands)
        elif kind == "commands":
            rows = [f"| [`{name}`]({name}.md) | {escaped(about)} |" for name, about in listed(content) if name in commands]
            page += ["| command | what it does |", "|---|---|", *rows, ""]
        else:
            for is_code, lines in groupby(content.splitlines(), key=lambda line: line.startswith(" ")):
                block = "\n".join(lines)
                # In a code block, a line that begins with an option continues the line before.
                code = re.sub(r"\n(?=-)", " ", textwrap.dedent(block))
                page += [f"```{kind}\n{code}\n```\n"] if is_code else [f"{escaped(part, commands)}\n" for part in block.split("\n\n")]
    return "\n".join(page)


def listed(content: str) -> list[tuple[str, str]]:
    """Parses the list of commands in a help text. Returns the name and the description of each command."""
    return re.findall(r"^  ([a-z-]+) +(\S.*(?:\n {4,}.*)*)$", content, re.MULTILINE)


def command_pages() -> tuple[dict[str, str], list]:
    """Makes a page for each command and an overview of the program. Returns the pages by path, and their entries in the navigation."""
    text = help_of()
    groups = [(heading, [name for name, _ in listed(content)]) for kind, heading, content in sections(text) if kind == "commands"]
    commands = [name for _, group in groups for name in group if name != "help"]
    pages = {f"{COMMANDS}/{name}.md": command_page(f"simstore {name}", help_of(name), commands) for name in commands}
    pages[f"{COMMANDS}/README.md"] = command_page("Command line", text, commands)
    nav = [{heading: [{name: f"{COMMANDS}/{name}.md"} for name in group if name in commands]} for heading, group in groups]
    return pages, [{"Overview": f"{COMMANDS}/README.md"}, *nav]


# The Python package


def compiled_docs() -> dict[str, str]:
    """Reads the docstrings of the classes, methods and functions in Rust from the comments of their sources. Returns them by full name."""
    docs, owner, classes = {}, "", {}
    for path in sorted((ROOT / "python/src").glob("*.rs")):
        for doc, attributes, indentation, name, type_name in RUST_ITEM.findall(path.read_text()):
            owner = classes.get(type_name, type_name) or owner
            if doc:
                renamed = re.search(r'\bname = "(\w+)"', attributes)
                if renamed and not indentation:
                    # The class `Store` is the struct `PyStore`.
                    classes[name] = renamed[1]
                name = renamed[1] if renamed else name
                docs.setdefault(f"{owner}.{name}" if indentation else name, re.sub(r"^ */// ?", "", doc, flags=re.MULTILINE))
    return docs


def signature(name: str, function: ast.FunctionDef) -> str:
    """Returns the signature of a function as Python code; a long signature has one argument a line."""
    arguments = re.sub(r"^(self|cls)(, /)?(, |$)", "", ast.unparse(function.args))
    arguments = re.sub(r"(?<=[\w\]'\"])=", " = ", arguments)
    result = f" -> {ast.unparse(function.returns)}" if function.returns and not function.name.startswith("__") else ""
    if len(name + arguments + result) > 88:
        # Commas in brackets separate no arguments.
        parts = re.sub(r"\[[^\[\]]*\]", lambda brackets: brackets[0].replace(", ", "\0"), arguments).split(", ")
        arguments = "\n" + "".join(f"    {part},\n" for part in parts).replace("\0", ", ")
    return f"{name}({arguments}){result}"


def markdown_of(docstring: str) -> Iterator[str]:
    """Converts a docstring to Markdown: NumPy's sections become definition lists, examples become code blocks."""
    text = inspect.cleandoc(docstring).replace("``", "`") + "\n"
    text = re.sub(r"((?:^(?:>>>|\.\.\.).*\n(?:^(?!>>>).+\n)*)+)", r"```pycon\n\1```\n", text, flags=re.MULTILINE)
    for section in re.split(r"^(?=\w.*\n-+\n)", text, flags=re.MULTILINE):
        heading = re.match(r"(.*)\n-+\n", section)
        if heading:
            section = section[heading.end() :]
            yield f"**{heading[1]}**\n"
        if heading and heading[1] not in ("Examples", "Notes"):
            for entry in re.findall(r"^\S.*\n(?:(?: .*)?\n)*", section, re.MULTILINE):
                term, _, description = entry.partition("\n")
                yield re.sub(r"^(.*?)(?= : )", r"`\1`", term)
                yield f":   {textwrap.indent(textwrap.dedent(description), '    ').strip() or chr(0x200B)}\n"
        else:
            yield section


def described(mark: str, key: str, nodes: list, docs: dict[str, str], prefix: str = "") -> Iterator[str]:
    """Yields the Markdown lines for a class with its methods, or for a function with its overloads.

    `mark` is the Markdown mark of the heading, such as `##`. `key` is the full name of the class or function, and `nodes` are its
    definitions. `docs` has the docstrings of compiled code by full name, and `prefix` is text before the name in the heading.
    """
    doc = ast.get_docstring(nodes[0]) or docs.get(key)
    if doc is None:
        sys.exit(f"site: {key} has no docstring")
    name, members = nodes[0].name, {}
    signatures = [signature(name, node) for node in nodes if isinstance(node, ast.FunctionDef)]
    if isinstance(nodes[0], ast.ClassDef):
        members = grouped(nodes[0], lambda name: not name.startswith("_"))
        bases = ", ".join(map(ast.unparse, nodes[0].bases))
        made = [signature(name, node) for method in ("__new__", "__init__") for node in grouped(nodes[0], method.__eq__).get(method, [])]
        signatures = [f"class {name}({bases})" if bases else f"class {made[0] if made else name}"]
    elif any(ast.unparse(decorator) == "property" for decorator in nodes[0].decorator_list):
        signatures = [f"{name}: {ast.unparse(nodes[0].returns)}"]
    yield from [f"{mark} {prefix}{key}", "", "```python", *signatures, "```", "", *markdown_of(doc)]
    for member, overloads in members.items():
        # Other attributes are in the docstring of the class.
        if f"{key}.{member}" in docs or ast.get_docstring(overloads[0]) or not re.search(rf"^{member}\b.* : ", doc, re.MULTILINE):
            yield from described(mark + "#", f"{key}.{member}", overloads, docs)


def grouped(tree: ast.Module | ast.ClassDef, is_wanted: Callable[[str], bool]) -> dict[str, list]:
    """Returns {name: [definitions]} of the classes and functions in a module or class whose name `is_wanted` accepts.

    Only an overloaded function has several definitions.
    """
    found: dict[str, list] = {}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and is_wanted(node.name):
            found.setdefault(node.name, []).append(node)
    return found


def python_pages() -> tuple[dict[str, str], list]:
    """Makes a page for each public module of the package. Returns the pages by path, and their entries in the navigation."""
    docs, pages = compiled_docs(), {}
    for module in MODULES:
        place = ROOT.joinpath("python", *module.split("."))
        own = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        tree = ast.parse(own.read_text())
        names = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and "__all__" in ast.unparse(node)]
        page = [f"# {module}", "", *markdown_of(ast.get_docstring(tree) or "")]
        for path in sorted(place.glob("*.py*" if names else "[a-z]*.py")) if place.is_dir() else [own]:
            members = grouped(ast.parse(path.read_text()), lambda name, names=names: name in names[0] if names else name[0] != "_")
            for name, nodes in sorted(members.items()):
                page += described("##", name, nodes, docs, "" if names else f"{path.stem}.")
        pages[f"{PYTHON}/{module}.md"] = "\n".join(page)
    stub = (ROOT / "python/simstore/_simstore.pyi").read_text()
    types = re.sub(": TypeAlias", "", "\n".join(re.findall(r"^_\w+: TypeAlias = .*$", stub, re.MULTILINE)))
    pages[f"{PYTHON}/simstore.md"] += f"\n## Types in signatures\n\n```python\n{types}\n```\n"
    return pages, [{module: f"{PYTHON}/{module}.md"} for module in MODULES]


# The site


def faults(site: Path) -> Iterator[str]:
    """Yields a message for each broken link or anchor in the built pages, and for each resource that a page loads from the network."""
    texts = {path: path.read_text() for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css") and path.name != "404.html"}
    anchors = {path: set(re.findall(r'\b(?:id|name)="([^"]*)"', text)) for path, text in texts.items()}
    for path, text in texts.items():
        links = re.findall(r'<(\w+)\b[^<>]*?\b(?:href|src|srcset|data)="([^"]*)"', text)
        links += [("style", address) for address in re.findall(r"(?:@import|url\()\s*['\"]?((?:https?:)?//[^'\")]*)", text)]
        for tag, address in links:
            parts = urlsplit(address)
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if parts.netloc and tag != "a":
                yield f"{path.relative_to(site)} loads {address}"
            elif not parts.scheme and not parts.netloc and not target.exists():
                yield f"{path.relative_to(site)} links to {address}, which does not exist"
            elif not parts.scheme and parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]:
                yield f"{path.relative_to(site)} links to {address}, which has no such anchor"


def slug(heading: str, _: str) -> str:
    """Returns the anchor that GitHub makes for a heading, so that links work in the site and on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def expanded(nav: list | str, folders: dict[str, list]) -> list | str:
    """Replaces each folder in the navigation by the list of its pages. `folders` maps the folders to these lists."""
    if isinstance(nav, str):
        return folders.get(nav, nav)
    return [entry if isinstance(entry, str) else {title: expanded(value, folders) for title, value in entry.items()} for entry in nav]


def main() -> None:
    """Assembles the sources of the site, builds the site and checks it."""
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    logging.basicConfig(level=logging.WARNING, format="site: %(message)s")
    commands, commands_nav = command_pages()
    python, python_nav = python_pages()
    files = files_of(PAGES)
    history = [path for path in files if path.startswith("benches/history/")]
    rust = "# Rust\n\n`cargo doc --open` makes the reference from the source. [The Rust crates](../docs/library.md) is the guide.\n"
    made = {**commands, **python, "reference/rust.md": rust}
    known = {*files, *made, *files_of(ASSETS)}
    made |= {path: with_links(path, with_indentation(text.decode()), known) for path, text in files.items()}
    # The only one that is no page.
    made["docs/pygments.css"] = HtmlFormatter().get_style_defs(".codehilite")
    folders = {"benches/history/": history, f"{COMMANDS}/": commands_nav, f"{PYTHON}/": python_nav}
    with tempfile.TemporaryDirectory() as temporary:
        source, site = (Path(temporary if check else ROOT / "target") / name for name in ("site-source", "site"))
        shutil.rmtree(source, ignore_errors=True)
        for path, content in {**files_of(ASSETS), **{path: text.encode() for path, text in made.items()}}.items():
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(content)
        settings = yaml.safe_load(SETTINGS.read_text())
        settings |= {"strict": True, "docs_dir": str(source), "site_dir": str(site), "nav": expanded(settings["nav"], folders)}
        settings |= {"repo_url": CARGO["package"].get("repository"), "extra": {"version": CARGO["workspace"]["package"]["version"]}}
        settings["markdown_extensions"].append({"toc": {"slugify": slug}})
        build(load_config(str(SETTINGS), **settings))
        if found := list(faults(site)):
            sys.exit("\n".join(f"site: {fault}" for fault in found))
        print(f"{len(made) - 1} pages, no faults" if check else site / "index.html")


if __name__ == "__main__":
    main()

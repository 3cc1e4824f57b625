"""Runs the Python code blocks of Markdown pages. A `text` block after a `python` block has its expected output."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sections(page: Path) -> dict[str, str]:
    """Returns the sections of a page by heading (`## `), or the whole page by file name if it has no headings."""
    preamble, *parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    assert "```python" not in preamble or not parts, f"{page}: code before the first heading is not run"
    return {part.splitlines()[0]: part for part in parts} or {page.name: preamble}


def code_blocks(step: str) -> list[tuple[str, str]]:
    """Returns the Python blocks in the text of a section of a page: pairs of code and expected output."""
    fences = FENCE.findall(step)
    next_fences = fences[1:] + [("", "")]
    # Each block must name its language. A block without a name would be skipped without an error.
    assert all(kind in ("console", "python", "text") for kind, _ in fences) and step.count("```") == 2 * len(fences)
    return [
        (code, expected if next_kind == "text" else "")
        for (kind, code), (next_kind, expected) in zip(fences, next_fences)
        if kind == "python"
    ]


def run_section(step: str) -> None:
    """Runs the code of a section in the current folder, which must have the files that the page reads."""
    names = {"__name__": "__main__"}
    for code, expected in code_blocks(step):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "a page", "exec"), names)
        assert printed.getvalue() == expected, code

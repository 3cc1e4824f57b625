"""Pages of Markdown whose code is run: blocks of `python`, each with what it prints in a block of `text` behind it."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(page: Path) -> dict[str, str]:
    """The parts of a page that begin with `## `, by their heading; all of it if there are none."""
    first, *parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    assert "```python" not in first or not parts, f"{page}: code before the first heading is not run"
    return {part.splitlines()[0]: part for part in parts} or {page.name: first}


def blocks(step: str) -> list[tuple[str, str]]:
    """Code, and what it is to print."""
    found = FENCE.findall(step)
    after = found[1:] + [("", "")]
    # What is not run is told apart by its name: a block without one would be left out in silence.
    assert all(kind in ("console", "python", "text") for kind, _ in found) and step.count("```") == 2 * len(found)
    return [(code, to_print if of == "text" else "") for (kind, code), (of, to_print) in zip(found, after) if kind == "python"]


def run(step: str) -> None:
    """Runs the code of a step in the folder where one is, which has what the page needs."""
    names = {"__name__": "__main__"}
    for code, expected in blocks(step):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "a page", "exec"), names)
        assert printed.getvalue() == expected, code

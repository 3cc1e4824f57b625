"""Makes docs/python.ipynb of docs/python.md: the same cells, run, with what they print and draw.

    target/venv/bin/python scripts/notebook.py            writes it
    target/venv/bin/python scripts/notebook.py --check    runs it, and tells whether it is as it was written
"""

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/python.md"
NOTEBOOK = ROOT / "docs/python.ipynb"


def made_of(page: str) -> NotebookNode:
    """The cells of a page. What its code is to print is left out: a notebook has what it does print."""
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.kernelspec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for part in re.split(r"^(```python\n.*?^```\n)", page, flags=re.MULTILINE | re.DOTALL):
        if part.startswith("```python\n"):
            cell = nbformat.v4.new_code_cell(part.removeprefix("```python\n").removesuffix("\n```\n"))
        else:
            words = re.sub(r"^```text\n.*?^```\n", "", part, flags=re.MULTILINE | re.DOTALL).strip()
            if not words:
                continue
            cell = nbformat.v4.new_markdown_cell(words)
        cell.id = f"cell-{len(notebook.cells)}"
        notebook.cells.append(cell)
    return notebook


def run(notebook: NotebookNode) -> None:
    """Runs the cells in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "samples").symlink_to(ROOT / "samples")
        # A line may come in pieces: `coalesce_streams` puts them together.
        client = NotebookClient(
            notebook,
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": folder}},
            timeout=300,
        )
        client.execute()
    # The versions of whoever ran it.
    notebook.metadata.pop("language_info", None)


def shown(cell: NotebookNode) -> list[tuple[str, object]]:
    """What a cell shows: texts as they are, of pictures that they are there."""
    return [
        (output.output_type, output.text if "text" in output else sorted(output.get("data", {})))
        for output in cell.get("outputs", [])
    ]


def main() -> None:
    notebook = made_of(PAGE.read_text())
    run(notebook)
    if sys.argv[1:] != ["--check"]:
        nbformat.write(notebook, NOTEBOOK)
        return
    written = nbformat.read(NOTEBOOK, as_version=4)
    if len(written.cells) != len(notebook.cells):
        sys.exit("docs/python.ipynb has other cells than docs/python.md: run scripts/notebook.py")
    for old, new in zip(written.cells, notebook.cells):
        if (old.source, shown(old)) != (new.source, shown(new)):
            sys.exit(
                "docs/python.ipynb is not up to date, run scripts/notebook.py: "
                f"{old.source}\n{shown(old)}\n{new.source}\n{shown(new)}"
            )


if __name__ == "__main__":
    main()

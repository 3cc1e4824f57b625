"""Builds docs/python.ipynb from docs/python.md: runs the code cells, and stores their outputs.

    target/venv/bin/python scripts/notebook.py            writes the notebook
    target/venv/bin/python scripts/notebook.py --check    runs the cells, and fails if the notebook differs
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


def cells_from(page: str) -> NotebookNode:
    """Splits a Markdown page into the cells of a notebook.

    Skips the ```text blocks of the page. They show outputs, and a notebook stores the outputs of its cells itself.
    """
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
    """Runs the cells in a temporary folder, and stores their outputs in the notebook."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "samples").symlink_to(ROOT / "samples")
        # `coalesce_streams` joins lines that arrive in several messages.
        client = NotebookClient(
            notebook,
            coalesce_streams=True,
            record_timing=False,
            resources={"metadata": {"path": folder}},
            timeout=300,
        )
        client.execute()
    # The Python version of this machine does not belong in the notebook.
    notebook.metadata.pop("language_info", None)


def outputs_of(cell: NotebookNode) -> list[tuple[str, object]]:
    """Returns the outputs of a cell for a comparison: texts in full, and only the media types of pictures."""
    return [
        (output.output_type, output.text if "text" in output else sorted(output.get("data", {})))
        for output in cell.get("outputs", [])
    ]


def main() -> None:
    notebook = cells_from(PAGE.read_text())
    run(notebook)
    if sys.argv[1:] != ["--check"]:
        nbformat.write(notebook, NOTEBOOK)
        return
    written = nbformat.read(NOTEBOOK, as_version=4)
    if len(written.cells) != len(notebook.cells):
        sys.exit("docs/python.ipynb has other cells than docs/python.md: run scripts/notebook.py")
    for old, new in zip(written.cells, notebook.cells):
        if (old.source, outputs_of(old)) != (new.source, outputs_of(new)):
            sys.exit(
                "docs/python.ipynb is not up to date, run scripts/notebook.py: "
                f"{old.source}\n{outputs_of(old)}\n{new.source}\n{outputs_of(new)}"
            )


if __name__ == "__main__":
    main()

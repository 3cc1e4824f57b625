"""The code of the pages prints what they say, and the notebook is the guide."""

import re
import subprocess
import sys

import pytest

from pages import ROOT, blocks, run, steps

PAGES = [ROOT / "python/PYPI.md", ROOT / "docs/python.md"]
STEPS = [pytest.param(text, id=f"{page.stem}: {name}") for page in PAGES for name, text in steps(page).items()]


@pytest.mark.parametrize("step", STEPS)
def test_page(step, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run(step)


def test_the_guide_names_the_packages_that_it_imports():
    text = (ROOT / "docs/python.md").read_text()
    named = re.search(r"^pip install (pandas.*)$", text, re.MULTILINE)[1].split()
    code = "\n".join(code for step in steps(ROOT / "docs/python.md").values() for code, _ in blocks(step))
    modules = {line.split()[1].split(".")[0] for line in code.splitlines() if re.match(r"(import|from) \w", line)}
    packages = {"PIL": "pillow"}
    imported = {packages.get(module, module) for module in modules - sys.stdlib_module_names - {"numpy", "simstore"}}
    # DuckDB and tables of Arrow need pyarrow without an import.
    assert {*imported, "pyarrow"} == set(named)


def test_the_front_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    readme = (ROOT / "README.md").read_text()
    # All other blocks are of the command line, and cli/tests/pages.rs runs them.
    run(readme[readme.index("```python") :].split("\n## ")[0])


def test_the_notebook_shows_what_it_did(monkeypatch):
    # Pictures go into it.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/notebook.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    notebook = (ROOT / "docs/python.ipynb").read_bytes()
    assert notebook.count(b"image/png") == 2 and len(notebook) < 300_000

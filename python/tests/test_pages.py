"""The code on the documentation's pages prints the output shown there, and the notebook has the code of the guide."""

import re
import subprocess
import sys

import pytest

from pages import ROOT, code_blocks, run_section, sections

PAGES = [ROOT / "python/PYPI.md", ROOT / "docs/python.md"]
STEPS = [pytest.param(text, id=f"{page.stem}: {name}") for page in PAGES for name, text in sections(page).items()]


@pytest.mark.parametrize("step", STEPS)
def test_page(step, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run_section(step)


def test_the_guide_names_the_packages_that_it_imports():
    text = (ROOT / "docs/python.md").read_text()
    named = re.search(r"^pip install (pandas.*)$", text, re.MULTILINE)[1].split()
    code = "\n".join(code for step in sections(ROOT / "docs/python.md").values() for code, _ in code_blocks(step))
    modules = {line.split()[1].split(".")[0] for line in code.splitlines() if re.match(r"(import|from) \w", line)}
    packages = {"PIL": "pillow"}
    imported = {packages.get(module, module) for module in modules - sys.stdlib_module_names - {"numpy", "simstore"}}
    # DuckDB and Arrow tables need pyarrow, but the page does not import it.
    assert {*imported, "pyarrow"} == set(named)


def test_the_front_page(monkeypatch):
    monkeypatch.chdir(ROOT)
    readme = (ROOT / "README.md").read_text()
    # cli/tests/pages.rs runs the other blocks, which have shell commands.
    run_section(readme[readme.index("```python") :].split("\n## ")[0])


def test_the_notebook_is_up_to_date(monkeypatch):
    # The notebook has plots, which need matplotlib's default backend.
    monkeypatch.delenv("MPLBACKEND", raising=False)
    completed = subprocess.run(
        [sys.executable, ROOT / "scripts/notebook.py", "--check"], capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    notebook = (ROOT / "docs/python.ipynb").read_bytes()
    assert notebook.count(b"image/png") == 2 and len(notebook) < 300_000

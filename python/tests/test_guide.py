"""The code of the pages prints what they say."""

import pytest
from pages import ROOT, run, steps

PAGES = [ROOT / "python/PYPI.md"]
STEPS = [pytest.param(text, id=f"{page.stem}: {name}") for page in PAGES for name, text in steps(page).items()]


@pytest.mark.parametrize("step", STEPS)
def test_page(step, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run(step)

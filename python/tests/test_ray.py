"""The tasks of a cluster under Ray, which is large, and so is not among what the tests need."""

import pytest

from pages import ROOT, run, steps

PAGE = ROOT / "docs/ray.md"


# Ray warns of its own settings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", steps(PAGE))
def test_page(name, tmp_path, monkeypatch):
    step = steps(PAGE)[name]
    if "```python" in step:
        pytest.importorskip("ray", reason="ray is not installed: `pip install 'ray[data]'` for docs/ray.md")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run(step)

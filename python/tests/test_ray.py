"""The code of docs/ray.md prints the output shown there. Ray is large, so test.sh does not install it."""

import pytest

from pages import ROOT, run_section, sections

PAGE = ROOT / "docs/ray.md"


# Ray warns about its own settings.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sections(PAGE))
def test_page(name, tmp_path, monkeypatch):
    step = sections(PAGE)[name]
    if "```python" in step:
        pytest.importorskip("ray", reason="ray is not installed: `pip install 'ray[data]'` for docs/ray.md")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run_section(step)

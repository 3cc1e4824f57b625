"""The code of docs/cluster.md prints the output shown there."""

import pytest

from pages import ROOT, run_section, sections
from simstore import spark as on_spark

PAGE = sections(ROOT / "docs/cluster.md")
STEPS = [name for name, step in PAGE.items() if "```python" in step]


@pytest.mark.parametrize("name", STEPS)
def test_step(spark, name, tmp_path):
    step = PAGE[name]
    # Relative paths of Spark begin at the folder where it was started.
    for written in ("pages", "unique", "pages-store"):
        step = step.replace(f'"{written}"', f'"{tmp_path / written}"')
    run_section(step.replace('"samples/', f'"{ROOT}/samples/'))
    on_spark.release()

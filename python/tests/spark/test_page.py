"""The code of docs/cluster.md prints what the page says."""

import pytest

from pages import ROOT, run, steps
from simstore import spark as on_spark

PAGE = steps(ROOT / "docs/cluster.md")
STEPS = [name for name, step in PAGE.items() if "```python" in step]


@pytest.mark.parametrize("name", STEPS)
def test_step(spark, name, tmp_path):
    step = PAGE[name]
    # Spark is in the folder that it was started in.
    for written in ("pages", "unique", "pages-store"):
        step = step.replace(f'"{written}"', f'"{tmp_path / written}"')
    run(step.replace('"samples/', f'"{ROOT}/samples/'))
    on_spark.release()

"""Runs `speculation.py`, which makes Spark run copies of slow tasks."""

import os
import subprocess
import sys

from spark import conftest


def test_copies_of_tasks_change_nothing(spark_environment, tmp_path):
    _, environment = spark_environment
    completed = subprocess.run(
        [sys.executable, "-m", "spark.speculation", tmp_path],
        env=os.environ | environment,
        cwd=conftest.TESTS,
        capture_output=True,
        text=True,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr

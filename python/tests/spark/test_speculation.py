"""Tasks of which Spark runs two at once."""

import os
import subprocess
import sys

from spark import conftest


def test_copies_of_tasks_change_nothing(spark_environment, tmp_path):
    _, environment = spark_environment
    done = subprocess.run(
        [sys.executable, "-m", "spark.speculation", tmp_path],
        env=os.environ | environment,
        cwd=conftest.TESTS,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr

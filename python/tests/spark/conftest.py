"""Fixtures of one Spark session for all tests: two executors on this machine, each in its own process."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import helpers
from spark import frames

TESTS = pathlib.Path(__file__).resolve().parents[1]
MASTER = "local-cluster[2,1,1024]"
# Executors live for a short time, so less JIT compilation makes the tests faster.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    # A number of partitions that is no multiple of two cores. A single partition would hide errors between partitions.
    "spark.sql.shuffle.partitions": "7",
    "spark.default.parallelism": "3",
    # Tests kill executors. The cluster must replace them without a limit.
    "spark.deploy.maxExecutorRetries": "-1",
}


def skip_or_fail(reason):
    """Skips the test with the message `reason`. In CI, where no test may be skipped, fails the test instead."""
    message = f"{reason}: ./test.sh installs it"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def check_java():
    home = os.environ.get("JAVA_HOME")
    java = pathlib.Path(home, "bin", "java") if home else shutil.which("java")
    try:
        output = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        skip_or_fail(f"Spark needs Java 17 or newer ({error})")
    version = output.split('"')[1].split(".")[0].split("-")[0]
    if int(version) < 17:
        skip_or_fail(f"Spark needs Java 17 or newer, {java} is {version}")


def pytest_collection_modifyitems(items):
    """Ignores warnings about sockets to the Java process, which pyspark leaves to the garbage collector."""
    ignore_sockets = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(ignore_sockets)


@pytest.fixture(scope="session")
def spark_environment(tmp_path_factory):
    """Returns a scratch folder for all files of Spark, and the environment variables of Spark's processes."""
    try:
        import pyspark
    except ImportError:
        skip_or_fail("pyspark is not installed")
    check_java()
    folder = tmp_path_factory.mktemp("spark")
    # A local cluster keeps the folders of its executors in SPARK_HOME. No setting changes that.
    home = folder / "home"
    home.mkdir()
    for entry in pathlib.Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return folder, {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
    }


@pytest.fixture(scope="session")
def spark(spark_environment):
    """Returns the session that all tests share. Tests change settings with `changed_settings` of `spark.frames`, which restores them."""
    folder, environment = spark_environment
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(MASTER).appName("tests of simstore")
        builder = builder.config(map=SETTINGS | {"spark.sql.warehouse.dir": str(folder / "warehouse")})
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        # Otherwise the cluster starts executors while the driver ends, and reports their failures.
        session.stop()


@pytest.fixture(params=[True, False], ids=["adaptive", "not-adaptive"])
def adaptive(request, spark):
    """Runs the test twice: with Spark's adaptive query execution, and without it. The fixture's value is True or False accordingly."""
    with frames.changed_settings(spark, {"spark.sql.adaptive.enabled": str(request.param).lower()}):
        yield request.param


@pytest.fixture
def random_fingerprints():
    """Returns `random_fingerprints(count, bits, seed=0)`, whose results are ints, two thirds of them near or equal to others."""
    return helpers.random_fingerprints

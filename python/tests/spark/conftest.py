"""One Spark for all tests that ask for it: two executors, each a process of its own, on this machine."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import plain
from spark import frames

TESTS = pathlib.Path(__file__).resolve().parents[1]
MASTER = "local-cluster[2,1,1024]"
# What is started and ended often need not be compiled well.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    # Two cores do not share well, and one partition would hide what goes wrong between several.
    "spark.sql.shuffle.partitions": "7",
    "spark.default.parallelism": "3",
    # Tests end executors; the cluster is to start others, however often.
    "spark.deploy.maxExecutorRetries": "-1",
}


def missing(what):
    """Tells that tests do not run: by failing where all of them have to."""
    message = f"{what}: ./test.sh installs it"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def check_java():
    home = os.environ.get("JAVA_HOME")
    java = pathlib.Path(home, "bin", "java") if home else shutil.which("java")
    try:
        said = subprocess.run([java or "java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"Spark needs Java 17 or newer ({error})")
    version = said.split('"')[1].split(".")[0].split("-")[0]
    if int(version) < 17:
        missing(f"Spark needs Java 17 or newer, {java} is {version}")


def pytest_collection_modifyitems(items):
    """Sockets to the Java process that pyspark leaves to the garbage collector are none of the tests'."""
    left = pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(left)


@pytest.fixture(scope="session")
def spark_environment(tmp_path_factory):
    """What processes of Spark find in their environment, and a folder for all that they write."""
    try:
        import pyspark
    except ImportError:
        missing("pyspark is not installed")
    check_java()
    folder = tmp_path_factory.mktemp("spark")
    # A local cluster has the folders of its executors in SPARK_HOME, and no setting for another place.
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
    """The session that all tests share; settings that a test changes it puts back (`settings` of `spark.frames`)."""
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
        # Without it the cluster starts executors while the driver ends, and reports each that fails.
        session.stop()


@pytest.fixture(params=[True, False], ids=["adaptive", "not-adaptive"])
def adaptive(request, spark):
    """Runs a test with adaptive execution and without."""
    with frames.settings(spark, {"spark.sql.adaptive.enabled": str(request.param).lower()}):
        yield request.param


@pytest.fixture
def random_fingerprints():
    """`random_fingerprints(count, bits, seed=0)`: ints, of which two thirds are near or equal to others."""
    return plain.random_fingerprints

"""What importing simstore takes."""

import subprocess
import sys
from pathlib import Path

import pytest

import simstore

OPTIONAL = ["datasets", "duckdb", "matplotlib", "pandas", "polars", "py4j", "pyarrow", "pyspark", "tqdm"]
SOURCE = Path(__file__).parents[1] / "simstore"


def run(code):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_bare_import_imports_nothing_optional():
    assert run(f"import sys, simstore; print(sorted(set({OPTIONAL}) & set(sys.modules)))") == "[]"


def test_tasks_are_without_spark():
    """They run where Spark is not, as under Ray and Dask."""
    code = "import pkgutil, importlib, sys, simstore.tasks as tasks\n"
    code += "for module in pkgutil.iter_modules(tasks.__path__, 'simstore.tasks.'): importlib.import_module(module.name)\n"
    assert run(code + "print('pyarrow' in sys.modules, 'pyspark' in sys.modules)") == "True False"


@pytest.mark.parametrize(
    "module, missing, extra", [("spark", "pyspark", "spark"), ("spark", "pyarrow", "spark"), ("tasks", "pyarrow", "pyarrow")]
)
def test_what_is_missing_is_named_with_its_extra(module, missing, extra):
    code = f"import sys; sys.modules['{missing}'] = None\ntry: import simstore.{module}\nexcept ImportError as error: print(error)"
    assert f"pip install 'simstore[{extra}]'" in run(code)


def test_the_wheel_has_all_of_the_package():
    installed = Path(simstore.__file__).parent
    names = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py*") if path.suffix in (".py", ".pyi")}
    assert len(names) > 6 and names <= {path.relative_to(installed) for path in installed.rglob("*.py*")}

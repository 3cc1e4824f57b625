"""`import simstore` loads no optional packages, and errors name the extra to install."""

import subprocess
import sys
from pathlib import Path

import pytest

import simstore

OPTIONAL = ["datasets", "duckdb", "matplotlib", "pandas", "polars", "py4j", "pyarrow", "pyspark", "tqdm"]
SOURCE = Path(__file__).parents[1] / "simstore"


def run_python(code):
    completed = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return completed.stdout.strip()


def test_a_bare_import_imports_nothing_optional():
    assert run_python(f"import sys, simstore; print(sorted(set({OPTIONAL}) & set(sys.modules)))") == "[]"


def test_tasks_do_not_import_spark():
    """The tasks import pyarrow but not pyspark, because Ray and Dask run them too."""
    code = "import pkgutil, importlib, sys, simstore.tasks as tasks\n"
    code += "for module in pkgutil.iter_modules(tasks.__path__, 'simstore.tasks.'): importlib.import_module(module.name)\n"
    assert run_python(code + "print('pyarrow' in sys.modules, 'pyspark' in sys.modules)") == "True False"


@pytest.mark.parametrize(
    "module, missing, extra", [("spark", "pyspark", "spark"), ("spark", "pyarrow", "spark"), ("tasks", "pyarrow", "pyarrow")]
)
def test_errors_name_the_extra_to_install(module, missing, extra):
    code = f"import sys; sys.modules['{missing}'] = None\ntry: import simstore.{module}\nexcept ImportError as error: print(error)"
    assert f"pip install 'simstore[{extra}]'" in run_python(code)


def test_the_wheel_has_all_of_the_package():
    installed = Path(simstore.__file__).parent
    names = {path.relative_to(SOURCE) for path in SOURCE.rglob("*.py*") if path.suffix in (".py", ".pyi")}
    assert len(names) > 6 and names <= {path.relative_to(installed) for path in installed.rglob("*.py*")}

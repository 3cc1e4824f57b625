"""What importing simstore takes."""

import subprocess
import sys

OPTIONAL = ["datasets", "duckdb", "matplotlib", "pandas", "polars", "pyarrow", "tqdm"]


def test_a_bare_import_imports_nothing_optional():
    code = f"import sys, simstore; print(sorted(set({OPTIONAL}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

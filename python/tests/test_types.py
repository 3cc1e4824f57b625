"""The type stubs match the compiled module, and mypy accepts calls of the API."""

import subprocess
import sys
from pathlib import Path

import typed_calls

HERE = Path(__file__).parent
SETTINGS = HERE.parent / "pyproject.toml"


def run_module(folder: Path, *arguments: str) -> None:
    """Runs a module of mypy in a folder where the import finds the installed simstore, not the source."""
    completed = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_stubs_are_those_of_the_module(tmp_path):
    run_module(tmp_path, "mypy.stubtest", "--mypy-config-file", str(SETTINGS), "simstore._simstore")


def test_typed_calls_pass_mypy_and_run(tmp_path):
    run_module(tmp_path, "mypy", "--config-file", str(SETTINGS), str(HERE / "typed_calls.py"))
    for name, function in vars(typed_calls).items():
        if name.startswith("use_"):
            function()

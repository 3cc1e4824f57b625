"""The stubs say what the module has, and type checkers understand them."""

import subprocess
import sys
from pathlib import Path

import typed

HERE = Path(__file__).parent
SETTINGS = HERE.parent / "pyproject.toml"


def mypy(folder: Path, *arguments: str) -> None:
    """Runs mypy where it sees simstore as it is installed."""
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_stubs_are_those_of_the_module(tmp_path):
    mypy(tmp_path, "mypy.stubtest", "--mypy-config-file", str(SETTINGS), "simstore._simstore")


def test_what_is_typed_is_understood_and_runs(tmp_path):
    mypy(tmp_path, "mypy", "--config-file", str(SETTINGS), str(HERE / "typed.py"))
    for name, function in vars(typed).items():
        if name.startswith("use_"):
            function()

"""Examples in the docstrings of `simstore.spark` print the expected output, and all public items have docstrings."""

import doctest
import inspect

import pytest


def public_items():
    """Returns public items by name, or none if Spark is missing. Other tests report that it is missing."""
    try:
        from simstore import spark as module
    except ImportError:
        return {}
    return {name: getattr(module, name) for name in module.__all__}


PUBLIC = public_items()


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name, spark, tmp_path, monkeypatch):
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(text, {"spark": spark}, name, None, None)
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=report.append)
    assert runner.failures == 0, "".join(report)

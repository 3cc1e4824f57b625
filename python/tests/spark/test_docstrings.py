"""Examples in the docstrings for Spark print what they say, and nothing public is without a docstring."""

import doctest
import inspect

import pytest


def public():
    """What is public, by name; nothing where Spark is missing, which its other tests tell."""
    try:
        from simstore import spark as module
    except ImportError:
        return {}
    return {name: getattr(module, name) for name in module.__all__}


PUBLIC = public()


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

"""Examples in docstrings print what they say, and nothing public is without a docstring."""

import doctest
import inspect

import pytest

import simstore


def public() -> dict[str, object]:
    """Everything that has a docstring of its own, by name."""
    found = {"simstore": simstore, "simstore.errors": simstore.errors}
    for name in simstore.__all__:
        thing = getattr(simstore, name)
        if not inspect.isclass(thing) and not callable(thing):
            continue
        found[f"simstore.{name}"] = thing
        if inspect.isclass(thing):
            described = inspect.getdoc(thing) or ""
            members = {
                of: member
                for of, member in vars(thing).items()
                # Plain attributes may be described by their class.
                if not of.startswith("_") and f"\n{of} : " not in described
            }
            found |= {f"simstore.{name}.{of}": member for of, member in members.items()}
    return found


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name, tmp_path, monkeypatch):
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    # Its files are its own.
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_there_are_examples():
    assert sum(">>>" in (inspect.getdoc(thing) or "") for thing in PUBLIC.values()) >= 2

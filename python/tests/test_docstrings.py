"""Examples in docstrings print the expected output, and all public items have docstrings."""

import doctest
import inspect

import pytest

import simstore


def public_items() -> dict[str, object]:
    """Returns each public item that needs its own docstring, by qualified name."""
    items = {"simstore": simstore, "simstore.errors": simstore.errors}
    for name in simstore.__all__:
        item = getattr(simstore, name)
        if not inspect.isclass(item) and not callable(item):
            continue
        items[f"simstore.{name}"] = item
        if inspect.isclass(item):
            class_docstring = inspect.getdoc(item) or ""
            members = {
                member_name: member
                for member_name, member in vars(item).items()
                # The docstring of the class may describe plain attributes.
                if not member_name.startswith("_") and f"\n{member_name} : " not in class_docstring
            }
            items |= {f"simstore.{name}.{member_name}": member for member_name, member in members.items()}
    return items


PUBLIC = public_items()


@pytest.mark.parametrize("name", PUBLIC)
def test_docstring(name, tmp_path, monkeypatch):
    text = inspect.getdoc(PUBLIC[name])
    assert text, f"{name} has no docstring"
    # Examples write files in the current folder.
    monkeypatch.chdir(tmp_path)
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_there_are_examples():
    assert sum(">>>" in (inspect.getdoc(item) or "") for item in PUBLIC.values()) >= 2

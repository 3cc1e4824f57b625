"""Error messages quote only the beginning of a long argument."""

import pytest

import simstore

LONG = "x" * 100_000
TEXTS = ["some words of a text"]
TABLE = {"text": TEXTS}


@pytest.mark.parametrize(
    "call",
    [
        lambda: simstore.dedup(TEXTS, profile=LONG),
        lambda: simstore.dedup(TEXTS, preset=LONG),
        lambda: simstore.dedup(TEXTS, keep=LONG),
        lambda: simstore.dedup(TEXTS, cluster_by=LONG),
        lambda: simstore.dedup(TEXTS, memory=LONG),
        lambda: simstore.dedup(TABLE, text=LONG),
        lambda: simstore.dedup(TABLE, id=LONG),
        lambda: simstore.dedup({LONG: TEXTS}),
        lambda: simstore.dedup("a.csv", delimiter=LONG),
        lambda: simstore.dedup("a.csv", encoding=LONG),
        lambda: simstore.dedup("a.csv", format=LONG),
        lambda: simstore.Profile(LONG),
        lambda: simstore.similarity("a", "b", profile=LONG),
    ],
)
def test_messages_are_short(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("text\nsome words\n")
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert len(str(raised.value)) < 2000
